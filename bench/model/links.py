"""``collectives``: seconds of one collective at one size."""

from __future__ import annotations

from collections.abc import Sequence

from bench.collective_runs import collective, collectives, predicted
from bench.fit import collectives as fit
from bench.model.outcome import Target
from bench.model.timing import Timing
from bench.tables import Row
from poolwise.tables import EfficiencyRow, Tables

STATED = ("gpu", "n_gpus", "collective", "size_bytes")
TIMING = Timing("collectives", "time_us", STATED, collective, predicted)


def refit(rows: Sequence[Row], tables: Tables) -> list[EfficiencyRow]:
    """Constants of the links."""
    return fit.refit(list(collectives(rows, tables)))


TARGET = Target("collectives_measured", (fit.PHASE,), TIMING.outcomes, refit)
