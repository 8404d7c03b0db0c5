"""``collectives``: seconds of one collective at one size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bench.collective_runs import collective, collectives, predicted
from bench.fit import collectives as fit
from bench.model.outcome import CalibrationOf, Outcome, Target
from bench.tables import Row, number
from poolwise.tables import EfficiencyRow, Tables

STATED = ("gpu", "n_gpus", "collective", "size_bytes")


def outcomes(
    rows: Iterable[Row], tables: Tables, calibration_of: CalibrationOf
) -> Iterator[Outcome]:
    """The time of each row."""
    for row in rows:
        microseconds = number(row, "time_us")
        if microseconds:
            found = collective(row, tables)
            eligible = all(row[column] for column in STATED)
            measured = microseconds / 1e6
            if isinstance(found, str):
                yield Outcome("collectives", row, measured, eligible, None, found)
            else:
                interval = predicted(found, calibration_of(row))
                yield Outcome("collectives", row, measured, eligible, interval)


def refit(rows: Sequence[Row], tables: Tables) -> list[EfficiencyRow]:
    """Constants of the links."""
    return fit.refit(list(collectives(rows, tables)))


TARGET = Target("collectives_measured", (fit.PHASE,), outcomes, refit)
