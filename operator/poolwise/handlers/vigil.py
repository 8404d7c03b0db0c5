"""Looks at the queues before services that have no replica, far more often than at services that
have some: the first request waits for whoever sees it.

One small answer each; who hangs keeps its own next look, and nobody else's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

import structlog

from poolwise.cluster.scraping import Reply, Source, Target
from poolwise.cluster.under_way import UnderWay
from poolwise.plan.decision import Key
from poolwise.plan.gateway.reading import PickerTold

_log = structlog.get_logger(__name__)


class Vigil:
    """``watched`` are those who sleep, with whom to ask; ``wake`` is told of each whose gateway
    holds a request; ``under_way`` are those whose answer is waited for."""

    def __init__(self, source: Source, wake: Callable[[Key, asyncio.TaskGroup], None]) -> None:
        self._source = source
        self._wake = wake
        self.watched: dict[Key, tuple[Target, ...]] = {}
        self.under_way: UnderWay[Key] = UnderWay()

    def begin(self, tasks: asyncio.TaskGroup) -> None:
        """A round; who still waits for the answers to the round before is left alone."""
        for key in [key for key in self.watched if key not in self.under_way]:
            self.under_way.begin(key)
            tasks.create_task(self._look(key, tasks))

    async def _look(self, key: Key, tasks: asyncio.TaskGroup) -> None:
        """Never raises: a task that fails would end all others."""
        try:
            told = await self._source(self.watched.get(key, ()))
            if key in self.watched and _holds_any(told):
                self._wake(key, tasks)
        except Exception:
            _log.exception("a look at a gateway failed; tried again soon", workload=str(key))
        finally:
            self.under_way.end(key)


def _holds_any(told: Mapping[Target, Reply]) -> bool:
    queues: Iterable[PickerTold] = (each for each in told.values() if isinstance(each, PickerTold))
    return any(sum(each.queues.values()) > 0.0 for each in queues)
