"""A cluster with the operator in it, in virtual time; what happens there is done by its methods."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import structlog

from poolwise.api.validation import defaulted, problems
from poolwise.cluster.resources import NODES, PODS, WORKLOADS
from poolwise.handlers.decider import decider
from poolwise.plan.observed import Decisions, Observed
from poolwise.settings import Settings
from tests.fake_kube import Document
from tests.handlers.histories import documents
from tests.handlers.histories.autoscaler import Autoscaler
from tests.handlers.histories.claims import claimed_twice
from tests.handlers.histories.cluster import USUAL_SECONDS, Cluster
from tests.handlers.histories.controllers import Controllers
from tests.handlers.histories.metrics import Told
from tests.handlers.histories.passes import Passes
from tests.handlers.histories.process import Process
from tests.handlers.histories.queues import Kueue
from tests.handlers.histories.trainer import Trainer
from tests.handlers.histories.virtual_time import VirtualLoop

STEP_SECONDS = 4.0
"""Between two looks of each controller."""
SETTINGS = Settings(
    accrual_seconds=0,
    may_move=True,
    may_preempt=True,
    settle_seconds=120.0,  # an hour in life: no history is as long
    # Rarer than in life: most of the time goes into looks of which each says the same.
    scaling_interval_seconds=60,
    training_interval_seconds=60,
    gateway_seconds=10,
    discovery_seconds=20,
    # A safety net in life. Here events alone ask for what they change, or nobody does.
    resync_seconds=1e9,
)


def decides_anew(observed: Observed) -> Decisions:
    """What a process decides that has just started."""
    return decider(SETTINGS)(observed)


class World:
    """``broken`` are promises that were, by planning passes and writes."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.cluster = Cluster()
        self.controllers = Controllers(self.cluster, loop)
        self.kueue = Kueue(self.cluster, loop)
        self.trainer = Trainer(self.cluster, loop)
        self.autoscaler = Autoscaler(self.cluster, loop)
        self.told = Told(loop)
        self.logged: list[dict[str, Any]] = []
        """By the operator, as errors."""
        self.paused_at: dict[str, float] = {}
        """By uid of workloads."""
        self.broken: list[str] = []
        self.cluster.on_made = lambda made: self.broken.extend(claimed_twice(self.cluster, made))
        self.process = self._new_process()

    async def begin(self) -> None:
        """With a few nodes and nothing on them."""
        structlog.configure(processors=[self._log], cache_logger_on_first_use=False)
        for name in ("h0", "h1", "a0"):
            self.cluster.put(documents.node(name))
        self.cluster.put(documents.priority_class("high", 1000))
        self.cluster.put(documents.priority_class("low", -10))
        await self.process.start()
        self._controlling = asyncio.create_task(self._control())

    def _new_process(self) -> Process:
        decide, passes = decider(SETTINGS), Passes(self.cluster, self.broken)

        def judged(observed: Observed) -> Decisions:
            decisions = decide(observed)
            passes.see(observed, decisions)
            return decisions

        return Process(self.cluster, judged, SETTINGS, self.told.look)

    async def step_down(self, carries_out: bool) -> None:
        """Nobody leads; ``carries_out``: writes on their way arrive even so."""
        self.cluster.carries_out = carries_out
        await self.process.end()
        self.cluster.carries_out = False

    async def restart(self) -> None:
        """Another process takes over."""
        await self.process.end()
        self.process = self._new_process()
        await self.process.start()

    async def _control(self) -> None:
        while True:
            self.trainer.step()
            self.controllers.step()
            self.kueue.step()
            self.autoscaler.step()
            await asyncio.sleep(STEP_SECONDS)

    def _log(self, logger: Any, level: str, event: MutableMapping[str, Any]) -> Any:
        if level in ("error", "exception", "critical"):
            self.logged.append({**event, "exc_info": event.get("exc_info")})
        raise structlog.DropEvent

    @property
    def is_hindered(self) -> bool:
        """Whether something stands between the operator and the cluster."""
        cluster = self.cluster
        is_slow = cluster.write_seconds > USUAL_SECONDS or any(cluster.lag_seconds.values())
        return bool(cluster.failures or cluster.unwanted or is_slow or not self.process.leads)

    def check(self) -> None:
        """Raise what went wrong unseen."""
        for task in (*self.process.tasks, self._controlling):
            assert not task.done(), f"a task ended: {task.exception()!r}"
        assert not self.loop.errors, self.loop.errors
        assert not self.broken, "\n".join(self.broken)
        for each in self.logged:
            raise AssertionError(f"logged: {each}") from each.get("error_object")

    # What people do

    def apply(self, document: Document) -> None:
        """Create or edit, if the API server would have it."""
        if _is_valid(json.dumps(document)):
            self.cluster.put(defaulted(document))

    def find(self, kind: str, name: str) -> Document | None:
        """A workload, node or other object by its name."""
        return next(
            (
                document
                for (resource, _, known), document in self.cluster.objects.items()
                if (resource.kind, known) == (kind, name)
            ),
            None,
        )

    def workloads(self) -> list[Document]:
        """All of ours."""
        return [each for resource in WORKLOADS for each in self.cluster.all(resource)]

    def pods(self) -> list[Document]:
        """Of everybody."""
        return self.cluster.all(PODS)

    def nodes(self) -> list[Document]:
        """All that there are."""
        return self.cluster.all(NODES)


_VALID: dict[str, bool] = {}


def _is_valid(text: str) -> bool:
    if text not in _VALID:
        _VALID[text] = not problems(json.loads(text))
    return _VALID[text]
