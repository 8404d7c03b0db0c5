"""``kernels``: seconds of one kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from bench.fit import kernels as fit
from bench.kernel_runs import STATED, kernel_run, kernel_runs, predicted
from bench.model.outcome import CalibrationOf, Outcome, Target, attempted
from bench.tables import Row, number
from poolwise.model.kernels.constants import PHASE
from poolwise.model.prediction import Interval
from poolwise.tables import EfficiencyRow, Tables

MISSING = "row has no"
"""Begins the reason where a size of the operation is not stated."""


def outcomes(
    rows: Iterable[Row], tables: Tables, calibration_of: CalibrationOf
) -> Iterator[Outcome]:
    """The time of each row."""
    for row in rows:
        microseconds = number(row, "latency_us")
        if microseconds:
            found, reason = attempted(partial(_predicted, row, tables, calibration_of))
            eligible = all(row.get(column) for column in STATED) and MISSING not in reason
            yield Outcome("kernels", row, microseconds / 1e6, eligible, found, reason)


def _predicted(row: Row, tables: Tables, calibration_of: CalibrationOf) -> Interval | str:
    found = kernel_run(row, tables)
    return found if isinstance(found, str) else predicted(found, calibration_of(row))


def refit(rows: Sequence[Row], tables: Tables) -> list[EfficiencyRow]:
    """Constants of the kernels."""
    return fit.refit(list(kernel_runs(rows, tables)))


TARGET = Target("kernels_measured", (PHASE,), outcomes, refit)
