"""Rows whose cells are empty, wild or unknown are predicted, or not, for a reason."""

from __future__ import annotations

import random

import pytest

from bench.model.outcome import Outcome, Target, attempted
from bench.model.regression import SAMPLE
from bench.model.targets import TARGETS
from bench.tables import Row, read
from poolwise.errors import InvalidInput
from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import Interval
from poolwise.tables import load

TABLES = load()
CALIBRATION = Calibration(TABLES.efficiencies)
WILD = ("", "n/a", "-1", "0", "1e99", "nan", "x,y", "Mystery-7B")
KEPT = ("row_id", "source", "group")
by_table = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.table)


def outcomes(target: Target, rows: list[Row]) -> list[Outcome]:
    return list(target.outcomes(rows, TABLES, lambda _: CALIBRATION))


@by_table
def test_the_sample_is_predicted(target: Target) -> None:
    found = outcomes(target, read(SAMPLE, target.table))
    assert found
    assert all(each.predicted for each in found if each.is_eligible)


@by_table
def test_wild_cells_are_told_and_stop_nothing(target: Target) -> None:
    chosen = random.Random(5)
    rows = read(SAMPLE, target.table)
    for row in rows:
        column = chosen.choice([each for each in row if each not in KEPT])
        row[column] = chosen.choice(WILD)
    for each in outcomes(target, rows):
        assert (each.predicted is None) is bool(each.reason), each.row["row_id"]


@by_table
def test_an_accelerator_that_no_table_knows_has_a_reason(target: Target) -> None:
    rows = [{**row, "gpu": "FutureChip"} for row in read(SAMPLE, target.table)[:3]]
    for each in outcomes(target, rows):
        assert each.reason


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (Interval(2.0, 1.0, 3.0), ""),
        (Interval(float("inf"), 1.0, float("inf")), "no finite prediction"),
        ("no lengths", "no lengths"),
        (InvalidInput("H100", "cannot multiply x"), "H100: cannot multiply x"),
        (ZeroDivisionError("division by zero"), "a cell cannot be used"),
    ],
)
def test_an_attempt_ends_in_a_prediction_or_a_reason(found: object, reason: str) -> None:
    def predict() -> Interval | str:
        if isinstance(found, Exception):
            raise found
        assert isinstance(found, Interval | str)
        return found

    predicted, told = attempted(predict)
    assert told.startswith(reason)
    assert (predicted is None) is bool(told)
