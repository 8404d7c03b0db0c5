"""``kernels``: seconds of one kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bench.fit import kernels as fit
from bench.kernel_runs import STATED, kernel_run, kernel_runs, predicted
from bench.model.outcome import CalibrationOf, Outcome, Target
from bench.tables import Row, number
from poolwise.model.kernels.constants import PHASE
from poolwise.tables import EfficiencyRow, Tables


def outcomes(
    rows: Iterable[Row], tables: Tables, calibration_of: CalibrationOf
) -> Iterator[Outcome]:
    """The time of each row."""
    for row in rows:
        microseconds = number(row, "latency_us")
        if microseconds:
            found = kernel_run(row, tables)
            eligible = all(row[column] for column in STATED)
            measured = microseconds / 1e6
            if isinstance(found, str):
                yield Outcome("kernels", row, measured, eligible, None, found)
            else:
                interval = predicted(found, calibration_of(row))
                yield Outcome("kernels", row, measured, eligible, interval)


def refit(rows: Sequence[Row], tables: Tables) -> list[EfficiencyRow]:
    """Constants of the kernels."""
    return fit.refit(list(kernel_runs(rows, tables)))


TARGET = Target("kernels_measured", (PHASE,), outcomes, refit)
