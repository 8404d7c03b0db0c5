"""Every row of the tables is told, in one place, and the pages state the same count."""

from __future__ import annotations

import re

from bench.model.counted import Counted, counted, unstated
from bench.model.outcome import Outcome
from bench.model.page import DOCS, PLACES
from bench.model.page import _unpredicted as page_unpredicted
from poolwise.model.prediction import Interval

TEN = Interval(10.0, 9.0, 11.0)


def outcome(name: str, *, is_eligible: bool, predicted: Interval | None, score: str) -> Outcome:
    reason = "" if predicted else "no lengths"
    return Outcome(score, {"row_id": name}, 8.0, is_eligible, predicted, reason)


FOUND = [
    outcome("both", is_eligible=True, predicted=TEN, score="tpot"),
    outcome("both", is_eligible=True, predicted=None, score="ttft"),
    outcome("missed", is_eligible=True, predicted=None, score="tpot"),
    outcome("beside", is_eligible=False, predicted=TEN, score="tpot"),
    outcome("beside", is_eligible=False, predicted=None, score="ttft_p99"),
    outcome("blank", is_eligible=False, predicted=None, score="tpot"),
]


ROWS = [{"row_id": name} for name in ("both", "missed", "beside", "blank", "idle")]
TEXT = {"row_id": "", "time_us": "n/a"}
"""A row without an identity is one of its own."""


def test_a_row_is_counted_once_whatever_figures_it_has() -> None:
    found = Counted(**counted([*ROWS, TEXT, TEXT], FOUND))
    assert found == Counted(7, 1, 1, 1, 1, unread=2, without_figure=1)


def test_rows_without_identity_are_told_apart_by_their_cells() -> None:
    rows = [{"row_id": "", "time_us": cell} for cell in ("7", "8", "8")]
    found = [Outcome("collectives", row, 8.0, True, TEN) for row in rows]
    assert Counted(**counted([*rows, {"row_id": ""}], found)).scored == 3


def test_places_add_up_and_each_has_words() -> None:
    places = counted([*ROWS, TEXT], FOUND)
    assert places.keys() == PLACES.keys()
    assert places.pop("rows") == sum(places.values())


def test_what_is_in_no_score_has_errors_of_its_own() -> None:
    found = unstated(FOUND)
    assert list(found) == ["tpot"]
    assert (found["tpot"]["predicted"], found["tpot"]["mdape"]) == (1, 25.0)


def test_the_page_says_so_where_all_is_predicted() -> None:
    assert list(page_unpredicted({"unpredicted": {}})) == ["All eligible figures are predicted."]
    assert "| a reason | 5 |" in list(page_unpredicted({"unpredicted": {"a reason": 5}}))


def test_the_readme_states_the_counts_of_the_page() -> None:
    page = (DOCS / "accuracy.md").read_text(encoding="utf-8")
    scored, rows = (_count_of(PLACES[place], page) for place in ("scored", "rows"))
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert f"scored on {scored} of {rows} published measurements" in readme


def _count_of(words: str, page: str) -> str:
    found = re.search(rf"\| {re.escape(words)} \| ([\d,]+) \|", page)
    assert found
    return found[1]
