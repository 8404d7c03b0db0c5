"""Rivals with settings of other traces: what is chosen has not seen the trace it is judged on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bench.autoscale import borrowed
from bench.autoscale.borrowed import Found, Shown, best, line


def _shown(attainment: float, over_static: float) -> Shown:
    return Shown(attainment, attainment >= 0.99, over_static)


CHEAP = (_shown(0.995, 1.0), _shown(0.80, 0.8), _shown(0.992, 1.1))
"""Misses its aim on the second trace."""
SAFE = (_shown(0.999, 1.5), _shown(0.995, 1.2), _shown(0.999, 1.6))


def test_the_trace_itself_says_nothing():
    """Cheap does as well as safe on the others and costs less, however bad it is on the second."""
    assert best([SAFE, CHEAP], unseen=1) is CHEAP
    assert best([SAFE, CHEAP], unseen=0) is SAFE


@pytest.mark.parametrize("place", range(3))
def test_a_trace_lends_its_setting_to_others_alone(place: int):
    """The one that is perfect on all traces is not for the trace that it was found on."""
    perfect = tuple(_shown(1.0, 0.5) for _ in range(3))
    tries: list[Sequence[Shown]] = [SAFE, SAFE, SAFE, SAFE]
    tries[place + 1] = perfect
    for judged in range(3):
        expected = SAFE if judged == place else perfect
        assert borrowed._borrowed(tries, judged) is expected[judged]


def test_costs_are_told_of_aims_that_are_attained():
    told = line(Found("kpa", CHEAP, SAFE)).splitlines()
    assert told[0].endswith("| **99.90 @ 1.60** | 3 of 3 | 1.42 |")
    assert "| 80.00 @ 0.80 |" in told[1]
    assert told[1].endswith("| 2 of 3 | 1.05 |")
