"""What the queue tells of moments to come."""

from __future__ import annotations

import pytest

from poolwise.plan.joint.problem import Reservation
from poolwise.plan.queueing.queue import rounded_moment, worth_keeping
from tests.plan.cluster_given import NOW
from tests.plan.joint.cluster_given import aims, job, option, pool

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


@pytest.mark.parametrize(
    ("wait_seconds", "step_seconds"),
    [
        pytest.param(-5 * MINUTE, MINUTE, id="overdue"),
        pytest.param(7 * MINUTE, MINUTE, id="minutes"),
        pytest.param(40 * MINUTE, 5 * MINUTE, id="less-than-an-hour"),
        pytest.param(4 * HOUR, HOUR / 2, id="hours"),
        pytest.param(18 * HOUR, 3 * HOUR, id="most-of-a-day"),
        pytest.param(30 * DAY, DAY, id="weeks"),
    ],
)
def test_a_moment_is_told_as_exactly_as_it_is_near(wait_seconds, step_seconds):
    """So that the text stays the same while the prediction does."""
    at = NOW.timestamp() + wait_seconds + 1.0
    found = rounded_moment(NOW, at)
    assert found is not None
    assert found.timestamp() % step_seconds == 0.0
    assert at <= found.timestamp() < at + step_seconds
    assert found.timestamp() - at > step_seconds / 2, "no finer than its step"


@pytest.mark.parametrize(
    "at",
    [
        pytest.param(None, id="not-known"),
        pytest.param(40_000 * 365 * DAY, id="beyond-the-calendar"),
        pytest.param(1e300, id="beyond-all-clocks"),
    ],
)
def test_who_cannot_tell_says_nothing(at):
    assert rounded_moment(NOW, at) is None


@pytest.mark.parametrize(
    ("other", "free", "is_kept"),
    [
        pytest.param(option("q", 9, objective=aims(1.0)), 8, False, id="as good"),
        pytest.param(option("q", 9, objective=aims(1.001)), 8, True, id="worse"),
        pytest.param(option("q", 9, objective=aims(1.0)), 7, True, id="full"),
        pytest.param(option("q", 9, objective=aims(1.0), is_blocked=True), 8, True, id="no cores"),
    ],
)
def test_what_is_booked_is_kept_unless_what_is_as_good_has_room_at_once(other, free, is_kept):
    here = option("p", 9, objective=aims(1.0))
    booked = Reservation("run", here, HOUR)
    found = worth_keeping([booked], [job("run", here, other)], [pool("p", 0), pool("q", free)])
    assert list(found) == [booked] * is_kept
