"""Time that passes only where everybody waits: an hour of an operator's life takes no time.

All clocks that the operator reads go by it, threads included: what would run in one runs at once.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

BEGIN = datetime(2026, 11, 21, tzinfo=UTC)
_BEGIN_SECONDS = 1000.0
_UTC_NOW = (
    "poolwise.cluster.clock.utc_now",
    "poolwise.handlers.story.utc_now",
    "tests.fake_kube.utc_now",
)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Where nothing is left to do, it is later at once."""

    def __init__(self) -> None:
        self.seconds = _BEGIN_SECONDS
        self.errors: list[dict[str, Any]] = []
        """What nobody caught."""
        super().__init__(_Skipping(self))
        self.set_default_executor(_AtOnce())
        self.set_exception_handler(lambda loop, context: self.errors.append(context))

    def time(self) -> float:
        return self.seconds

    def utc_now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.seconds - _BEGIN_SECONDS)


class _Skipping(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("everybody waits for something that never comes")
        self._loop.seconds += timeout
        return super().select(0)


class _AtOnce(ThreadPoolExecutor):
    def submit(self, work: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*args, **more))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def virtual_time() -> Iterator[VirtualLoop]:
    """A loop by whose time all clocks go meanwhile."""
    loop = VirtualLoop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.monotonic", loop.time)
        for name in _UTC_NOW:
            patch.setattr(name, loop.utc_now)
        try:
            yield loop
        finally:
            loop.close()


def played(story: Callable[[VirtualLoop], Coroutine[Any, Any, None]]) -> None:
    """Play ``story`` to its end, and whatever it started."""
    with virtual_time() as loop:
        try:
            loop.run_until_complete(story(loop))
        finally:
            _end(loop)


def _end(loop: VirtualLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
