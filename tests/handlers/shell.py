"""The shell on the fake API server, with the real planner: everything but kopf and the network."""

from __future__ import annotations

import asyncio
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from poolwise.cluster.cache import Cache
from poolwise.cluster.clock import utc_now
from poolwise.cluster.events import Recorder
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.resources import (
    BESIDE,
    CACHED,
    DEPLOYMENTS,
    JOBS,
    OPTIONAL,
    WATCHED,
    Resource,
    resource_of,
)
from poolwise.cluster.scraping import Reply, Target
from poolwise.cluster.writer import Writer
from poolwise.handlers.decider import decider
from poolwise.handlers.engine import Engine
from poolwise.handlers.isolation import Decide
from poolwise.handlers.scaling import LEAST_LOOKS
from poolwise.plan.conditions import timestamp
from poolwise.settings import Settings
from tests.apiserver.operated import chat_service, condition, h100_node, training_job
from tests.fake_kube import FakeKube

__all__ = ["Looking", "Shell", "chat_service", "condition", "h100_node", "training_job"]

SETTINGS = Settings(status_seconds=0, retry_seconds=0.01, retry_limit_seconds=0.05)
_DECIDE = decider(SETTINGS)


class Shell:
    """One operator process after another on one cluster that lasts."""

    def __init__(
        self,
        kube: FakeKube | None = None,
        decide: Decide = _DECIDE,
        apis: Mapping[str, str] | None = None,
    ) -> None:
        """``apis`` are optional ones that are served: version by group."""
        self.kube = kube or FakeKube()
        self.decide = decide
        self.metrics = Metrics()
        self.apis = dict(apis or {})
        self.kube.optional = {group: (version,) for group, version in self.apis.items()}

    def put(self, *documents: dict[str, Any]) -> None:
        """What somebody else does."""
        for document in documents:
            self.kube.put(document)

    def look(self, document: dict[str, Any]) -> dict[str, Any]:
        """The object as it is now."""
        metadata = document["metadata"]
        key = (resource_of(document), metadata.get("namespace"), metadata["name"])
        return self.kube.objects[key]

    def start_pods(self, node: str) -> None:
        """What the controllers of Jobs and Deployments, the scheduler and the node's agent do: one
        pod of each, which runs from now on."""
        for child in [*self.kube.all(JOBS), *self.kube.all(DEPLOYMENTS)]:
            template, name = child["spec"]["template"], child["metadata"]["name"]
            owner = {"kind": child["kind"], "controller": True, "name": name}
            owner["uid"] = child["metadata"]["uid"]
            if child["kind"] == "Deployment":
                owner |= {"kind": "ReplicaSet", "name": f"{name}-1", "uid": "any"}
            metadata = {
                "name": f"{name}-0",
                "namespace": child["metadata"]["namespace"],
                "labels": template["metadata"]["labels"],
                "ownerReferences": [owner],
            }
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
            pod["spec"] = {**template["spec"], "nodeName": node}
            pod["status"] = {"phase": "Running", "startTime": timestamp(utc_now())}
            self.put(pod)

    def run(self, *steps: Callable[[], Any], pause_seconds: float = 0.0) -> list[str]:
        """Start a process, let it settle, and again after each step; what it wrote."""
        before = len(self.kube.writes)
        asyncio.run(self._run(steps, pause_seconds))
        return self.kube.writes[before:]

    async def _run(self, steps: tuple[Callable[[], Any], ...], pause_seconds: float) -> None:
        engine = self.engine = await self._start()
        await engine.settle()
        for step in steps:
            step()
            await engine.settle()
            await asyncio.sleep(pause_seconds)
            await engine.settle()

    async def _start(self) -> Engine:
        cache = Cache()
        cache.apis.update(self.apis)
        for resource in self._served():
            async for page in self.kube.pages(resource):
                for document in page:
                    cache.put(resource, document)
        writer = Writer(self.kube, cache, lambda: math.inf)
        recorder = Recorder(writer, "test", utc_now, time.monotonic, self.metrics.decisions)
        engine = Engine(cache, writer, recorder, self.decide, SETTINGS, self.metrics)
        self.kube.watcher = lambda change, resource, document: (
            engine.see(resource, change, document) if resource in self._served() else None
        )
        engine.touch_all()
        return engine

    def _points(self) -> bool:
        """Whether an API is served whose objects point to others."""
        return any(api.beside and api.group in self.apis for api in OPTIONAL)

    def _served(self) -> list[Resource]:
        return [
            each.at(self.apis.get(each.group, each.version))
            for each in CACHED
            if each in WATCHED or each.group in self.apis or (each in BESIDE and self._points())
        ]


class Looking(Shell, ABC):
    """One whose loop over pods is told by the test what they say."""

    @abstractmethod
    def loop(self, engine: Engine) -> Any:
        """The loop that is meant."""

    @abstractmethod
    async def tell(self, targets: Iterable[Target]) -> Mapping[Target, Reply]:
        """What pods say."""

    async def _start(self) -> Engine:
        engine = await super()._start()
        self.loop(engine)._source = self.tell
        return engine

    def looks(self, count: int = LEAST_LOOKS) -> list[str]:
        """What a new process writes that looks so many times."""
        before = len(self.kube.writes)
        asyncio.run(self._looks(count))
        return self.kube.writes[before:]

    def wait(self) -> None:
        """Let the time from one look to the next pass, where the test has a clock."""

    async def _looks(self, count: int) -> None:
        engine = self.engine = await self._start()
        await engine.settle()
        for _ in range(count):
            self.wait()
            await self.loop(engine).step()
            await engine.settle()
