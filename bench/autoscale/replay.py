"""A policy in charge of a fleet: scrapes on their clock, questions on its own, acts at once.

Scrapes find what vLLM would expose at that moment: gauges with noise, counters and histograms as
they are. A missed one leaves the sample before.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from bench.autoscale.outcome import Outcome, Step, outcome
from bench.autoscale.policy import Policy, ReplicaView, View
from bench.autoscale.scene import Routing, Scene, Scraping
from poolwise.plan.signals.sample import Histogram, Sample
from poolwise.sim.serving.fleet import Fleet, Member
from poolwise.sim.serving.metrics import Tally
from poolwise.sim.serving.router import LeastOutstanding, PlainService, Router

SETTLED_SECONDS = 900.0
"""After the last arrival the policy stays in charge for so long; then the fleet stays as it is."""


def replay(scene: Scene, policy: Policy) -> Outcome:
    """The whole trace under a policy, until every request has its answer."""
    fleet, steps = played(scene, policy)
    return outcome(scene, fleet, steps)


def played(scene: Scene, policy: Policy) -> tuple[Fleet, list[Step]]:
    """The fleet that has answered all of it, for who looks at single answers."""
    fleet = Fleet(scene.trace.requests, scene.engine.costs, scene.engine.limits, router(scene))
    fleet.request(scene.first_replicas, 0.0)
    steps = list(_driven(scene, policy, fleet))
    fleet.finish()
    return fleet, steps


def router(scene: Scene) -> Router:
    """Of the scene's kind."""
    return router_of(scene.routing, len(scene.trace.requests), scene.seed)


def router_of(routing: Routing, requests: int, seed: int) -> Router:
    """Of a kind, for so many requests."""
    return PlainService(requests, seed) if routing is Routing.SERVICE else LeastOutstanding()


def _driven(scene: Scene, policy: Policy, fleet: Fleet) -> Iterator[Step]:
    """What was wanted at each question."""

    def goes_on(next_seconds: float) -> bool:
        is_over = fleet.is_done and fleet.now_seconds > scene.trace.seconds
        return next_seconds <= scene.trace.seconds + SETTLED_SECONDS and not is_over

    for wanted in asked(scene, policy, fleet, goes_on):
        change = wanted - fleet.wanted
        if change > 0:
            fleet.request(change, scene.start_delay_seconds)
        elif change < 0:
            fleet.drain(-change)
        yield Step(fleet.now_seconds, wanted)


def asked(
    scene: Scene, policy: Policy, fleet: Fleet, goes_on: Callable[[float], bool]
) -> Iterator[int]:
    """Replicas that the policy wants at each question; the fleet has moved on to that moment.

    :param goes_on: whether another scrape or question comes, at that moment.
    """
    scrapes = Scrapes(scene.scraping, scene.seed)
    scrape_at, ask_at = scene.scraping.interval_seconds, policy.interval_seconds
    while goes_on(min(scrape_at, ask_at)):
        fleet.advance(min(scrape_at, ask_at))
        if scrape_at <= ask_at:
            scrapes.take(fleet)
            scrape_at += scene.scraping.interval_seconds
            continue
        wanted = policy.desired(view(scene, fleet, scrapes))
        yield min(max(wanted, scene.least_replicas), scene.most_replicas)
        ask_at += policy.interval_seconds


def view(scene: Scene, fleet: Fleet, scrapes: Scrapes) -> View:
    """What a policy may know now."""
    replicas = tuple(
        ReplicaView(
            member.name,
            member.is_ready,
            member.is_draining,
            member.requested_at_seconds,
            member.ready_at_seconds if member.is_ready else None,
        )
        for member in fleet.members
    )
    return View(fleet.now_seconds, replicas, dict(scrapes.samples), scene.start_delay_seconds)


class Scrapes:
    """The newest sample of each replica."""

    def __init__(self, scraping: Scraping, seed: int) -> None:
        self.samples: dict[str, Sample] = {}
        self._scraping = scraping
        self._draw = np.random.default_rng(seed)

    def take(self, fleet: Fleet) -> None:
        """One round over all replicas that are ready, draining ones included."""
        ready = [member for member in fleet.members if member.is_ready]
        names = {member.name for member in fleet.members}
        self.samples = {name: told for name, told in self.samples.items() if name in names}
        is_missing = self._draw.random(len(ready)) < self._scraping.missing_share
        noise = 1.0 + self._scraping.noise * self._draw.standard_normal((len(ready), 3))
        for member, missing, factors in zip(ready, is_missing, noise.tolist(), strict=True):
            if not missing:
                self.samples[member.name] = self._told(member, fleet.now_seconds, factors)

    def _told(self, member: Member, now_seconds: float, noise: list[float]) -> Sample:
        told = sample(member, now_seconds, noise)
        if self._scraping.tells_lengths:
            return told
        return replace(told, prompt_lengths_tokens=None, answer_lengths_tokens=None)


def sample(member: Member, now_seconds: float, noise: list[float]) -> Sample:
    """What one replica tells; ``noise`` are factors of its gauges."""
    engine = member.engine
    told = engine.metrics.read()
    return Sample(
        replica=member.name,
        at_seconds=now_seconds,
        running=engine.running * max(noise[0], 0.0),
        waiting=engine.waiting * max(noise[1], 0.0),
        kv_cache_usage=min(engine.kv_cache_usage(now_seconds) * max(noise[2], 0.0), 1.0),
        finished_requests=told.finished,
        preemptions=told.preemptions,
        prompt_tokens=told.prompt_tokens,
        begun_prompt_tokens=told.prompt_tokens,
        cached_prompt_tokens=told.cached_prompt_tokens,
        generated_tokens=engine.generated_by(now_seconds),
        ttft_seconds=_histogram(told.ttft),
        inter_token_seconds=_histogram(told.gaps),
        tpot_seconds=_histogram(told.tpot),
        e2e_seconds=_histogram(told.e2e),
        prompt_lengths_tokens=_histogram(told.prompt_lengths),
        answer_lengths_tokens=_histogram(told.answer_lengths),
    )


def _histogram(tally: Tally) -> Histogram:
    return Histogram(tally.upper_bounds, tuple(itertools.accumulate(tally.counts)), tally.total)
