"""Services on the fake API server whose replicas answer, at a time that the test sets."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from poolwise.cluster.resources import EVENTS
from poolwise.plan.conditions import timestamp
from poolwise.plan.signals.adapters import Fault
from poolwise.plan.signals.sample import Histogram, Sample
from tests.handlers.shell import Looking, chat_service, h100_node

LOOK_SECONDS = 10.0
REQUESTS_PER_LOOK = 40.0
HEALTHY = Sample("", 0.0, running=8.0, waiting=0.0, kv_cache_usage=0.4)


@dataclass
class Clock:
    """Begins now, and then stands still, but for what a test lets pass."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def utc_now(self) -> datetime:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass
class Load:
    """What each replica tells: counters that move, and gauges as they are set."""

    clock: Clock
    told: Sample = HEALTHY
    requests: float = 0.0
    looks: int = 0

    async def look(self, targets):
        self.looks += 1
        self.requests += REQUESTS_PER_LOOK
        return {each: self._of(each.replica) for each in targets}

    def _of(self, replica: str) -> Sample | Fault:
        known = replace(self.told, replica=replica, at_seconds=self.clock.now.timestamp())
        return answered(known, self.requests)


def answered(sample: Sample, count: float, ttft_seconds: float = 0.1) -> Sample:
    """The same once so many requests were answered, all of them alike."""
    return replace(
        sample,
        finished_requests=count,
        preemptions=0.0,
        prompt_tokens=500.0 * count,
        generated_tokens=200.0 * count,
        ttft_seconds=_all_at(count, ttft_seconds),
        inter_token_seconds=_all_at(200.0 * count, 0.0145),
        prompt_lengths_tokens=_all_at(count, 500.0),
        answer_lengths_tokens=_all_at(count, 200.0),
    )


def _all_at(count: float, value: float) -> Histogram:
    bounds = (value / 2.0, value, math.inf)
    return Histogram(bounds, (0.0, count, count), count * value)


class Served(Looking):
    """A cluster with one service, ``chat``, that runs."""

    def __init__(self, clock: Clock, **scaling: object) -> None:
        super().__init__()
        self.clock, self.load = clock, Load(clock)
        service = chat_service("a", "chat")
        service["spec"]["scaling"] = {"minReplicas": 1, "maxReplicas": 8, **scaling}
        self.put(h100_node(name="n"), service)
        self.run()
        self.start_pods("n")
        self.set_pods(lambda index: clock.now - timedelta(hours=1))

    def loop(self, engine):
        return engine.scaler

    async def tell(self, targets):
        return await self.load.look(targets)

    def set_pods(self, ready_since) -> None:
        """Addresses and readiness; ``ready_since`` is None of one that is not ready."""
        pods = [each for (kind, _, _), each in self.kube.objects.items() if kind.kind == "Pod"]
        for index, pod in enumerate(list(pods)):
            since = ready_since(index)
            ready = {"type": "Ready", "status": "True" if since else "False"}
            ready["lastTransitionTime"] = timestamp(since or self.clock.now)
            status = {**pod["status"], "podIP": "127.0.0.1", "conditions": [ready]}
            made = timestamp(self.clock.now - timedelta(hours=2))
            metadata = {"creationTimestamp": made, **pod["metadata"]}
            self.put({**pod, "metadata": metadata, "status": status})

    def wait(self) -> None:
        self.clock.pass_by(LOOK_SECONDS)

    def service(self):
        return self.look(chat_service("a", "chat"))

    def child(self, kind: str, api: str = "apps/v1"):
        metadata = {"name": "chat", "namespace": "a"}
        return self.look({"apiVersion": api, "kind": kind, "metadata": metadata})

    def events(self) -> list[str]:
        return [each["reason"] for each in self.kube.all(EVENTS)]
