"""How the edge of a fleet grows with its size."""

import math

import pytest

from bench.autoscale.swings import dispersion, slope
from tests.bench.autoscale_cases import step_scene


def test_the_slope_is_that_of_the_law():
    law = [(peak, peak * math.exp(0.7 / math.sqrt(peak))) for peak in (2.5, 5.0, 10.0, 20.0)]
    assert slope(law) == pytest.approx(0.7)
    assert slope([(peak, 0.8 * peak) for peak in (5.0, 10.0, 40.0)]) == pytest.approx(0.0)


def test_dispersion_is_that_of_the_looks_of_the_replay():
    found = dispersion(step_scene())
    assert found.looks > 10.0
    assert 0.7 < found.root < 1.5  # by chance, but for one step
