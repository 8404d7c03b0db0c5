"""A work queue of keys: each key waits at most once and is worked on by one worker at a time.

The semantics are client-go's: a key added while it is being worked on runs again afterwards, and
a key that failed comes back later and later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from poolwise.cluster.under_way import UnderWay

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """Keys that need a look.

    ``jitter`` gives a factor for each delay, so that what failed together does not return
    together.
    """

    def __init__(
        self, retry_seconds: float, retry_limit_seconds: float, jitter: Callable[[], float]
    ) -> None:
        self._retry_seconds = retry_seconds
        self._retry_limit_seconds = retry_limit_seconds
        self._jitter = jitter
        self._ready: asyncio.Queue[K] = asyncio.Queue()
        self._waiting: set[K] = set()
        self.active: UnderWay[K] = UnderWay()
        """Keys that a worker has."""
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}

    def __len__(self) -> int:
        """Keys that wait for a worker, without those that wait for their time."""
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """Nothing waits, nothing runs."""
        return not self._waiting and not self.active

    def add(self, key: K) -> None:
        """Work on ``key`` soon."""
        if key not in self._waiting:
            self._waiting.add(key)
            if key not in self.active:
                self._ready.put_nowait(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Work on ``key`` in so many seconds, give or take the jitter, or sooner if asked again."""
        self._add_in(key, seconds * self._jitter())

    def _add_in(self, key: K, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        when = loop.time() + seconds
        known = self._timers.get(key)
        if known is None or known.when() > when:
            if known is not None:
                known.cancel()
            self._timers[key] = loop.call_at(when, self._ripen, key)

    def _ripen(self, key: K) -> None:
        del self._timers[key]
        self.add(key)

    def backoff_seconds(self, key: K) -> float:
        """Count a failure of ``key``; how long to wait before the next attempt."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        # 2**20 is beyond any limit; the exponent must not grow with a key that fails for weeks.
        delay = self._retry_seconds * float(2 ** min(failures - 1, 20))
        return min(delay, self._retry_limit_seconds)

    def add_failed(self, key: K, at_least_seconds: float | None = None) -> None:
        """Work on ``key`` again, later with each failure."""
        delay_seconds = self.backoff_seconds(key) * self._jitter()
        self._add_in(key, max(delay_seconds, at_least_seconds or 0.0))

    def forgive(self, key: K) -> None:
        """It worked: the next failure starts from the shortest delay."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key; the caller owes a :meth:`done`."""
        await asyncio.sleep(0)  # asyncio's own queue never gives way while it holds anything
        key = await self._ready.get()
        self._waiting.discard(key)
        self.active.begin(key)
        return key

    def done(self, key: K) -> None:
        """Finish with ``key``; it runs again if it was added meanwhile."""
        self.active.end(key)
        if key in self._waiting:
            self._ready.put_nowait(key)
