"""``kernels``: seconds of one kernel."""

from __future__ import annotations

from collections.abc import Sequence

from bench.fit import kernels as fit
from bench.kernel_runs import STATED, kernel_run, kernel_runs, predicted
from bench.model.outcome import Target
from bench.model.timing import Timing
from bench.tables import Row
from poolwise.model.kernels.constants import PHASE
from poolwise.tables import EfficiencyRow, Tables

TIMING = Timing("kernels", "latency_us", STATED, kernel_run, predicted)


def refit(rows: Sequence[Row], tables: Tables) -> list[EfficiencyRow]:
    """Constants of the kernels."""
    return fit.refit(list(kernel_runs(rows, tables)))


TARGET = Target("kernels_measured", (PHASE,), TIMING.outcomes, refit)
