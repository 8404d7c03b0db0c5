"""Percentiles with their bounds, shares at bucket edges, and how many samples speak."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.plan.signals.percentile import (
    LEAST_ABOVE,
    percentile_of,
    samples_needed,
    share_within,
    tail_share,
    tilted_share,
)
from poolwise.plan.signals.sample import Histogram
from tests.plan.signals.given import BOUNDS, histogram, latencies, of_values


def test_bounds_are_those_of_the_bucket():
    found = percentile_of(histogram(0, 0, 50, 50), 75)
    assert found is not None
    assert (found.lower, found.upper, found.estimate) == (0.5, 1.0, 0.75)


def test_beyond_the_last_bound_only_the_lower_one_is_known():
    found = percentile_of(histogram(1, 0, 0, 0, 0, 0, 99), 99)
    assert found is not None
    assert (found.lower, found.upper, found.estimate) == (5.0, math.inf, 5.0)


@pytest.mark.parametrize(("percentile", "needed"), [(50, 20), (90, 100), (99, 1000), (99.9, 10000)])
def test_how_many_samples_speak_of_a_percentile(percentile, needed):
    assert samples_needed(percentile) == needed
    enough = percentile_of(histogram(needed), percentile)
    short = percentile_of(histogram(needed - 1), percentile)
    assert enough is not None and short is not None
    assert enough.is_sufficient
    assert not short.is_sufficient


def test_share_is_exact_at_the_edge_of_a_bucket():
    told = histogram(10, 20, 30, 20, 15, 4, 1)
    exact, between = share_within(told, 1.0), share_within(told, 2.0)
    assert exact is not None and between is not None
    assert (exact.lower, exact.upper, exact.estimate) == (0.8, 0.8, 0.8)
    assert (between.lower, between.upper) == (0.8, 0.95)
    assert between.estimate == pytest.approx(0.9264, abs=1e-4)


@pytest.mark.parametrize("middle", [0.3, 0.8, 1.5])
@pytest.mark.parametrize("target", [0.4, 0.7, 1.8])
def test_between_two_bounds_a_log_normal_law_is_met(middle, target):
    """By a straight line between the shares up to three times as many would be late."""
    times = middle * np.exp(0.4 * np.random.default_rng(3).standard_normal(20_000))
    found = share_within(of_values(times), target)
    true = float(np.mean(times > target))
    assert found is not None
    assert 1.0 - found.estimate == pytest.approx(true, rel=0.25, abs=2e-3)


@pytest.mark.parametrize("count", [1, 2, 30])
def test_a_few_observations_of_one_bucket_are_neither_all_late_nor_all_in_time(count):
    found = share_within(histogram(0, 0, 0, 0, count), 2.0)
    assert found is not None
    assert 0.0 < found.estimate < 1.0


def test_share_beyond_the_last_bound_promises_nothing():
    found = share_within(histogram(50, 0, 0, 0, 0, 0, 50), 60.0)
    assert found is not None
    assert (found.lower, found.upper, found.estimate) == (0.5, 1.0, 0.5)


def test_nothing_observed_has_no_percentile():
    assert percentile_of(histogram(), 99) is None
    assert share_within(histogram(), 1.0) is None


@given(latencies.filter(bool), st.floats(1, 99.9))
def test_true_percentile_lies_within_the_bounds(values, percentile):
    found = percentile_of(of_values(values), percentile)
    assert found is not None
    true = float(np.percentile(values, percentile, method="inverted_cdf"))
    assert found.lower <= true <= found.upper
    assert found.lower <= found.estimate <= found.upper


@given(latencies.filter(bool), st.floats(0.01, 10))
def test_true_share_lies_within_the_bounds(values, target):
    found = share_within(of_values(values), target)
    assert found is not None
    true = sum(value <= target for value in values) / len(values)
    assert found.lower - 1e-9 <= true <= found.upper + 1e-9
    assert found.lower == found.upper or target not in BOUNDS


@pytest.mark.parametrize(
    ("value", "share"),
    [
        (1.0, 0.2),  # a bound: counted
        (2.5, 0.05),
        (math.sqrt(1.0 * 2.5), 0.1),  # half of the way, as logarithms: 0.2 falls to 0.05
        (5.0, 0.01),
        (60.0, 0.0),  # nobody is taken to be beyond what no bound tells
        (0.05, 1.0),  # in the first bucket, which has no lower bound to fall from
    ],
)
def test_the_tail_falls_off_by_a_power_between_two_bounds(value, share):
    told = histogram(0, 0, 60, 20, 15, 4, 1)
    assert tail_share(told, value) == pytest.approx(share)


def test_no_tail_falls_to_nothing_before_the_bound_beyond_which_nobody_is():
    told = histogram(0, 0, 60, 40)
    assert tail_share(told, math.sqrt(0.5 * 1.0)) == pytest.approx(0.4 * math.sqrt(LEAST_ABOVE))
    assert 0.0 < tail_share(told, 0.99) < tail_share(told, 0.7) < 0.4
    assert tail_share(told, 1.0) == 0.0
    assert tail_share(histogram(), 1.0) == 0.0


@pytest.mark.parametrize("tilt", [-6.0, -1.0, 1.0, 6.0])
def test_the_sum_tells_where_in_a_wide_bucket_observations_lie(tilt):
    ranks = np.random.default_rng(7).random(20_000)
    places = np.log1p(ranks * np.expm1(tilt)) / tilt
    found = Histogram((1.0, 2.0, 4.0, math.inf), (0.0, 2e4, 2e4, 2e4), float((1.0 + places).sum()))
    for place in (0.1, 0.5, 0.9):
        told = tilted_share(found, 1.0 + place)
        assert told == pytest.approx(float(np.mean(places > place)), abs=0.02)


def test_where_much_lies_above_the_bucket_or_no_sum_is_told_it_says_nothing():
    falling = Histogram((1.0, 2.0, 4.0, math.inf), (0.0, 70.0, 100.0, 100.0), 180.0)
    assert tilted_share(falling, 1.5) is None
    assert (
        tilted_share(replace(falling, counts=(0.0, 100.0, 100.0, 100.0), total=None), 1.5) is None
    )
    assert tilted_share(falling, 5.0) is None
