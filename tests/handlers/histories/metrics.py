"""What replicas, runs and endpoint pickers tell when they are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace

from poolwise.cluster.scraping import Reply, Target
from poolwise.plan.gateway.reading import ENGINE as PICKER
from poolwise.plan.gateway.reading import QUEUE_ALONE, read, read_queue
from poolwise.plan.signals.adapters import Fault
from poolwise.plan.signals.sample import Sample
from poolwise.plan.steps.reading import ENGINE as RUN
from poolwise.plan.steps.sample import RunSample
from tests.handlers.fleet import answered
from tests.handlers.gateway import HOLDS
from tests.handlers.histories.documents import SERVICES
from tests.handlers.histories.virtual_time import VirtualLoop

LOADS = {"idle": 0.0, "calm": 0.5, "busy": 20.0}
"""Requests per second that each replica answers."""
SILENT = Fault("did not answer")


class Told:
    """The same of all replicas of a service: one of :data:`LOADS`, or how they fail."""

    STATES = (*LOADS, "silent", "backwards", "slow", "some silent")

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.states: dict[str, str] = {}
        """By service."""
        self.tell("calm")
        self.held_requests = 0.0
        self._requests = dict.fromkeys(SERVICES, 0.0)
        self._counted_at = loop.time()

    def tell(self, state: str) -> None:
        """The same of all services, and of runs."""
        self._of_runs = state
        self.states = dict.fromkeys(SERVICES, state)

    @property
    def is_broken(self) -> bool:
        """Whether nobody can tell what load there is of any service."""
        return not LOADS.keys() & self.states.values()

    async def look(self, targets: Iterable[Target]) -> Mapping[Target, Reply]:
        targets = list(targets)
        if any(self._state(each) == "slow" for each in targets):
            await asyncio.sleep(3.0)
        self._count()
        return {each: self._of(index, each) for index, each in enumerate(targets)}

    def _count(self) -> None:
        now = self._loop.time()
        for service, state in self.states.items():
            self._requests[service] += LOADS.get(state, 0.0) * (now - self._counted_at)
        self._counted_at = now

    def _of(self, index: int, target: Target) -> Reply:
        now, state = self._loop.utc_now().timestamp(), self._state(target)
        if target.engine in (PICKER, QUEUE_ALONE):
            return self._picker(target, now)
        if state in ("silent", "slow") or (state == "some silent" and not index):
            return SILENT
        if target.engine == RUN:
            steps = self._loop.time() / 5.0
            return RunSample(target.replica, now, steps, steps, steps * 5.0)
        return self._replica(target.replica, state, now)

    def _state(self, target: Target) -> str:
        return self.states.get(_service(target.replica), self._of_runs)

    def _picker(self, target: Target, now: float) -> Reply:
        if self._state(target) in ("silent", "slow"):
            return SILENT
        pool = target.replica.removesuffix("-epp-0")
        labels = f'fairness_id="default",inference_pool="{pool}",priority="0"'
        text = f"{HOLDS}llm_d_epp_flow_control_queue_size{{{labels}}} {self.held_requests}\n"
        reader = read_queue if target.engine == QUEUE_ALONE else read
        return reader(text, target.replica, now)

    def _replica(self, replica: str, state: str, now: float) -> Sample:
        count = self._requests[_service(replica)]
        if state == "backwards":
            count = max(0.0, count - (self._loop.time() % 100.0))
        load = LOADS.get(state, 1.0)
        sample = replace(
            Sample(replica, now),
            running=8.0 * load,
            waiting=50.0 if load > 10.0 else 0.0,
            kv_cache_usage=min(0.95, load / 10.0),
        )
        return answered(sample, count, 0.1 if load < 10.0 else 8.0)


def _service(replica: str) -> str:
    """Whose pod has that name."""
    return replica.partition("-")[0]
