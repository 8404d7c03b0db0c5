"""Tables of single operations: the time of each row, and whether it counts."""

from __future__ import annotations

import pytest

from bench.model.outcome import Outcome
from bench.model.timing import Timing
from bench.tables import Row
from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import Interval
from poolwise.tables import Tables, load

TABLES = load()


def read(row: Row, tables: Tables) -> float | str:
    return float(row["size"]) if row["size"] else "row has no size"


def predicted(size: float, calibration: Calibration) -> Interval:
    return Interval.around(size * 1e-6, 0.1)


TIMING = Timing("copies", "us", ("gpu",), read, predicted)


def outcomes(**cells: str) -> list[Outcome]:
    row = {"gpu": "H100-SXM5-80GB", "size": "3", "us": "4"} | cells
    return list(TIMING.outcomes([row], TABLES, lambda _: Calibration(TABLES.efficiencies)))


def test_microseconds_are_held_against_seconds() -> None:
    (found,) = outcomes()
    assert found.measured == pytest.approx(4e-6)
    assert found.predicted is not None
    assert found.predicted.mid == pytest.approx(3e-6)
    assert found.is_eligible


@pytest.mark.parametrize("cells", [{"gpu": ""}, {"size": ""}], ids=str)
def test_what_states_too_little_is_not_eligible(cells: Row) -> None:
    (found,) = outcomes(**cells)
    assert not found.is_eligible


def test_a_row_without_a_time_is_no_measurement() -> None:
    assert outcomes(us="") == []
