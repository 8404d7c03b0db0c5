"""``collectives``: seconds of one collective at one size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from bench.collective_runs import collective, collectives, predicted
from bench.fit import collectives as fit
from bench.model.outcome import CalibrationOf, Outcome, Target, attempted
from bench.tables import Row, number
from poolwise.model.prediction import Interval
from poolwise.tables import EfficiencyRow, Tables

STATED = ("gpu", "n_gpus", "collective", "size_bytes")


def outcomes(
    rows: Iterable[Row], tables: Tables, calibration_of: CalibrationOf
) -> Iterator[Outcome]:
    """The time of each row."""
    for row in rows:
        microseconds = number(row, "time_us")
        if microseconds:
            eligible = all(row.get(column) for column in STATED)
            found, reason = attempted(partial(_predicted, row, tables, calibration_of))
            yield Outcome("collectives", row, microseconds / 1e6, eligible, found, reason)


def _predicted(row: Row, tables: Tables, calibration_of: CalibrationOf) -> Interval | str:
    found = collective(row, tables)
    return found if isinstance(found, str) else predicted(found, calibration_of(row))


def refit(rows: Sequence[Row], tables: Tables) -> list[EfficiencyRow]:
    """Constants of the links."""
    return fit.refit(list(collectives(rows, tables)))


TARGET = Target("collectives_measured", (fit.PHASE,), outcomes, refit)
