"""Refusals: how long one lasts, whatever else asks for another attempt meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from poolwise.cluster.cache import Cache
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.queue import WorkQueue
from poolwise.handlers.planner import Planner, Target
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Key, Kind, Rejection
from poolwise.plan.observed import Decisions
from poolwise.settings import Settings

KEY = Key(Kind.TRAINING_JOB, "a", "bad")
HOUR_SECONDS = 3600.0


class Backoff(WorkQueue[Target]):
    """Whose delays the test gives."""

    def __init__(self, delays_seconds: Iterable[float]) -> None:
        super().__init__(1.0, 1.0, lambda: 1.0)
        self._delays_seconds = iter(delays_seconds)

    def backoff_seconds(self, key: Target) -> float:
        return next(self._delays_seconds)


def planner(*delays_seconds: float) -> Planner:
    return Planner(
        Cache(),
        Backoff(delays_seconds),
        lambda observed: Decisions((), {}),
        lambda plan, decisions: (),
        Settings(),
        Metrics(),
    )


def refuse(made: Planner) -> None:
    made.refuse(Rejection(KEY, "uid", 1, Reason.FORBIDDEN, "may not create jobs"))


async def _timers_that_are_due() -> None:
    await asyncio.sleep(0.01)


def test_a_refusal_ends_by_itself():
    async def refused() -> bool:
        made = planner(0.0)
        refuse(made)
        await _timers_that_are_due()
        return made.is_refused(KEY)

    assert not asyncio.run(refused())


def test_the_time_of_an_earlier_refusal_does_not_end_a_later_one():
    async def refused() -> bool:
        made = planner(0.0, HOUR_SECONDS)
        refuse(made)
        made.forgive(KEY)  # the object changed
        refuse(made)
        await _timers_that_are_due()
        return made.is_refused(KEY)

    assert asyncio.run(refused())


def test_nor_does_that_of_an_object_that_is_gone():
    async def refused() -> bool:
        made = planner(0.0, HOUR_SECONDS)
        refuse(made)
        made.forget(KEY)
        refuse(made)  # another one of its name
        await _timers_that_are_due()
        return made.is_refused(KEY)

    assert asyncio.run(refused())
