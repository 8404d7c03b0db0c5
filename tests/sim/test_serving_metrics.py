"""Histograms as vLLM exposes them, and curves of costs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.sim.serving.costs import Curve, EngineLimits, IterationCosts, StepTable
from poolwise.sim.serving.metrics import Tally, one_two_five
from tests.sim.serving_cases import COSTS, poisson, requests, served


@given(
    st.lists(
        st.tuples(
            st.floats(0.001, 3.0), st.floats(0.0, 0.05), st.integers(1, 60), st.integers(1, 9)
        ),
        max_size=6,
    )
)
def test_a_line_is_its_values_one_by_one(lines: list[tuple[float, float, int, int]]) -> None:
    whole, single = Tally((0.1, 0.5, 1.0, 2.0)), Tally((0.1, 0.5, 1.0, 2.0))
    for first, slope, steps, times in lines:
        whole.observe_line(first, slope, steps, times)
        for step in range(steps):
            single.observe(first + step * slope, times)
    assert sum(whole.counts) == sum(single.counts)
    assert sum(abs(a - b) for a, b in zip(whole.counts, single.counts, strict=True)) <= 18
    assert whole.total == pytest.approx(single.total)


def test_a_bucket_holds_its_upper_bound() -> None:
    tally = Tally((1.0, 2.0))
    for value in (1.0, 1.5, 2.0, 2.5):
        tally.observe(value)
    assert tally.counts == [1, 2, 1]
    assert tally.upper_bounds == (1.0, 2.0, math.inf)


def test_lengths_have_buckets_of_one_two_five() -> None:
    assert one_two_five(25) == (1.0, 2.0, 5.0, 10.0, 20.0)


def test_gaps_add_up_to_the_answers() -> None:
    """All gaps of a request sum to the time from its first token to its last."""
    stream = poisson(200, 5.0, 4)
    fleet = served(stream)
    answers, told = fleet.answers(), fleet.members[0].engine.metrics.read()
    between = (answers.finished_seconds - answers.first_token_seconds).sum()
    assert told.gaps.total == pytest.approx(between)
    assert told.ttft.total == pytest.approx(answers.ttft_seconds(stream).sum())


def test_the_time_per_token_is_the_mean_of_the_gaps_of_an_answer() -> None:
    """Eleven tokens have ten gaps."""
    fleet = served(requests((0.0, 100, 11)))
    answers, told = fleet.answers(), fleet.members[0].engine.metrics.read()
    between_seconds = answers.finished_seconds[0] - answers.first_token_seconds[0]
    assert told.tpot.total == pytest.approx(between_seconds / 10)


def test_curves_go_on_beyond_their_knots() -> None:
    assert Curve((0, 2, 4), (1.0, 2.0, 4.0)).up_to(6) == [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert Curve.line(1.0, 0.5).up_to(2) == [1.0, 1.5, 2.0]


@pytest.mark.parametrize(
    ("counts", "seconds"), [((1,), (1.0,)), ((1, 2), (1.0,)), ((2, 1), (1.0, 2.0))]
)
def test_a_curve_ascends(counts: tuple[float, ...], seconds: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="curve"):
        Curve(counts, seconds)


def test_a_slower_engine_is_slower_in_every_part() -> None:
    limits = EngineLimits(8, 64, 100)
    own, slower = StepTable(COSTS, limits), StepTable(COSTS.scaled(1.3), limits)
    assert slower.decode == pytest.approx([1.3 * each for each in own.decode])
    assert slower.key_seconds == pytest.approx(1.3 * own.key_seconds)
    assert isinstance(COSTS.scaled(2.0), IterationCosts)
