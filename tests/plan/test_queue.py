"""What the queue tells of moments to come."""

from __future__ import annotations

import pytest

from poolwise.plan.queue import rounded_moment
from tests.plan.cluster_given import NOW

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


def test_who_cannot_tell_says_nothing():
    assert rounded_moment(NOW, None) is None
