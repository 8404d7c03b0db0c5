"""Looks at many services side by side, so that each is decided as soon as its own replicas have
told: one whose replicas hang costs others nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from poolwise.cluster.scraping import Reply, Source, Target
from poolwise.cluster.under_way import UnderWay
from poolwise.handlers.turn import Turn
from poolwise.plan.decision import Key
from poolwise.plan.signals.sample import Sample

_log = structlog.get_logger(__name__)

Take = Callable[[Turn, Mapping[Target, Reply]], Awaitable[None]]
"""What is made of a look at one service."""


class Lookout:
    """Knows who is looked at just now (``under_way``), and what was seen last (``samples``)."""

    def __init__(self, take: Take, is_together: bool) -> None:
        """:param is_together: one server is asked for all: it has all the answers, or none."""
        self._take = take
        self._is_together = is_together
        self.under_way: UnderWay[Key] = UnderWay()
        self._deciding = asyncio.Lock()  # decisions take processors, of which there are few
        self.samples: dict[str, Sample] = {}
        """Newest look at each replica, by uid of its pod."""

    def begin(self, turns: Sequence[Turn], source: Source, tasks: asyncio.TaskGroup) -> None:
        """A round; who still waits for the looks of the round before is left alone."""
        there = {target.uid for turn in turns for target in turn.targets}
        for uid in self.samples.keys() - there:
            del self.samples[uid]
        self.look(turns, source, tasks)

    def look(self, turns: Sequence[Turn], source: Source, tasks: asyncio.TaskGroup) -> None:
        """At some of them, beside the rounds."""
        free = [turn for turn in turns if turn.key not in self.under_way]
        for group in [free] if self._is_together else [[turn] for turn in free]:
            for turn in group:
                self.under_way.begin(turn.key)
            tasks.create_task(self._look_at(group, source))

    async def _look_at(self, turns: Sequence[Turn], source: Source) -> None:
        """Never raises: a task that fails would end all others."""
        try:
            told = await source([target for turn in turns for target in turn.everyone])
            for target, look in told.items():
                self.samples.pop(target.uid, None)
                if isinstance(look, Sample):
                    self.samples[target.uid] = look
            for turn in turns:
                await self._taken(turn, told)
        except Exception:
            _log.exception("a look failed; tried again with the next round")
        finally:
            for turn in turns:
                self.under_way.end(turn.key)

    async def _taken(self, turn: Turn, told: Mapping[Target, Reply]) -> None:
        try:
            async with self._deciding:
                await self._take(turn, told)
        except Exception:
            _log.exception("scaling failed on one service", workload=str(turn.key))
