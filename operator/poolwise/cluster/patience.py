"""How long to wait before the API server is asked again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from poolwise.cluster import clock
from poolwise.errors import ClusterError, Unavailable

RETRY_AFTER_LIMIT_SECONDS = 60.0
"""What we wait at a server's word: API servers ask for seconds, and what stands before them may ask
for days."""
_LASTING_SECONDS = 60.0
"""Failures so far apart have nothing to do with each other."""


class Patience:
    """Delays between attempts to reach the API server, or what it does not let us reach yet: for
    ever, but never so long that a user wonders whether anybody still tries."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain((1, 1, 2, 3, 5), itertools.repeat(8))


def pause_seconds(error: ClusterError, usual_seconds: float) -> float:
    """How long to wait after ``error``: what the server asks for, else about as long as usual."""
    asked = error.retry_after_seconds if isinstance(error, Unavailable) else None
    return asked or usual_seconds * clock.jitter()


def retry_after_seconds(header: str) -> float | None:
    """What a header ``Retry-After`` asks for, within bounds; None for a date, or no number."""
    if not (header.isascii() and header.isdigit()):
        return None
    return min(float(header), RETRY_AFTER_LIMIT_SECONDS)


class Relists:
    """Of one watch that is listed anew because it went on from too old a version: at once, and
    later and later where that does not help."""

    def __init__(self, monotonic_seconds: Callable[[], float]) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._newest_at: float | None = None
        self._pauses = iter(Patience())

    def pause_seconds(self) -> float:
        """Before the next one, which is counted."""
        before, self._newest_at = self._newest_at, self._monotonic_seconds()
        if before is None or self._newest_at - before > _LASTING_SECONDS:
            self._pauses = iter(Patience())
            return 0.0
        return next(self._pauses) * clock.jitter()
