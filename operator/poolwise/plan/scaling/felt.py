"""What each replica bears: its own load, in full replicas, as its requests feel it.

Who is late is late because of the replica that it is on: one that is full delays its own requests,
however empty the others are. So lateness is put down to the load of the replica that told of it
(:mod:`.evidence`), and how unevenly a fleet bears its load is measured (:mod:`.unevenness`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from poolwise.plan.scaling import learning
from poolwise.plan.scaling.capability import KV_CACHE, Capability
from poolwise.plan.scaling.intake import Intake, Told
from poolwise.plan.scaling.memory import Felt
from poolwise.plan.scaling.outlook import LEAST_RATE, slowing
from poolwise.plan.signals.sample import Sample

SHORTEST_SECONDS, LONGEST_SECONDS = 15.0, 300.0
FELT_SECONDS = 20.0
"""Time constant of what is felt at once."""
LEAST_FULL, EDGE_SECONDS = 0.15, 120.0
"""Of caches on average, from which they tell; and the time constant of what they tell."""
SETTLED_STAYS = 2.0
LONGER = 3.0
"""Times as long as on average some requests stay."""


def felt(
    before: Mapping[str, Felt], taken: Intake, able: Mapping[str, Capability]
) -> dict[str, Felt]:
    """After a look; ``able`` by pool."""
    stretch = _stretch(taken, able)
    return {
        name: _after(before.get(name), told, able[told.pool], stretch[told.pool])
        for name, told in taken.by_replica.items()
        if told.pool in able
    }


def cache_edge(
    before: float | None, loads: Mapping[str, Felt], taken: Intake, able: Mapping[str, Capability]
) -> float | None:
    """The load at which caches would be full, were requests to stay as long as in full replicas."""
    stretch = _stretch(taken, able)
    full = load = 0.0
    for name, told in taken.by_replica.items():
        usage = told.sample.kv_cache_usage
        if usage and name in loads and is_settled(told, able[told.pool]):
            full, load = full + usage * stretch[told.pool], load + loads[name].recent
    if full < LEAST_FULL * len(taken.by_replica) or load <= 0.0:
        return before
    return (
        load / full
        if before is None
        else _towards(before, load / full, taken.seconds / EDGE_SECONDS)
    )


def _stretch(taken: Intake, able: Mapping[str, Capability]) -> dict[str, float]:
    """By which requests would stay longer in full replicas, by pool."""
    gaps = {pool: learning.observed_gap_seconds(delta) for pool, delta in taken.by_pool.items()}
    return {pool: slowing(each, gaps.get(pool)) for pool, each in able.items()}


def _load(told: Told, able: Capability, stretch: float) -> float:
    """Of one replica: what arrives, and what is in flight as long as it stays in full ones."""
    share, capacity = able.arrivals_share, max(able.requests_per_second, LEAST_RATE)
    rate = told.arrivals / max(told.delta.seconds, 1e-9)
    strain = share * rate / capacity + (1.0 - share) * stretch * held(told.sample, able)
    return max(strain, rate / max(able.prompts_per_second, LEAST_RATE))


def held(sample: Sample, able: Capability) -> float:
    """What is in flight, in full replicas: by the cache itself where that is what fills up."""
    most = max(able.in_flight, LEAST_RATE)
    waiting = (sample.waiting or 0.0) / most
    if able.limiting == KV_CACHE and sample.kv_cache_usage is not None:
        return sample.kv_cache_usage + waiting
    return (sample.running or 0.0) / most + waiting


def _after(before: Felt | None, told: Told, able: Capability, stretch: float) -> Felt:
    load = _load(told, able, stretch)
    if before is None:
        return Felt(load, load, load, load)
    seconds = told.delta.seconds
    usual = felt_seconds(able)
    longest = min(LONGER * usual, LONGEST_SECONDS)
    recent = _towards(before.recent, load, seconds / FELT_SECONDS)
    return Felt(
        load,
        recent,
        _towards(before.mean, load, seconds / usual),
        max(recent, _towards(before.worst, recent, seconds / longest)),
    )


def _towards(before: float, now: float, constants: float) -> float:
    kept = math.exp(-constants)
    return kept * before + (1.0 - kept) * now


def felt_seconds(able: Capability) -> float:
    """Over which a load is a request's own: as long as it stays."""
    stay = able.in_flight / max(able.requests_per_second, LEAST_RATE)
    return min(max(stay, SHORTEST_SECONDS), LONGEST_SECONDS)


def is_settled(told: Told, able: Capability) -> bool:
    """Whether a replica has long been as full as others: one that just became ready gets all that
    arrives, and is not late with it while its cache is empty."""
    return told.is_warm and told.served_seconds >= SETTLED_STAYS * felt_seconds(able)
