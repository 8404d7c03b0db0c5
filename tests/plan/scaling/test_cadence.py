"""Looks that are closer together tell no more of the same minutes, and no less."""

import numpy as np
import pytest

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


def test_the_same_swings_from_look_to_look_are_learned_as_fast():
    """However many there are in a minute: what was believed before gives way to as many minutes."""
    found = []
    for seconds in SECONDS:
        known = Dispersion()
        for look in range(4 * MINUTES * looks(seconds)):
            known = known.after(100.0, 160.0 if look % 2 else 100.0, seconds)
        found.append(known.root)
    often, usual = found
    assert often == pytest.approx(usual, rel=0.01)
    assert usual > 1.2
