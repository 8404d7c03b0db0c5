"""What replicas, runs and endpoint pickers tell when they are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace

from poolwise.cluster.scraping import Look, Target
from poolwise.plan.gateway.reading import ENGINE as PICKER
from poolwise.plan.gateway.reading import QUEUE_ALONE, read, read_queue
from poolwise.plan.signals.adapters import Fault
from poolwise.plan.signals.sample import Sample
from poolwise.plan.steps.reading import ENGINE as RUN
from poolwise.plan.steps.sample import RunSample
from tests.handlers.fleet import answered
from tests.handlers.gateway import HOLDS
from tests.handlers.histories.virtual_time import VirtualLoop

LOADS = {"idle": 0.0, "calm": 0.5, "busy": 20.0}
"""Requests per second that each replica answers."""
SILENT = Fault("did not answer")


class Told:
    """The same of all replicas: ``state`` is one of :data:`LOADS`, or how they fail."""

    STATES = (*LOADS, "silent", "backwards", "slow", "some silent")

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.state = "calm"
        self.held_requests = 0.0
        self._requests = 0.0
        self._counted_at = loop.time()

    @property
    def is_broken(self) -> bool:
        """Whether nobody can tell what load there is."""
        return self.state not in LOADS

    async def look(self, targets: Iterable[Target]) -> Mapping[Target, Look]:
        if self.state == "slow":
            await asyncio.sleep(3.0)
        self._count()
        return {each: self._of(index, each) for index, each in enumerate(targets)}

    def _count(self) -> None:
        now = self._loop.time()
        self._requests += LOADS.get(self.state, 0.0) * (now - self._counted_at)
        self._counted_at = now

    def _of(self, index: int, target: Target) -> Look:
        now = self._loop.utc_now().timestamp()
        if target.engine in (PICKER, QUEUE_ALONE):
            return self._picker(target, now)
        if self.state in ("silent", "slow") or (self.state == "some silent" and not index):
            return SILENT
        if target.engine == RUN:
            steps = self._loop.time() / 5.0
            return RunSample(target.replica, now, steps, steps, steps * 5.0)
        return self._replica(target.replica, now)

    def _picker(self, target: Target, now: float) -> Look:
        if self.state in ("silent", "slow"):
            return SILENT
        pool = target.replica.removesuffix("-epp-0")
        labels = f'fairness_id="default",inference_pool="{pool}",priority="0"'
        text = f"{HOLDS}llm_d_epp_flow_control_queue_size{{{labels}}} {self.held_requests}\n"
        reader = read_queue if target.engine == QUEUE_ALONE else read
        return reader(text, target.replica, now)

    def _replica(self, replica: str, now: float) -> Sample:
        count = self._requests
        if self.state == "backwards":
            count = max(0.0, count - (self._loop.time() % 100.0))
        load = LOADS.get(self.state, 1.0)
        sample = replace(
            Sample(replica, now),
            running=8.0 * load,
            waiting=50.0 if load > 10.0 else 0.0,
            kv_cache_usage=min(0.95, load / 10.0),
        )
        return answered(sample, count, 0.1 if load < 10.0 else 8.0)
