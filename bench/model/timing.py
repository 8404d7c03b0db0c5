"""Outcomes of tables whose one figure is the time of one operation, in microseconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from bench.model.outcome import CalibrationOf, Outcome, attempted
from bench.tables import Row, figure
from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import Interval
from poolwise.tables import Tables

Run = TypeVar("Run")
MISSING = "row has no"
"""Begins the reason where a size that this operation needs is not stated."""


@dataclass(frozen=True, slots=True)
class Timing(Generic[Run]):
    """How one such table is read and predicted."""

    score: str
    column: str
    """Of the measured time."""
    stated: tuple[str, ...]
    """Columns that any operation needs, for a row to be eligible."""
    read: Callable[[Row, Tables], Run | str]
    """What ran, or why that cannot be known."""
    predicted: Callable[[Run, Calibration], Interval]

    def outcomes(
        self, rows: Iterable[Row], tables: Tables, calibration_of: CalibrationOf
    ) -> Iterator[Outcome]:
        """The time of each row that has one."""
        for row in rows:
            microseconds = figure(row, self.column)
            if microseconds:
                found, reason = attempted(partial(self._predicted, row, tables, calibration_of))
                stated = all(row.get(column) for column in self.stated)
                eligible = stated and MISSING not in reason
                yield Outcome(self.score, row, microseconds / 1e6, eligible, found, reason)

    def _predicted(self, row: Row, tables: Tables, calibration_of: CalibrationOf) -> Interval | str:
        found = self.read(row, tables)
        return found if isinstance(found, str) else self.predicted(found, calibration_of(row))
