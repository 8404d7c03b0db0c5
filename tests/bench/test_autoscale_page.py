"""The page of replays: what it says of ours, and that it is complete."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.autoscale import page
from bench.autoscale.cells import Cell, Standing, append, read, standings

ROW = Cell("t", 40.0, "ours", {}, 0.99, 0.995, 20.0, 20.0, 3.0, 30.0, 1.0, 0.08)


def rival(name: str, attainment: float, hours: float) -> Cell:
    return replace(
        ROW, name=name, attainment=attainment, replica_hours=hours, setting={"target": 16.0}
    )


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (ROW, "Ours wins: at 99.50 % it costs 20.0 % less than kpa"),
        (replace(ROW, replica_hours=30.0), "**Ours loses**: at 99.50 % it costs 20.0 % more"),
        (replace(ROW, attainment=0.9), "**Ours loses**: it attains 90.00 %"),
    ],
    ids=["cheaper", "dearer", "late"],
)
def test_it_says_plainly_how_ours_stands(ours, expected):
    cheap_but_late = rival("apa", 0.98, 10.0)
    standing = Standing("t", (ours, rival("kpa", 0.991, 25.0), cheap_but_late))
    assert standing.words().startswith(expected)


def test_without_a_rival_that_attains_it_attainment_is_compared():
    standing = Standing("t", (ROW, rival("kpa", 0.98, 5.0)))
    assert "ours attains 99.50 %, more than kpa" in standing.words()


def test_results_are_kept_line_by_line(tmp_path: Path):
    path = tmp_path / "build" / "results.jsonl"
    assert read(path) == []
    append(path, ROW)
    append(path, rival("kpa", 0.991, 25.0))
    assert read(path) == [ROW, rival("kpa", 0.991, 25.0)]


def test_the_page_has_tables_and_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page, "DOCS", tmp_path)
    monkeypatch.setattr(page, "PICTURES", tmp_path / "pictures")
    other = replace(ROW, trace="u", seconds_to_recover=None)
    cells = [ROW, rival("kpa", 0.991, 25.0), rival("O1", 0.992, 16.0), other]
    page.write(cells, "| llmd_slo | 95.0 |", "| chat | 4 to 8 | 75 | 90 |")
    text = (tmp_path / "autoscaling-replay.md").read_text()
    assert "<!--" not in text
    assert "| kpa | target 16 | 99.10 | 25.00 | 1.00 | 1.56 |" in text
    assert "| ours |  | 99.50 | 20.00 | 0.80 | 1.25 |" in text
    assert "| llmd_slo | 95.0 |" in text
    assert "| chat | 4 to 8 | 75 | 90 |" in text
    assert [standing.trace for standing in standings(cells)] == ["t", "u"]
    assert {each.name for each in (tmp_path / "pictures").iterdir()} == {"calm.svg", "pareto.svg"}
