"""``collectives``: seconds of one collective at one size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from bench.collective_runs import Collective, collectives
from bench.fit.collectives import PHASE, not_fitted, predicted_seconds, shipped
from bench.model.outcome import CalibrationOf, Outcome, Target
from bench.tables import Row, number
from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import Interval
from poolwise.tables import EfficiencyRow, Tables

STATED = ("gpu", "n_gpus", "collective", "size_bytes")


def outcomes(
    rows: Iterable[Row], tables: Tables, calibration_of: CalibrationOf
) -> Iterator[Outcome]:
    """The time of each row."""
    for row in rows:
        microseconds = number(row, "time_us")
        if not microseconds:
            continue
        found = next(iter(collectives([row], tables)), None)
        eligible = all(row[column] for column in STATED)
        predicted = None if found is None else _interval(found, calibration_of(row))
        reason = "accelerator is not known" if found is None else ""
        yield Outcome("collectives", row, microseconds / 1e6, eligible, predicted, reason)


def _interval(found: Collective, calibration: Calibration) -> Interval:
    mid, wide = predicted_seconds(found, calibration), math.exp(1.645 * 0.3)
    return Interval(mid, mid / wide, mid * wide)


def refit(rows: Sequence[Row], tables: Tables) -> list[EfficiencyRow]:
    """Constants of the links."""
    return shipped(list(collectives(rows, tables)), not_fitted(tables))


TARGET = Target("collectives_measured", (PHASE,), outcomes, refit)
