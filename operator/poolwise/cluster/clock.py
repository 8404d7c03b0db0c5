"""Time and chance. Only the shell has them; decisions get ``now`` and seeds as arguments."""

from __future__ import annotations

import random
from datetime import UTC, datetime

_JITTER = 0.2


def utc_now() -> datetime:
    """The current time, with its zone."""
    return datetime.now(UTC)


def jitter() -> float:
    """A factor around 1, so that what is periodic or failed together does not come together."""
    return random.uniform(1 - _JITTER, 1 + _JITTER)
