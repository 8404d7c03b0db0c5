"""How many rows are behind the scores, what becomes of the others, and how these are predicted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from bench.model.outcome import Outcome
from bench.model.scores import Score, by_name


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
    without_figure: int
    """That the protocol scores."""


def counted(rows: int, outcomes: Sequence[Outcome]) -> dict[str, int]:
    """``rows`` is how many the tables have; the places add up to it."""
    scored = _ids(each for each in outcomes if each.is_eligible and each.predicted)
    unpredicted = _ids(each for each in outcomes if each.is_eligible) - scored
    seen = scored | unpredicted
    unstated = _ids(each for each in outcomes if each.predicted) - seen
    every = _ids(outcomes)
    return asdict(
        Counted(
            rows,
            len(scored),
            len(unpredicted),
            len(unstated),
            len(every - seen - unstated),
            rows - len(every),
        )
    )


def unstated(outcomes: Sequence[Outcome]) -> dict[str, Score]:
    """Scores by name of figures that are predicted and in no score."""
    beside = [each for each in outcomes if each.predicted and not each.is_eligible]
    return by_name(replace(each, is_eligible=True) for each in beside)


def _ids(outcomes: Iterable[Outcome]) -> frozenset[str]:
    return frozenset(each.row["row_id"] for each in outcomes)
