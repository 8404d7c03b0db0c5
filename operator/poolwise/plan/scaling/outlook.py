"""Demand until a replica that is asked for now would be ready, in full replicas.

What is in flight runs off as requests end, and what arrives joins it: from L now the number in
flight goes to what the arrivals keep up, ``rate * residence``, along the residual time of a
request. Targets that depend on the arrivals alone (prompts that wait for each other) feel them at
once, a full cache only as fast as it fills; answers of minutes make it slow.

A demand of n is what n replicas carry, each at the most that the model says of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.plan.scaling.capability import Capability
from poolwise.plan.scaling.level import Level

MOST_SLOWING = 3.0
"""By which requests stay longer in a full replica than in an idle one."""
BACKLOG_SECONDS = 45.0
"""In which a queue should be worked off once the replicas are there."""
USUAL_WAIT_SECONDS = 1.0
"""Prompts wait for each other for so long without being a queue."""
LEAST_RATE = 1e-9
SLOPE_SECONDS = 120.0
"""Over which what is in flight is seen to grow, and for which it is taken to go on: a fleet that
fills after a start would otherwise be foreseen at twice what it fills up to."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """Replicas' worth of load, in full replicas."""

    level: Level
    horizon_seconds: float
    present: float
    """Of what arrived since the last look and is in flight."""
    filled: float
    """What is in flight alone."""
    settled: float
    """With the present arrivals kept up for long."""
    coming: float
    """When a start would end, if what is there lasts."""
    backlog: float
    """Replicas beside these that work off the queue until then."""
    lasting: float = 0.0
    """What comes as far as demand lasts (:mod:`poolwise.plan.scaling.persistence`)."""
    queue: float = 0.0
    """Requests that new ones wait for now."""
    growth: float = 0.0
    """Of what arrives, over the last start: ln(rate / rate before)."""
    leaps: bool = False
    """Whether it is beyond all that ever came, and late already."""

    @property
    def trusted_share(self) -> float:
        """Of a growth over the horizon."""
        return trusted_share(self.horizon_seconds)


@dataclass(frozen=True, slots=True)
class Flow:
    """What is seen of a service at one moment."""

    arrivals_per_second: float
    """Since the last look."""
    held: float
    """In flight on replicas that stay, in full ones."""
    bounded: float
    """The same with each replica full at most: what waits for one cannot be served by another."""
    gap_seconds: float | None
    """Observed mean time between two tokens; None: not known."""
    serving: float
    """Replicas that have served since the last look."""
    joining_seconds: tuple[float, ...]
    """Until each of the others serves, that start or have just become ready; ascending."""
    waiting: float
    """Requests that new ones wait for."""
    each_per_second: float
    """Requests that each of those serves while others wait for it."""
    queued: float
    """Of ``serving``, those that requests wait for: no other one can take these."""
    filling: float = 0.0
    """Change of what is in flight, in full replicas a second, where it is above chance."""


def filled(able: Capability, flow: Flow, rate: float) -> float:
    """What is in flight, in full replicas: in those requests stay longer than in idle ones.

    Queues before full replicas are no load of those to come, beyond what keeps arriving.
    """
    kept_up = max(flow.arrivals_per_second, rate) / max(able.requests_per_second, LEAST_RATE)
    held = max(flow.bounded, min(flow.held, kept_up))
    return held * slowing(able, flow.gap_seconds)


def slowing(able: Capability, gap_seconds: float | None) -> float:
    """How many times longer requests stay in a full replica than where tokens come so fast."""
    if not gap_seconds:
        return 1.0
    return min(max(able.token_seconds / gap_seconds, 1.0), MOST_SLOWING)


def trusted_share(horizon_seconds: float) -> float:
    """Of a growth over a start: as much as a slope is trusted."""
    return SLOPE_SECONDS / max(horizon_seconds, SLOPE_SECONDS)


def outlook(
    able: Capability, level: Level, flow: Flow, horizon_seconds: float, growing: float = 1.0
) -> Outlook:
    """From what arrives and what is in flight on replicas that stay.

    :param growing: how many times as much is expected to arrive when a start would end.
    """
    capacity = max(able.requests_per_second, LEAST_RATE)
    rate, share = growing * (level.mid + level.deviation), able.arrivals_share
    settled, now = rate / capacity, filled(able, flow, rate)
    present = share * flow.arrivals_per_second / capacity + (1.0 - share) * now
    left = able.left_after(horizon_seconds)
    then = settled + (now - settled) * left
    stay = able.in_flight / capacity
    further = min(horizon_seconds, stay, SLOPE_SECONDS)
    then = max(then, now + flow.filling * further) if flow.filling else then
    coming = share * settled + (1.0 - share) * then
    # Of what fills up, a queue is part of what is in flight already.
    backlog = share * _backlog(flow, growing * level.mid, horizon_seconds)
    return Outlook(
        level, horizon_seconds, present, now, settled, coming, backlog, queue=flow.waiting
    )


def is_queue(waiting: float, served_per_second: float, seconds: float = USUAL_WAIT_SECONDS) -> bool:
    """Whether so many wait for longer than that: usually, than prompts do for each other."""
    return waiting > served_per_second * seconds


def _backlog(flow: Flow, rate: float, horizon_seconds: float) -> float:
    """A replica with a queue serves as fast as it can: so much is served by each that is added.

    Who waits too long is late already, and delays those that come after: the sooner the queue is
    worked off the fewer. Who joins until then works on it too. No more are added than have a queue:
    they take what comes meanwhile to those, and what waits for one no other can serve.
    """
    served = flow.each_per_second * flow.serving
    if served <= 0.0 or not is_queue(flow.waiting, served):
        return 0.0
    left = _queue_after(flow, rate, horizon_seconds)
    return min(left / (flow.each_per_second * BACKLOG_SECONDS), flow.queued)


def _queue_after(flow: Flow, rate: float, horizon_seconds: float) -> float:
    """Who joins takes what arrives, as do those without a queue, and so the queues of the others
    run off; what waits for one replica is served by that one alone."""
    queue, now, each = flow.waiting, 0.0, flow.each_per_second
    free = flow.serving - flow.queued
    for joined, until in enumerate((*flow.joining_seconds, horizon_seconds)):
        growth = max(rate - each * (free + joined), 0.0) - each * flow.queued
        queue, now = max(queue + (until - now) * growth, 0.0), until
    return queue
