"""Ratios of two predictions are surer than each; a capacity is less sure than its times."""

from __future__ import annotations

import math

import pytest

from poolwise.model.correction import Phase
from poolwise.model.hardware import Resource
from poolwise.model.prediction import Bottleneck, Interval, Memory, ServingPrediction
from poolwise.model.ranges import capacity_range, limiting_phase, own_spread, ratio_margin

ONE = Interval(1.0, 1.0, 1.0)


def served(
    limiting: str = "ITL p99", ttft: Interval = ONE, itl: Interval = ONE
) -> ServingPrediction:
    return ServingPrediction(
        1.0, 4.0, ttft, itl, ONE, limiting, 1.0, (), Memory(1.0), 1.0, 1.0, 1.0, 1.0, "fitted"
    )


def test_a_spread_gives_its_interval_and_back() -> None:
    assert Interval.around(8.0, 0.2).spread == pytest.approx(0.2)
    assert ONE.spread == 0.0
    assert Interval(math.inf, math.inf, math.inf).spread == 0.0


@pytest.mark.parametrize("phase", list(Phase))
def test_a_ratio_is_no_less_sure_than_two_independent_predictions(phase: Phase) -> None:
    interval = Interval.around(8.0, 0.2)
    own = own_spread(interval, phase, "fitted")
    assert 0.0 < own <= interval.spread
    assert own_spread(interval, phase, "inherited") == interval.spread
    assert ratio_margin(own, own) <= math.expm1(1.645 * math.hypot(0.2, 0.2))
    assert ratio_margin(0.0, 0.0) == 0.0


def test_a_capacity_near_its_target_is_less_sure_than_the_times() -> None:
    slow = Interval.around(0.05, 0.1)
    flat = Bottleneck(Resource.LATENCY, {})
    steep = Bottleneck(Resource.COMPUTE, {Resource.COMPUTE: 0.2, Resource.MEMORY_BANDWIDTH: 0.1})
    assert capacity_range(served(itl=slow), flat).spread == pytest.approx(0.1)
    found = capacity_range(served(itl=slow), steep)
    assert found.mid == 4.0
    assert found.spread == pytest.approx(0.1 * math.log(1.2 * 1.1) / math.log(1.1))


def test_the_phase_that_ends_the_capacity_tells_its_error() -> None:
    first = served("TTFT p99", ttft=Interval.around(1.0, 0.3), itl=Interval.around(0.05, 0.1))
    assert limiting_phase(first) is Phase.FIRST_TOKEN
    assert capacity_range(first, Bottleneck(Resource.LATENCY, {})).spread == pytest.approx(0.3)
    assert limiting_phase(served("KV cache")) is Phase.TOKEN
