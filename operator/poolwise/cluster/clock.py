"""Time and chance. Only the shell has them; decisions get ``now`` and seeds as arguments."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime

_JITTER = 0.2


def utc_now() -> datetime:
    """The current time, with its zone."""
    return datetime.now(UTC)


def jitter() -> float:
    """A factor around 1, so that what is periodic or failed together does not come together."""
    return random.uniform(1 - _JITTER, 1 + _JITTER)


class SetBack:
    """Notices that the wall clock was set back, against a clock that never is.

    What was seen by then lies in the future from then on: rates have no time to come in, and what
    was done lately stays lately for as long as the clock was ahead.
    """

    def __init__(self, now: Callable[[], datetime], monotonic_seconds: Callable[[], float]) -> None:
        self._now = now
        self._monotonic_seconds = monotonic_seconds
        self._ahead_seconds = self._offset_seconds()

    def seconds(self) -> float:
        """By how much, at the most, since this object was made; 0 while it goes forward."""
        offset_seconds = self._offset_seconds()
        self._ahead_seconds = max(self._ahead_seconds, offset_seconds)
        return self._ahead_seconds - offset_seconds

    def _offset_seconds(self) -> float:
        return self._now().timestamp() - self._monotonic_seconds()
