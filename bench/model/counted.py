"""How many rows are behind the scores, what becomes of the others, and how these are predicted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from bench.model import unread
from bench.model.outcome import Outcome
from bench.model.scores import Score, by_name
from bench.tables import Row


@dataclass(frozen=True, slots=True)
class Counted:
    """Rows, each in one place: the first below that it has a figure for."""

    rows: int
    scored: int
    """Eligible and predicted."""
    unpredicted: int
    """Eligible without a prediction."""
    unstated: int
    """Predicted, though the row leaves out what makes it eligible: in no score."""
    unknowable: int
    """Neither."""
    unread: int
    """That is no number above 0."""
    without_figure: int
    """That the protocol scores."""


PLACES = ("scored", "unpredicted", "unstated", "unknowable")
"""Of rows with a figure."""


def counted(rows: Sequence[Row], outcomes: Iterable[Outcome]) -> dict[str, int]:
    """``rows`` are all that the tables have; the places add up to their number.

    A row is told by its cells: one without a ``row_id`` is one of its own.
    """
    places: dict[tuple[str, ...], int] = {}
    for each in outcomes:
        key = tuple(each.row.values())
        places[key] = min(_place(each), places.get(key, len(PLACES)))
    counts: Counter[str] = Counter()
    for row in rows:
        place = places.get(tuple(row.values()))
        counts[_without(row) if place is None else PLACES[place]] += 1
    others = {place: counts[place] for place in (*PLACES, "unread", "without_figure")}
    return asdict(Counted(rows=len(rows), **others))


def _place(outcome: Outcome) -> int:
    if outcome.is_eligible:
        return 0 if outcome.predicted else 1
    return 2 if outcome.predicted else 3


def _without(row: Row) -> str:
    return "unread" if unread.columns(row) else "without_figure"


def unstated(outcomes: Sequence[Outcome]) -> dict[str, Score]:
    """Scores by name of figures that are predicted and in no score."""
    beside = [each for each in outcomes if each.predicted and not each.is_eligible]
    return by_name(replace(each, is_eligible=True) for each in beside)
