"""What is seen of a service's load, and what is foreseen of it (:mod:`.outlook`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from poolwise.plan.scaling import learning
from poolwise.plan.scaling.capability import Capability
from poolwise.plan.scaling.felt import held
from poolwise.plan.scaling.filling import filling
from poolwise.plan.scaling.intake import Intake
from poolwise.plan.scaling.level import expected, growth, level
from poolwise.plan.scaling.memory import Bin, Memory
from poolwise.plan.scaling.outlook import (
    Flow,
    Outlook,
    is_queue,
    outlook,
    trusted_share,
)
from poolwise.plan.scaling.seen import Phase, ReplicaSeen, Seen
from poolwise.plan.scaling.service import Service
from poolwise.plan.signals.sample import Sample

FULLEST = 1.1
"""Of a replica: what waits beyond it can only be served there."""
USUAL_REQUESTS = 10.0
"""How many requests the model's word on what a replica serves counts as, beside those counted."""
RECENT_SECONDS = 29.0
UNHEARD_OF = 1.5
"""Times the highest demand so far. What usually comes of less says nothing of how much of such a
jump lasts. With 1.0 instead R1 takes 4 to 6 % more replicas at peaks of 20 and 40."""


def prospect(
    service: Service, memory: Memory, seen: Seen, taken: Intake, able: Mapping[str, Capability]
) -> Outlook:
    """Demand until a start that is asked for now would end, in full replicas of the first pool."""
    first, bins = able[service.first.name], memory.bins
    if taken.seconds > 0.0:
        bins = (*bins, newest_bin(seen.now_seconds, taken, first))
    horizon, told = horizon_seconds(service), seen.expected_requests_per_second
    grown = 0.0 if told is not None else growth(bins, horizon)
    growing = math.exp(trusted_share(horizon) * memory.momentum.following(grown))
    flow = _flow(service, memory, seen, taken, able, bins)
    found = outlook(first, expected(level(bins), told), flow, horizon, growing)
    lasting = memory.persistence.expected(found.coming, found.trusted_share)
    # What a gateway holds waits for these replicas as well, and is in no queue of theirs.
    is_late = _is_late(taken.waiting + seen.held_requests, taken.ready, first, service)
    leaps = is_late and found.coming > UNHEARD_OF * memory.peak
    if leaps:
        lasting = max(lasting, found.coming)
    return replace(found, lasting=lasting, growth=grown, leaps=leaps)


def newest_bin(now_seconds: float, taken: Intake, able: Capability) -> Bin:
    """What came since the last look, without what is foreseen of it."""
    return Bin(
        now_seconds,
        taken.seconds,
        taken.arrivals,
        kept_tokens=taken.kept_tokens(able.served.context_tokens),
        broken_off=taken.broken_off,
    )


def _flow(
    service: Service,
    memory: Memory,
    seen: Seen,
    taken: Intake,
    able: Mapping[str, Capability],
    bins: Sequence[Bin],
) -> Flow:
    """What is seen now, of what arrives and of what is there."""
    first, joined = able[service.first.name], _joined(seen, bins)
    everything = _held(seen, taken, able, first, math.inf)
    bounded = _held(seen, taken, able, first, FULLEST)
    waiting, serving = taken.waiting + seen.held_requests, taken.ready - joined
    if first.is_of_gaps:
        # Those that run beyond the most that a replica bears delay new ones, and it goes on at its
        # rate. Else those who wait for a prompt do.
        waiting = max(waiting, (everything - bounded) * first.in_flight)
        each_per_second = first.requests_per_second
    else:
        each_per_second = each_serves(bins, taken.waiting, serving, first.most_per_second)
    return Flow(
        arrivals_per_second=recent_rate(bins),
        held=everything,
        bounded=bounded,
        gap_seconds=learning.observed_gap_seconds(taken.warm) if taken.warm else None,
        serving=serving,
        joining_seconds=(*joined * (0.0,), *_starting_seconds(service, seen)),
        waiting=waiting,
        each_per_second=each_per_second,
        # What a gateway holds goes to whoever is free first.
        queued=serving if seen.held_requests else min(_queued(seen, taken, able, first), serving),
        filling=filling(bins, first),
    )


def _is_late(waiting: float, ready: float, able: Capability, service: Service) -> bool:
    """Whether a queue before so many replicas takes longer than a first token or an answer may:
    whatever comes is late until there are more."""
    served = able.most_per_second * max(ready, 1.0)
    return any(
        is_queue(waiting, served, each.seconds)
        for each in service.targets
        if each.metric.is_from_arrival
    )


def _held(
    seen: Seen, taken: Intake, able: Mapping[str, Capability], first: Capability, most: float
) -> float:
    """In flight, in full replicas of the first pool."""
    return _of_all(
        seen,
        taken,
        lambda pool, sample: _held_by(sample, able.get(pool, first), first, most),
    )


def _queued(seen: Seen, taken: Intake, able: Mapping[str, Capability], first: Capability) -> float:
    """Replicas that requests wait for."""
    return _of_all(
        seen, taken, lambda pool, sample: _has_queue(sample, able.get(pool, first), first)
    )


def _of_all(seen: Seen, taken: Intake, of: Callable[[str, Sample], float]) -> float:
    """Sum over ready replicas, by their pool; those that did not tell are like the others."""
    ready = [each for each in seen.replicas if each.phase is Phase.READY]
    told = [of(each.pool, taken.samples[each.name]) for each in ready if each.name in taken.samples]
    return len(ready) / max(len(told), 1) * math.fsum(told)


def _has_queue(sample: Sample, able: Capability, first: Capability) -> bool:
    """Those that run beyond the most that a replica bears delay new ones as a queue does."""
    if is_queue(sample.waiting or 0.0, able.most_per_second):
        return True
    return first.is_of_gaps and _held_by(sample, able, first, math.inf) > FULLEST


def _held_by(sample: Sample, able: Capability, first: Capability, most: float) -> float:
    """Of one replica, in full ones of the first pool."""
    share = min(held(sample, able), most)
    if able is first:
        return share
    return share * able.requests_per_second / max(first.requests_per_second, 1e-12)


def recent_rate(bins: Sequence[Bin]) -> float:
    """Requests per second of the last half minute: shorter bursts are queues' affair."""
    arrivals = seconds = 0.0
    for each in reversed(bins):
        arrivals, seconds = arrivals + each.arrivals, seconds + each.seconds
        if seconds >= RECENT_SECONDS:
            break
    return arrivals / seconds if seconds > 0.0 else 0.0


def horizon_seconds(service: Service) -> float:
    """Until what is asked for at the next decision would be there."""
    return service.start_seconds + service.interval_seconds


def _joined(seen: Seen, bins: Sequence[Bin]) -> int:
    """How many became ready while the newest counts were taken."""
    since = bins[-1].at_seconds - bins[-1].seconds if bins else seen.now_seconds
    ready = (each for each in seen.replicas if each.phase is Phase.READY)
    return sum((each.ready_at_seconds or -math.inf) > since for each in ready)


def _starting_seconds(service: Service, seen: Seen) -> list[float]:
    """Until those serve who start before a start would end. Who is late by more than another one
    is not counted on."""
    horizon = horizon_seconds(service)
    usual = {each.name: each.start_seconds for each in service.pools}
    left = (
        _expected_at(each, usual) - seen.now_seconds
        for each in seen.replicas
        if each.phase is Phase.STARTING
    )
    return sorted(max(each, 0.0) for each in left if -horizon < each < horizon)


def _expected_at(replica: ReplicaSeen, usual_seconds: Mapping[str, float]) -> float:
    if replica.ready_at_seconds is not None:
        return replica.ready_at_seconds
    return replica.requested_at_seconds + usual_seconds.get(replica.pool, 0.0)


def each_serves(
    bins: Sequence[Bin], queue: float, serving: float, usual_per_second: float
) -> float:
    """Requests per second that one replica serves while others wait for it.

    Counted where the newest counts began with a queue as well: without one a replica serves what
    comes, and how few came says nothing of how many it could serve.
    """
    served = usual_per_second * serving
    if served <= 0.0 or len(bins) < 2 or not is_queue(bins[-2].waiting, served):
        return usual_per_second
    counted = max(bins[-1].arrivals + bins[-2].waiting - queue, 0.0) + USUAL_REQUESTS
    seconds = bins[-1].seconds * serving + USUAL_REQUESTS / usual_per_second
    return min(counted / seconds, usual_per_second)
