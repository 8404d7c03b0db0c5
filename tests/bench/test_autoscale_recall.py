"""What the page of replays says of others is read back, and makes the same page again."""

import re
import sys
from pathlib import Path

import pytest

from bench.autoscale import grid, kept, page, recall
from bench.autoscale.cells import read
from bench.files import BadInput

FIGURE = re.compile(r"-?\d+(?:\.\d+)?")


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of the page as it stands."""
    path = tmp_path / "results.jsonl"
    monkeypatch.setattr(sys, "argv", ["recall", "--results", str(path)])
    assert recall.main() == 0
    return path


def test_the_page_of_what_was_read_back_is_the_page(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "DOCS", tmp_path)
    monkeypatch.setattr(page, "PICTURES", tmp_path / "pictures")
    monkeypatch.setattr(sys, "argv", ["page", "--results", str(results), "--only"])
    page.main()
    again = (tmp_path / "autoscaling-replay.md").read_text(encoding="utf-8")
    before = recall.PAGE.read_text(encoding="utf-8")
    assert FIGURE.sub("0", again) == FIGURE.sub("0", before)
    for one, other in zip(FIGURE.findall(before), FIGURE.findall(again), strict=True):
        last_digit = 10.0 ** -len(one.partition(".")[2])
        assert float(other) == pytest.approx(float(one), abs=2.01 * last_digit)


def test_all_cases_and_policies_are_there(results: Path) -> None:
    there = {(each.case, each.name) for each in read(results)}
    missing = [
        (case, name)
        for case, names in grid.everything()
        for name in names
        if (case, name) not in there and case.start_delay_seconds == 60.0
    ]
    assert not missing
    rows = {(each["table"], each["name"]) for each in kept.read(results.with_suffix(".rows.jsonl"))}
    assert {("borrowed", "kpa"), ("steps", "ours"), ("llmd 2,4,6,8,10,4,1", "O1")} <= rows


def test_exact_results_are_kept(results: Path) -> None:
    before = results.read_text(encoding="utf-8")
    assert recall.main() == 2
    assert results.read_text(encoding="utf-8") == before


def test_another_page_is_refused() -> None:
    with pytest.raises(BadInput, match="no section 'Results'"):
        recall.replays("# Another page\n")
