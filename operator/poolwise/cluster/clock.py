"""Time and chance. Only the shell has them; decisions get ``now`` and seeds as arguments."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta

_JITTER = 0.2
_BEGAN_AT, _BEGAN_SECONDS = datetime.now(UTC), time.monotonic()


def utc_now() -> datetime:
    """The current time, with its zone: as this machine had it when the process began, and steady
    since then.

    Rates, ages and limits are told by it. Were it set forward by an hour, a service under full load
    would seem to have got hardly any requests since the last look, and each pod that starts to be
    late; were it set back, what was done lately would stay so for an hour.
    """
    return _BEGAN_AT + timedelta(seconds=time.monotonic() - _BEGAN_SECONDS)


def set_by_seconds() -> float:
    """By how much this machine's clock was set since the process began; back is less than 0."""
    return (datetime.now(UTC) - utc_now()).total_seconds()


def jitter() -> float:
    """A factor around 1, so that what is periodic or failed together does not come together."""
    return random.uniform(1 - _JITTER, 1 + _JITTER)
