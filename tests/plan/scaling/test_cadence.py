"""Looks that are closer together tell no more of the same minutes, and no less."""

from itertools import pairwise

import numpy as np
import pytest

from poolwise.plan.scaling.level import level
from poolwise.plan.scaling.memory import Bin
from poolwise.plan.scaling.persistence import Persistence
from poolwise.plan.scaling.swings import Dispersion

SECONDS = (5.0, 15.0)
MINUTES = 20


def looks(seconds):
    """How many there are of each quarter of a minute."""
    return round(15.0 / seconds)


@pytest.mark.parametrize("told", [(1.0, 2.0), (2.0, 1.0), (3.0, 3.0)])
def test_a_forecast_that_fails_for_a_minute_teaches_as_much(told):
    found = []
    for seconds in SECONDS:
        known = Persistence()
        for foreseen, came in ((1.0, 1.0), told, (2.0, 2.0)):
            for _ in range(4 * looks(seconds)):
                known = known.after(foreseen, came, seconds)
        found.append((known.slope, known.growth, known.mean))
    often, usual = np.array(found)
    assert often == pytest.approx(usual, rel=0.02)


def test_bursts_that_last_longer_than_a_look_are_bursts():
    """Every other quarter of a minute nothing comes; within each, the looks are alike."""
    roots, dispersions = [], []
    for seconds in SECONDS:
        bins, known = list[Bin](), Dispersion()
        for quarter in range(4 * MINUTES):
            for _ in range(looks(seconds)):
                at, rate = len(bins) * seconds, 8.0 * (quarter % 2)
                bins.append(Bin(at, seconds, rate * seconds))
        for last, each in pairwise(bins):
            known = known.after(last.arrivals, each.arrivals, seconds)
        roots.append(known.root)
        dispersions.append(level(bins).deviation)
    assert roots[0] < roots[1]  # neighbours are alike: whoever asks it joins them first
    assert dispersions[0] == pytest.approx(dispersions[1], rel=0.1)
