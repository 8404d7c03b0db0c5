"""Our controller as a policy of the replay, in one configuration for every trace.

It is told what an operator knows: the model, its layout and machine, targets, bounds and the usual
start. Nothing of the trace: lengths, rates and bursts are learned as they come.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench.autoscale.policy import ReplicaView, View
from bench.autoscale.scene import Scene
from poolwise.model.work import Metric, Target, Tokens
from poolwise.plan.scaling.controller import decide
from poolwise.plan.scaling.decision import Decision
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.seen import Phase, ReplicaSeen, Seen
from poolwise.plan.scaling.service import Modelled, Pool, Service

POOL = "pool"
DECLARED = Tokens(400.0, 1500.0), Tokens(200.0, 600.0)
"""Of prompts and answers, in place of a declaration: the API's own example."""
SERVING_SECONDS = 10.0
"""For which what starts now would have served at the moment that a rate is told for."""
AHEAD_SECONDS = 600.0
"""At most, that a rate is told for."""
AROUND_SECONDS = 15.0
"""Before and after that moment, that it is the mean of."""


class Ours:
    """``decide`` with its memory; ``last`` is the newest decision."""

    def __init__(self, service: Service) -> None:
        self.interval_seconds = service.interval_seconds
        self._service = service
        self._memory = Memory()
        self.last: Decision | None = None

    def desired(self, view: View) -> int:
        """The controller's answer."""
        self.last = decide(self._service, self._memory, self.seen(view))
        self._memory = self.last.memory
        return self.last.replicas

    def seen(self, view: View) -> Seen:
        """What the operator would see."""
        replicas = tuple(_replica(each) for each in view.replicas)
        return Seen(view.now_seconds, replicas, view.samples)


class Informed(Ours):
    """With the true rate of when a start would end in place of a forecast (O2)."""

    def __init__(self, service: Service, scene: Scene) -> None:
        super().__init__(service)
        self._arrivals = scene.trace.requests.arrival_seconds
        self._horizon_seconds = min(scene.start_delay_seconds + SERVING_SECONDS, AHEAD_SECONDS)

    def seen(self, view: View) -> Seen:
        """With the rate around the moment when a start would end, and nothing of before or after:
        given a rate, the controller adds no growth of its own."""
        middle = view.now_seconds + self._horizon_seconds
        ends = (middle - AROUND_SECONDS, middle + AROUND_SECONDS)
        first, last = np.searchsorted(self._arrivals, ends)
        told = (last - first) / (2.0 * AROUND_SECONDS)
        return replace(super().seen(view), expected_requests_per_second=told)


def policy(scene: Scene) -> Ours:
    """Ours, frozen."""
    return Ours(service(scene))


def informed(scene: Scene) -> Ours:
    """The same, told of what comes."""
    return Informed(service(scene), scene)


def service(scene: Scene) -> Service:
    """As a user would declare it: each target for the wanted share of the requests.

    As the operator does, it decides with every look.
    """
    engine, percentile = scene.engine, 100.0 * scene.targets.attainment
    targets = (
        Target(Metric.TTFT, percentile, scene.targets.ttft_seconds),
        Target(Metric.TPOT, percentile, scene.targets.tpot_seconds),
    )
    work = engine.work(*DECLARED, targets)
    predictor = Modelled(work, engine.layout, engine.machine, engine.calibration)
    return Service(
        name=scene.trace.name,
        targets=targets,
        pools=(Pool(POOL, predictor, scene.start_delay_seconds),),
        least_replicas=scene.least_replicas,
        most_replicas=scene.most_replicas,
        interval_seconds=scene.scraping.interval_seconds,
    )


def _replica(view: ReplicaView) -> ReplicaSeen:
    phase = Phase.READY if view.is_ready else Phase.STARTING
    if view.is_draining:
        phase = Phase.DRAINING
    return ReplicaSeen(view.name, POOL, phase, view.requested_at_seconds, view.ready_at_seconds)
