"""What would be left of an error if a factor were known for some rows alike."""

import math

import pytest

from bench.model.outcome import Outcome
from bench.model.transfer import lines, remaining
from poolwise.model.prediction import Interval


def served(gpu: str, engine: str, predicted: float, *, is_eligible: bool = True) -> Outcome:
    row = {"row_id": gpu + engine, "gpu": gpu, "engine": engine}
    return Outcome("tpot", row, 1.0, is_eligible, Interval(predicted, predicted, predicted))


SLOW_ENGINE = [served(gpu, "a", 2.0) for gpu in "XYZ"] + [served(gpu, "b", 1.0) for gpu in "XYZ"]


def test_an_engine_that_is_off_everywhere_is_off_by_one_factor() -> None:
    assert remaining(SLOW_ENGINE, ("engine",)) == [0.0] * 6
    assert sorted(remaining(SLOW_ENGINE, ())) == [0.0] * 3 + [math.log(2.0)] * 3


def test_what_no_column_tells_apart_stays() -> None:
    off = [abs(each) for each in remaining(SLOW_ENGINE, ("gpu",))]
    assert off == pytest.approx([math.log(2.0) / 2.0] * 6)


def test_rows_that_do_not_count_are_in_no_table() -> None:
    strange = served("X", "a", 50.0, is_eligible=False)
    assert list(lines([*SLOW_ENGINE, strange])) == list(lines(SLOW_ENGINE))
    assert "| engine | 2 | 0.0 | 0.0 | 0.0 |" in lines(SLOW_ENGINE)
    assert not list(lines([strange]))
