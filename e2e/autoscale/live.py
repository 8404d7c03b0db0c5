"""One run: a service is placed and told how fast its engines are, a trace is replayed against it
while the operator scales it, and the simulator is asked for its own account."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from bench.autoscale.scene import Routing, Scene
from bench.autoscale.sizing import Work, measured
from bench.autoscale.traces import Trace
from e2e.autoscale.comparison import (
    Comparison,
    combined,
    faults,
    fleet_in,
    live,
    simulated,
    since,
)
from e2e.autoscale.pods import Life
from e2e.autoscale.service import Wish, config_map
from e2e.autoscale.trace import Source, planned
from e2e.autoscale.twin import NotPlaced, Twin, scraping, twin
from e2e.controlplane.client import POLL_SECONDS, Object
from e2e.images.load.plan import Planned
from e2e.images.load.replay import Replayed
from e2e.progress import say
from e2e.workloads import Observer
from poolwise.settings import Settings

NAME = "chat"


@dataclass(frozen=True)
class Course:
    """What is run."""

    source: Source
    wish: Wish
    warm_up_seconds: float = 30.0
    """Not scored: the operator gets to know the load."""
    interval_seconds: float = 5.0
    endpoint_removal_seconds: int = 2
    """Whoever routes here looks at pods four times a second."""

    @property
    def settings(self) -> Mapping[str, str]:
        """Of the operator, as environment variables."""
        return {
            "POOLWISE_SCALING_INTERVAL_SECONDS": f"{self.interval_seconds:g}",
            "POOLWISE_ENDPOINT_REMOVAL_SECONDS": str(self.endpoint_removal_seconds),
        }


class Stage(Protocol):
    """Where it is run."""

    @property
    def observer(self) -> Observer:
        """Of the cluster."""

    @property
    def namespace(self) -> str:
        """Of the service."""

    @property
    def environment(self) -> Sequence[Object]:
        """Variables that engines need there."""

    @property
    def lives(self) -> Sequence[Life]:
        """Of the service's pods."""

    @property
    def routing(self) -> Routing:
        """Who spreads the requests."""

    def replay(self, requests: Sequence[Planned]) -> Replayed:
        """What became of the requests."""


def compare(course: Course, stage: Stage, **spec: object) -> Comparison:
    """Run it; ``spec`` is what else the service's spec has there.

    Raises :class:`TimeoutError` when the service is not up in time.
    """
    observer, wish = stage.observer, course.wish
    document = wish.document(stage.namespace, NAME, *stage.environment, **spec)
    service = observer.client.create(document)
    found = _placed(observer, service)
    observer.client.create(config_map(service, found.engine))
    for pod in observer.pods_of(service):
        observer.client.delete_now(pod)  # it waited for the map: starts are not that long
    work = measured(found.engine, course.source.sample, wish.targets)
    trace = course.source.trace(work)
    first = _serving(observer, service)
    say(
        f"==> {len(trace.requests)} requests in {trace.seconds:.0f} s; {found.engine.name} takes "
        f"{work.requests_per_second:.1f} of them a second; {first} replicas to begin with"
    )
    replayed = stage.replay(list(planned(trace.requests)))
    lives = stage.lives
    told = live(trace.requests, replayed, lives, course.warm_up_seconds, wish.targets)
    scene = replace(
        _scene(course, found, trace, work, first),
        start_delay_seconds=_start_seconds(lives),
        routing=stage.routing,
    )
    accounts, fleets = [], []
    for began, each in found.outcomes(scene, _idle_seconds(lives, replayed.began_seconds)):
        fleets.append(fleet_in(each, first, began))
        accounts.append(simulated(each, fleets[-1], course.warm_up_seconds, trace.seconds))
    return Comparison(
        told,
        combined(accounts, statistics.fmean),
        combined(accounts, min),
        combined(accounts, max),
        scene.start_delay_seconds,
        replayed.late_seconds,
        since(replayed.began_seconds, lives),
        faults(replayed.requests),
        tuple(fleets),
    )


def _placed(observer: Observer, service: Object) -> Twin:
    """The service's twin, once its Deployment says where it runs."""
    observer.deployment_of(service)
    deadline = time.monotonic() + observer.timeout_seconds
    while True:
        try:
            return twin(observer.client, service, Settings())
        except NotPlaced:
            if time.monotonic() > deadline:
                raise
        time.sleep(POLL_SECONDS)


def _serving(observer: Observer, service: Object) -> int:
    """How many replicas there are, once all of them tell."""
    observer.wait_condition(service, "MetricsAvailable", "True")
    return int(observer.deployment_of(service)["spec"]["replicas"])


def _start_seconds(lives: Sequence[Life]) -> float:
    """Median, from when a replica was seen first until it was seen ready."""
    told = [life.ready_seconds - life.born_seconds for life in lives if life.ready_seconds]
    return statistics.median(told)


def _idle_seconds(lives: Sequence[Life], began_seconds: float) -> float:
    """From the first replica that was ready until the trace began."""
    return began_seconds - min(life.ready_seconds for life in lives if life.ready_seconds)


def _scene(course: Course, of: Twin, trace: Trace, work: Work, first: int) -> Scene:
    wish = course.wish
    return Scene(
        trace,
        of.engine,
        wish.targets,
        work,
        scraping=scraping(course.interval_seconds),
        warm_up_seconds=course.warm_up_seconds,
        most_replicas=wish.most_replicas,
        initial_replicas=first,
    )
