"""The present rate of arrivals, and its growth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from poolwise.plan.scaling.level import growth, level
from poolwise.plan.scaling.memory import Bin


def test_growth_is_that_of_the_rate_over_a_start():
    def growth_of(rates, horizon_seconds=60.0):
        bins = [Bin(15.0 * place, 15.0, 15.0 * rate) for place, rate in enumerate(rates)]
        return growth(bins, horizon_seconds)

    assert growth_of([100.0] * 40) == 0.0
    assert growth_of([50.0] * 40 + [100.0] * 4) == pytest.approx(math.log(2.0), rel=0.2)
    assert growth_of([50.0] * 40 + [100.0] * 20) == 0.0
    assert growth_of([50.0] * 7 + [100.0]) == 0.0  # not two starts old
    assert growth_of([0.0] * 40 + [100.0] * 4) == 0.0
    assert growth_of([]) == 0.0
    late = [50.0] * 60 + [100.0] * 20
    assert growth_of(late, 3600.0) == growth_of(late, 500.0) == pytest.approx(math.log(2.0), 0.2)


def test_the_level_is_taken_over_as_long_as_it_has_not_changed():
    steady = [Bin(15.0 * i, 15.0, 150.0 + 5.0 * (-1) ** i) for i in range(40)]
    assert level(steady).seconds >= 500.0
    jumped = [*steady, *(Bin(15.0 * (40 + i), 15.0, 450.0) for i in range(3))]
    found = level(jumped)
    assert found.mid == pytest.approx(30.0, rel=0.05) and found.seconds <= 60.0


def test_one_look_tells_a_change_that_the_mean_of_two_hides():
    """22 a second after 16: the mean of both is within two deviations of the newest look's, while
    what came before lies four away from it."""
    before = [Bin(15.0 * i, 15.0, 240.0 + 4.0 * (-1) ** i) for i in range(40)]
    found = level([*before, Bin(600.0, 15.0, 330.0)])
    assert found.mid == pytest.approx(22.0) and found.seconds == 15.0


@pytest.mark.parametrize("seconds", [5.0, 10.0, 15.0])
def test_ten_seconds_tell_all_of_a_jump(seconds):
    """A window that reached further back would be half of before it."""
    before = [Bin(seconds * i, seconds, 20.0 * seconds) for i in range(90)]
    looks = round(max(10.0, seconds) / seconds)
    jumped = [*before, *(Bin(seconds * (90 + i), seconds, 40.0 * seconds) for i in range(looks))]
    assert level(jumped).mid == pytest.approx(40.0)


def test_chance_alone_seldom_shortens_the_level():
    generator = np.random.default_rng(0)
    seconds = []
    for _ in range(200):
        counts = generator.poisson(150.0, 44)
        found = level([Bin(15.0 * i, 15.0, float(count)) for i, count in enumerate(counts)])
        seconds.append(found.seconds)
    assert np.median(seconds) > 400.0 and np.mean(np.array(seconds) < 30.0) < 0.15
