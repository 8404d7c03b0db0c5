"""What is measured corrects what is predicted: within bounds, for a while, whatever the order."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.model.correction import (
    BOUND,
    HALF_LIFE_SECONDS,
    UNCORRECTED,
    WINDOW,
    Correction,
    Phase,
    Sample,
    corrected,
)
from poolwise.model.prediction import Interval

NOW = 1.8e9
PHASES = st.sampled_from(list(Phase))
RATIOS = st.floats(0.5, 2.0)
ANY_RATIOS = st.floats(allow_nan=True, allow_infinity=True)
STEP = Interval.around(10.0, 0.15)


def seen(ratios: list[float], phase: Phase = Phase.TRAINING, at: float = NOW) -> Correction:
    return Correction(phase).with_samples(Sample(at, ratio) for ratio in ratios)


@given(st.lists(ANY_RATIOS), PHASES, st.floats(-1e9, 1e9))
def test_the_factor_is_bounded_whatever_is_measured(
    ratios: list[float], phase: Phase, age: float
) -> None:
    estimate = seen(ratios, phase).at(NOW + age)
    assert 1 / BOUND <= estimate.factor <= BOUND * (1 + 1e-12)
    assert 0 < estimate.narrowing <= 1


@given(st.lists(RATIOS, min_size=1, max_size=WINDOW), PHASES)
def test_it_decays_towards_nothing(ratios: list[float], phase: Phase) -> None:
    known = seen(ratios, phase)
    estimates = [known.at(NOW + age * HALF_LIFE_SECONDS) for age in (0, 1, 2, 4, 8, 16, 64, 4096)]
    for newer, older in pairwise(estimates):
        assert abs(older.log_factor) <= abs(newer.log_factor)
        assert older.narrowing >= newer.narrowing
    assert estimates[-1] == UNCORRECTED


@given(st.lists(RATIOS, min_size=1, max_size=WINDOW).flatmap(lambda r: st.permutations(r)), PHASES)
def test_the_order_does_not_matter(ratios: list[float], phase: Phase) -> None:
    one_by_one = Correction(phase)
    for ratio in ratios:
        one_by_one = one_by_one.with_samples([Sample(NOW, ratio)])
    assert one_by_one.at(NOW) == seen(sorted(ratios), phase).at(NOW)


@given(
    st.floats(0.6, 1.6),
    st.lists(st.floats(0.97, 1.03), min_size=11, max_size=11),
    st.lists(st.floats(1e-6, 1e6), max_size=5),
)
def test_less_than_a_third_of_outliers_moves_it_no_further_than_the_others_reach(
    centre: float, good: list[float], outliers: list[float]
) -> None:
    """The median of all lies between the least and the largest of the others."""
    ratios = [centre * each for each in good]
    low, high = (seen([each] * (11 + len(outliers))).at(NOW) for each in (min(ratios), max(ratios)))
    found = seen([*ratios, *outliers]).at(NOW)
    assert low.log_factor - 1e-9 <= found.log_factor <= high.log_factor + 1e-9


@pytest.mark.parametrize("phase", list(Phase))
def test_the_interval_moves_and_shrinks_with_each_measurement(phase: Phase) -> None:
    ranges = [corrected(STEP, seen([1.2] * count, phase).at(NOW)) for count in (0, 1, 3, WINDOW)]
    assert ranges[0] == STEP
    for before, after in pairwise(ranges):
        assert before.mid < after.mid < 12.0
        assert after.spread < before.spread
        assert after.low < after.mid < after.high


def test_what_has_no_length_is_not_corrected() -> None:
    slower = seen([1.2]).at(NOW)
    for empty in (Interval(0.0, 0.0, 0.0), Interval(math.inf, math.inf, math.inf)):
        assert corrected(empty, slower) == empty


def test_only_the_newest_are_kept() -> None:
    old = seen([2.0] * WINDOW, at=NOW - 60)
    assert old.with_samples(Sample(NOW, 1.0) for _ in range(WINDOW)) == seen([1.0] * WINDOW)
