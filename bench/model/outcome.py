"""What one measured figure is held against: a prediction with its range, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.attempts import attempt
from bench.tables import LARGEST, Row
from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import Interval
from poolwise.model.site import Site
from poolwise.tables import EfficiencyRow, Tables

CalibrationOf = Callable[[Row], Calibration]
"""The constants that may predict a row."""
RATES = frozenset({"train_dense", "train_moe", "offline_throughput"})
"""Figures per second: what takes longer makes them smaller."""

SMALLEST = LARGEST**-2.0
"""Of a prediction: its ratio to any figure is a number, and so is the logarithm."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One figure of one row under one name."""

    score: str
    """``train_dense``, ``tpot``, ..."""
    row: Row
    measured: float
    is_eligible: bool
    """Whether the row states model, accelerator, counts, lengths and precision."""
    predicted: Interval | None
    reason: str = ""
    """Why nothing is predicted."""
    site: Site | None = None
    """Where the figure is predicted, for its residual; None for what has none."""

    @property
    def error(self) -> float:
        """ln(predicted / measured); NaN without a prediction."""
        if self.predicted is None:
            return math.nan
        return math.log(self.predicted.mid / self.measured)

    @property
    def log_slowness(self) -> float:
        """ln(measured / predicted) of the time that the figure is, or is one over."""
        return self.error if self.score in RATES else -self.error

    @property
    def is_covered(self) -> bool:
        """Whether the range holds the truth."""
        found = self.predicted
        return found is not None and found.low <= self.measured <= found.high


@dataclass(frozen=True, slots=True)
class Target:
    """The figures of one measured table, and the constants that they lean on."""

    table: str
    phases: tuple[str, ...]
    """Whose constants are fitted on this table."""
    outcomes: Callable[[Iterable[Row], Tables, CalibrationOf], Iterator[Outcome]]
    refit: Callable[[Sequence[Row], Tables], list[EfficiencyRow]]
    """All constants of its phases, fitted on these rows alone."""


def attempted(predict: Callable[[], Interval | str]) -> tuple[Interval | None, str]:
    """A prediction, or the reason why there is none: cells may hold anything."""
    found = attempt(predict)
    if isinstance(found, str):
        return None, found
    if not SMALLEST < found.low <= found.mid <= found.high < LARGEST:
        return None, "no finite prediction"
    return found, ""


def scored(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Those that count: eligible and predicted."""
    return [each for each in outcomes if each.is_eligible and each.predicted is not None]
