"""From one look to the next: all that a look teaches, put into the memory.

How far forecasts came to pass is another lesson (:mod:`.hindsight`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from poolwise.plan.scaling import fragility, learning, lengths
from poolwise.plan.scaling.cadence import steps
from poolwise.plan.scaling.capability import Capability
from poolwise.plan.scaling.evidence import lessons
from poolwise.plan.scaling.felt import (
    FELT_SECONDS,
    SETTLED_STAYS,
    cache_edge,
    felt,
    is_settled,
)
from poolwise.plan.scaling.felt import LONGEST_SECONDS as LONGEST_STAY_SECONDS
from poolwise.plan.scaling.intake import Intake
from poolwise.plan.scaling.lone import known_share
from poolwise.plan.scaling.memory import Felt, Memory
from poolwise.plan.scaling.outlook import LEAST_RATE, is_queue
from poolwise.plan.scaling.seen import Seen
from poolwise.plan.scaling.service import Service
from poolwise.plan.scaling.swings import Dispersion, blur_of
from poolwise.plan.scaling.told import Told
from poolwise.plan.signals.histogram import with_faded
from poolwise.plan.signals.sample import Histogram
from poolwise.plan.signals.state import State
from poolwise.plan.signals.window import Delta, joined

OBSERVED_HALF_LIFE_SECONDS = 300.0
JOINED_SECONDS = SETTLED_STAYS * LONGEST_STAY_SECONDS
"""After which a replica is as full as others, however long its requests stay."""
OVERFULL_SECONDS = 30.0
"""That a queue takes on a replica whose speed is not taken for that of the others: as long as a
busy one's never is while it keeps any target."""
LONE_PER_SECOND = 1.0
"""A single request that waits is no queue, however few come."""
USUAL_SHARE = 0.02
"""Of a usual step in the usual number of arrivals: some minutes."""


def learned(
    service: Service, memory: Memory, seen: Seen, taken: Intake, able: Mapping[str, Capability]
) -> Memory:
    """With what came since the last look; what is foreseen comes later (:mod:`.hindsight`)."""
    memory = replace(
        _with_time(memory, seen, taken), met=taken.met, waiting_again=taken.waiting_again
    )
    delta, seconds = taken.warm, taken.seconds
    if seconds <= 0.0 or delta is None:
        return replace(memory, samples=taken.samples)
    served = {each.name: able[each.pool].served for each in seen.replicas if each.pool in able}
    looks = [(each, served[name]) for name, each in taken.samples.items() if name in served]
    contexts = lengths.context_tokens(memory.context_tokens, looks, seconds)
    memory = _with_lateness(service, memory, seen, taken, able)
    memory = replace(memory, dispersion=_dispersion(memory, taken))
    return replace(
        lengths.with_lengths(memory, delta, seconds),
        samples=taken.samples,
        context_tokens=contexts,
        log_slowness=_slowness(memory, taken, able),
        observed=_observed(service, memory, delta, seconds),
        usual_arrivals=_usual_arrivals(memory, taken),
    )


def _usual_arrivals(memory: Memory, taken: Intake) -> float:
    count = steps(taken.seconds)
    now = taken.arrivals / count
    share = min(USUAL_SHARE * count, 1.0)
    return (1.0 - share) * (memory.usual_arrivals or now) + share * now


def _dispersion(memory: Memory, taken: Intake) -> Dispersion:
    if not memory.bins:
        return memory.dispersion
    last = memory.bins[-1]
    before = last.arrivals * taken.seconds / max(last.seconds, 1e-9)
    return memory.dispersion.after(before, taken.arrivals, taken.seconds)


def _with_time(memory: Memory, seen: Seen, taken: Intake) -> Memory:
    since = memory.since_seconds
    if since is None and taken.samples:  # looks at replicas that start tell nothing
        since = seen.now_seconds
    idle = memory.idle_since_seconds
    if taken.seconds > 0.0 or taken.ready == 0:
        is_idle = taken.state is State.IDLE
        idle = (seen.now_seconds if idle is None else idle) if is_idle else None
    return replace(memory, since_seconds=since, idle_since_seconds=idle)


def _slowness(memory: Memory, taken: Intake, able: Mapping[str, Capability]) -> dict[str, float]:
    found = dict(memory.log_slowness)
    for pool in taken.by_pool:
        if pool in able:
            delta, running = _of_speed(taken, pool, able[pool])
            found[pool] = learning.log_slowness(
                found.get(pool, 0.0),
                able[pool].served,
                delta,
                running,
                taken.seconds,
                _is_one_idle(taken, pool),
            )
    return found


def _of_speed(taken: Intake, pool: str, able: Capability) -> tuple[Delta, float]:
    """What tells of a pool's speed, and the sequences that run on one replica.

    No load makes the mean gap of a replica that is far too full and of many that have next to
    nothing: where they came to help it, it is left out until its queue is worked off.
    """
    warm = [each for each in taken.by_replica.values() if each.pool == pool and each.is_warm]
    usual = [
        each
        for each in warm
        if not is_queue(each.sample.waiting or 0.0, able.most_per_second, OVERFULL_SECONDS)
    ]
    is_split = len(usual) < len(warm)
    delta = joined([each.delta for each in usual]) if is_split else None
    if delta is None:
        return taken.by_pool[pool], taken.running.get(pool, 0.0)
    return delta, math.fsum(each.sample.running or 0.0 for each in usual) / len(usual)


def _is_one_idle(taken: Intake, pool: str) -> bool:
    """Of several replicas of a pool, at the look."""
    idle = [each.is_idle for each in taken.by_replica.values() if each.pool == pool]
    return len(idle) > 1 and any(idle)


def _observed(
    service: Service, memory: Memory, delta: Delta, seconds: float
) -> dict[str, Histogram]:
    """Latencies of the last minutes, for the signals."""
    kept, found = 0.5 ** (seconds / OBSERVED_HALF_LIFE_SECONDS), {}
    for target in service.targets:
        before = memory.observed.get(target.metric.value)
        now = learning.histogram_of(delta, target)
        both = with_faded(before, kept, now)
        if both is not None:
            found[target.metric.value] = both
    return found


def _with_lateness(
    service: Service, memory: Memory, seen: Seen, taken: Intake, able: Mapping[str, Capability]
) -> Memory:
    allowed, first = service.allowed_share, able[service.first.name]
    loads = felt(memory.felt, taken, able, memory.unevenness.log_variance)
    told = lessons(service, memory, taken, loads, able)
    is_young = memory.is_young(seen.now_seconds)
    belief = fragility.faded(memory.belief, taken.seconds)
    if not (is_young and told.lone.is_open):  # who is late alone would be put down to a low load
        blur = blur_of(first, memory.dispersion)
        belief = fragility.observed(belief, told.evidence, allowed, blur)
    known = known_share(service, first, memory.mix_of(service), told.lone, told.alone_share)
    floor = told.alone_share + fragility.expected_floor(
        fragility.informed(belief, None, False, known)
    )
    budget = memory.budget
    if told.count and not is_young:
        budget = budget.after(told.late - floor * told.count, told.count, taken.seconds)
    settled = _settled(taken, able)
    relative = _relative_loads(service, settled, loads, able)
    unevenness = memory.unevenness.after(relative, taken.seconds, _chance(taken, first))
    edge = cache_edge(memory.cache_edge, loads, taken, able)
    return replace(
        memory,
        felt=loads,
        belief=belief,
        budget=budget,
        lone=told.lone,
        unevenness=unevenness,
        balance=memory.balance.after(_in_flight(settled), taken.seconds),
        cache_edge=edge,
    )


def _chance(taken: Intake, able: Capability) -> float:
    """Deviation of ln(recent load) of a replica, of counting its arrivals."""
    rate = taken.arrivals / max(taken.seconds * max(taken.ready, 1), 1e-9)
    counted = rate * (2.0 * FELT_SECONDS + taken.seconds)  # of an average that fades
    return able.arrivals_share / math.sqrt(max(counted, 1.0))


def _settled(taken: Intake, able: Mapping[str, Capability]) -> dict[str, Told]:
    """Replicas that take requests, and have for so long that they are as full as others.

    None while a queue is left from before others joined: it shows how short of replicas the fleet
    was, and looks as if the router spared these.
    """
    if _is_queue_left(taken):
        return {}
    return {
        name: told
        for name, told in taken.by_replica.items()
        if told.pool in able and not told.is_draining and is_settled(told, able[told.pool])
    }


def _relative_loads(
    service: Service,
    settled: Mapping[str, Told],
    loads: Mapping[str, Felt],
    able: Mapping[str, Capability],
) -> list[float]:
    """Where all get the same share, that a weaker pool's are fuller is counted in what the fleet is
    worth (:mod:`.portfolio`), and is no unevenness of the router's."""
    first = max(able[service.first.name].requests_per_second, LEAST_RATE)
    factors = {
        pool: each.requests_per_second / first if service.is_even else 1.0
        for pool, each in able.items()
    }
    return [loads[name].recent * factors[told.pool] for name, told in settled.items()]


def _in_flight(settled: Mapping[str, Told]) -> list[list[float]]:
    """Requests of each replica, pool by pool."""
    counts: dict[str, list[float]] = {}
    for told in settled.values():
        counts.setdefault(told.pool, []).append(told.in_flight)
    return list(counts.values())


def _is_queue_left(taken: Intake) -> bool:
    """Before a replica, while another one is no longer there than it takes at most to fill."""
    there = [each for each in taken.by_replica.values() if not each.is_draining]
    youngest_seconds = min((each.served_seconds for each in there), default=math.inf)
    return youngest_seconds < JOINED_SECONDS and any(
        is_queue(each.sample.waiting or 0.0, max(each.arrivals_per_second, LONE_PER_SECOND))
        for each in there
    )
