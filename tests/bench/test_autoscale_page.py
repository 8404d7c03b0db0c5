"""The page of replays: what it says of ours, and that it is complete."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.autoscale import circumstances, grid, page, scene
from bench.autoscale.cells import Cell, Standing, append, read, standings
from bench.autoscale.grid import DAYS, USUAL
from bench.autoscale.rows import Rows
from bench.programs import BAD_INPUT
from tests.bench.autoscale_cases import step_scene

ROW = Cell(USUAL[0], "ours", {}, 0.99, 0.995, 20.0, 20.0, 3.0, 30.0, 1.0, 0.08)

TABLES = {
    "<!-- BORROWED -->": "| kpa | as published | 80.00 @ 0.80 |",
    "<!-- LLMD -->": "| llmd_slo | 95.0 |",
    "<!-- STEPS -->": "| chat | 4 to 8 | 75 | 90 |",
    "<!-- COURSES -->": "| chat | level | 99.50 |",
    "<!-- HOURS -->": "| chat | 3 | 10 | 99.00 |",
    "<!-- STRANGERS -->": "| chat | all | 3 | apart |",
    "<!-- BEGINNINGS -->": "| chat | 10 | 5 of 5 |",
    "<!-- LOOKS -->": "| chat | 99.00 | 99.87 @ 15.55 |",
    "<!-- SHIFTS -->": "| answers 100 to 800 | 4.8 to 9.0 |",
    "<!-- OTHERS -->": "| 1 s and 50 ms | chat |",
    "<!-- BETWEEN -->": "| chat | TPOT | 40 | 2.50 | 1.05 |",
    "<!-- EQUAL_COST -->": "| chat | 99.87 | 15.55 | kpa |",
}


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
    standing = Standing(ROW.case, (ours, rival("kpa", 0.991, 25.0), cheap_but_late))
    assert standing.words().startswith(expected)


def test_without_a_rival_that_attains_it_attainment_is_compared():
    standing = Standing(ROW.case, (ROW, rival("kpa", 0.98, 5.0)))
    assert "ours attains 99.50 %, more than kpa" in standing.words()


def test_results_are_kept_line_by_line(tmp_path: Path):
    path = tmp_path / "build" / "results.jsonl"
    assert read(path) == []
    append(path, ROW)
    append(path, rival("kpa", 0.991, 25.0))
    assert read(path) == [ROW, rival("kpa", 0.991, 25.0)]


def test_rows_are_kept_and_only_those_that_are_asked_for_are_replayed(tmp_path: Path):
    replayed = []

    def replay(name):
        def make():
            replayed.append(name)
            return f"| {name} | {len(replayed)} |"

        return make

    path = tmp_path / "results.rows.jsonl"
    for rows in (Rows(path), Rows(path, only=())):
        assert rows.found("llmd 2,4", "ours", replay("ours")) == "| ours | 1 |"
    assert Rows(path, only=("ours",)).found("llmd 2,4", "O1", replay("O1")) is None
    assert Rows(path).found("llmd 4,2", "ours", replay("ours")) == "| ours | 2 |"
    assert Rows(path).found("llmd 2,4", "O1", replay("O1")) == "| O1 | 3 |"
    Rows(path).forget(("ours",))
    assert Rows(path).found("llmd 2,4", "O1", replay("O1")) == "| O1 | 3 |"
    assert Rows(path).found("llmd 2,4", "ours", replay("ours")) == "| ours | 4 |"


def test_a_page_of_what_is_there_replays_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page, "DOCS", tmp_path)
    monkeypatch.setattr(page, "PICTURES", tmp_path / "pictures")
    results = tmp_path / "results.jsonl"
    append(results, ROW)
    told = ["page", "--results", str(results), "--data", str(tmp_path), "--only"]
    monkeypatch.setattr("sys.argv", told)
    page.main()
    text = (tmp_path / "autoscaling-replay.md").read_text()
    assert "| ours |  | 99.50 | 20.00 |" in text and page.NOT_YET in text
    assert read(results) == [ROW]


def test_a_page_of_no_replays_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    results = tmp_path / "results.jsonl"
    monkeypatch.setattr("sys.argv", ["page", "--results", str(results), "--only"])
    assert page.main() == BAD_INPUT
    assert f"{results}: no replays; bench.autoscale.recall" in capsys.readouterr().err


def test_the_page_has_tables_and_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page, "DOCS", tmp_path)
    monkeypatch.setattr(page, "PICTURES", tmp_path / "pictures")
    other = replace(ROW, case=USUAL[1], seconds_to_recover=None)
    cells = [ROW, rival("kpa", 0.991, 25.0), rival("O1", 0.992, 16.0), other]
    page.write(cells, TABLES)
    text = (tmp_path / "autoscaling-replay.md").read_text()
    assert "<!--" not in text
    assert "| kpa | target 16 | 99.10 | 25.00 | 1.00 | 1.56 |" in text
    assert "| ours |  | 99.50 | 20.00 | 0.80 | 1.25 |" in text
    assert "| llmd_slo | 95.0 |" in text and "| kpa | as published |" in text
    assert "| chat | 4 to 8 | 75 | 90 |" in text and "| chat | 3 | 10 | 99.00 |" in text
    assert "| chat | level | 99.50 |" in text and "| chat | 99.00 | 99.87 @ 15.55 |" in text
    assert "| chat | 99.87 | 15.55 | kpa |" in text
    assert "| chat | all | 3 | apart |" in text and "| chat | 10 | 5 of 5 |" in text
    assert "| 1 s and 50 ms | chat |" in text and "| chat | TPOT | 40 | 2.50 | 1.05 |" in text
    assert [standing.case for standing in standings(cells)] == list(USUAL[:2])
    assert {each.name for each in (tmp_path / "pictures").iterdir()} == {"calm.svg", "pareto.svg"}


def test_other_starts_are_told_beside_the_best_rival_that_scales():
    slow = replace(ROW.case, start_delay_seconds=180.0)
    cells = [
        replace(ROW, case=slow, attainment=0.98),
        replace(ROW, case=replace(slow, seed=1), attainment=0.99, replica_hours=22.0),
        replace(rival("best_static", 0.999, 10.0), case=slow),
        replace(rival("kpa", 0.991, 25.0), case=slow),
        replace(rival("apa", 0.97, 5.0), case=slow),
    ]
    row = circumstances.starts(cells).splitlines()[-1]
    trace = slow.trace
    told = "98.50 (98.00) | 21.00 | 99.90 | 10.00 | kpa | 99.10 | 25.00"
    assert row == f"| {trace} | 180 | {told} | not run | not run | not run |"


def test_a_wrong_model_is_told_by_what_it_loses():
    wrong = replace(ROW.case, slowness=1.3)
    cells = [
        replace(ROW, aim=0.99 * 0.96, attainment=0.96),
        rival("O1", 0.99, 16.0),
        replace(ROW, case=wrong, aim=0.99 * 0.9, attainment=0.81, replica_hours=30.0),
        replace(rival("O1", 0.99, 20.0), case=wrong),
    ]
    row = circumstances.slowness(cells).splitlines()[-1]
    told = "81.00 (81.00) | 30.00 | 10.00 | 1.50 | 1.25 | not run | not run"
    assert row == f"| {wrong.trace} | 1.3 | {told} |"


def test_a_whole_day_has_its_own_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page, "DOCS", tmp_path)
    monkeypatch.setattr(page, "PICTURES", tmp_path / "pictures")
    page.write([ROW, replace(ROW, case=DAYS[0], replica_hours=212.3)], {})
    day, results = (tmp_path / "autoscaling-replay.md").read_text().split("## Results")
    assert "212.30" in day and "212.30" not in results


def test_every_case_is_there_once():
    cases = [case for case, _ in grid.everything()]
    assert len(cases) == len(set(cases))


def test_nothing_is_scored_that_no_policy_could_change():
    given = step_scene()

    def scored_from(delay_seconds: float) -> float:
        return scene.with_settings(
            given, delay_seconds, given.routing, given.scraping
        ).warm_up_seconds

    assert [scored_from(delay) for delay in (0.0, 60.0, 420.0)] == [120.0, 180.0, 540.0]
