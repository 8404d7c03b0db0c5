"""What holds a wish back: after a leap beyond all that ever came little is let go for a while."""

from __future__ import annotations

import pytest

from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.restraint import LEAPT_SECONDS, restrained

NOW = 10_000.0
HOLD_SECONDS = 120.0


def held(wanted: float, memory: Memory, there: float = 10.0) -> float:
    return restrained(memory, NOW, there, wanted, HOLD_SECONDS).replicas


@pytest.mark.parametrize(
    ("ago_seconds", "wanted", "left"),
    [
        pytest.param(None, 6.0, 6.0, id="no leap"),
        pytest.param(LEAPT_SECONDS - 1.0, 6.0, 10.0, id="a leap not long ago"),
        pytest.param(LEAPT_SECONDS - 1.0, 5.0, 10.0, id="half of it idles"),
        pytest.param(LEAPT_SECONDS - 1.0, 4.0, 8.0, id="more than half idles"),
        pytest.param(LEAPT_SECONDS, 6.0, 6.0, id="a leap long ago"),
    ],
)
def test_after_a_leap_twice_as_much_as_is_needed_is_kept(ago_seconds, wanted, left):
    leapt = None if ago_seconds is None else NOW - ago_seconds
    assert held(wanted, Memory(leapt_seconds=leapt)) == left


def test_a_leap_keeps_nobody_from_asking_for_more_and_says_why_none_leave():
    leapt = Memory(leapt_seconds=NOW - 1.0)
    assert held(14.0, leapt) == 14.0
    told = restrained(leapt, NOW, 10.0, 7.0, HOLD_SECONDS)
    assert "leapt beyond all that ever came" in told.why


def test_what_a_leap_left_idle_goes_though_direction_changed_twice_before():
    """A spike of a minute asked for forty; fourteen are needed, and twice as many kept."""
    turns, now_seconds = (0.0, 1200.0), 2400.0
    spiked = Memory(turns=turns, direction=1, leapt_seconds=now_seconds - 600.0)
    found = restrained(spiked, now_seconds, 40.0, 14.0, 120.0)
    assert found.replicas == 28.0
    assert restrained(spiked, now_seconds, 40.0, 21.0, 120.0).replicas == 40.0
