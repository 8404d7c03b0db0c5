"""What each replica bears: its own load, in full replicas, as its requests feel it.

Who is late is late because of the replica that it is on: one that is full delays its own requests,
however empty the others are. So lateness is put down to the load of the replica that told of it
(:mod:`.evidence`), and how unevenly a fleet bears its load is measured (:mod:`.unevenness`).

Few arrivals tell little of a rate. Taken at their word they spread over loads that no replica bore,
and the edge that lateness has in them looks flat and far away (regression dilution). So a rate is
drawn to that of all replicas of its pool, the more the less of its distance is more than chance:
the best guess of what was measured with an error of known size (regression calibration: Carroll and
others, Measurement Error in Nonlinear Models, 2006, chapter 4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from poolwise.model.serving.capacity import KV_CACHE
from poolwise.plan.scaling import learning
from poolwise.plan.scaling.cadence import steps
from poolwise.plan.scaling.capability import Capability
from poolwise.plan.scaling.fading import blended
from poolwise.plan.scaling.intake import Intake
from poolwise.plan.scaling.memory import Felt
from poolwise.plan.scaling.outlook import LEAST_RATE, is_queue, slowing
from poolwise.plan.scaling.told import Told
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
    before: Mapping[str, Felt],
    taken: Intake,
    able: Mapping[str, Capability],
    log_variance: float,
) -> dict[str, Felt]:
    """After a look; ``able`` by pool.

    :param log_variance: of ln(load) over replicas, without what chance makes of it.
    """
    stretch, rates = _stretch(taken, able), _rates(taken)
    found = {}
    for name, told in taken.by_replica.items():
        if told.pool in able:
            rate = _likely_rate(told, rates[told.pool], able[told.pool], log_variance)
            load = _load(told, rate, able[told.pool], stretch[told.pool])
            found[name] = _after(before.get(name), load, told, able[told.pool])
    return found


def cache_edge(
    before: float | None, loads: Mapping[str, Felt], taken: Intake, able: Mapping[str, Capability]
) -> float | None:
    """The load at which caches would be full, were requests to stay as long as in full replicas.

    None where they are next to empty: what they told before was of other loads, and at the very
    beginning of requests as they were declared and not as they are.
    """
    stretch = _stretch(taken, able)
    full = load = 0.0
    for name, told in taken.by_replica.items():
        usage = told.sample.kv_cache_usage
        if usage and name in loads and is_settled(told, able[told.pool]):
            full, load = full + usage * stretch[told.pool], load + loads[name].recent
    if full < LEAST_FULL * len(taken.by_replica) or load <= 0.0:
        return None
    return _towards(before, load / full, taken.seconds / EDGE_SECONDS)


def _stretch(taken: Intake, able: Mapping[str, Capability]) -> dict[str, float]:
    """By which requests would stay longer in full replicas, by pool."""
    gaps = {pool: learning.observed_gap_seconds(delta) for pool, delta in taken.by_pool.items()}
    return {pool: slowing(each, gaps.get(pool)) for pool, each in able.items()}


def _rates(taken: Intake) -> dict[str, float]:
    """Requests per second of one replica, by pool."""
    arrivals, seconds = dict[str, float](), dict[str, float]()
    for told in taken.by_replica.values():
        arrivals[told.pool] = arrivals.get(told.pool, 0.0) + told.arrivals
        seconds[told.pool] = seconds.get(told.pool, 0.0) + max(told.delta.seconds, 1e-9)
    return {pool: arrivals[pool] / seconds[pool] for pool in arrivals}


def _likely_rate(told: Told, usual: float, able: Capability, log_variance: float) -> float:
    """Requests per second of one replica, as far from the usual one as chance does not explain."""
    expected = max(usual * told.delta.seconds, LEAST_RATE)
    by_chance = able.arrivals_share**2 / expected
    trusted = 1.0 / (1.0 + by_chance / log_variance)
    return usual + trusted * (told.arrivals_per_second - usual)


def _load(told: Told, rate: float, able: Capability, stretch: float) -> float:
    """Of one replica: what arrives, and what is in flight as long as it stays in full ones."""
    share, capacity = able.arrivals_share, max(able.requests_per_second, LEAST_RATE)
    strain = share * rate / capacity + (1.0 - share) * stretch * held(told.sample, able)
    return max(strain, rate / max(able.prompts_per_second, LEAST_RATE))


def held(sample: Sample, able: Capability) -> float:
    """What is in flight, in full replicas: by the cache itself where that is what fills up."""
    most = max(able.in_flight, LEAST_RATE)
    waiting = (sample.waiting or 0.0) / most
    if able.limiting == KV_CACHE and sample.kv_cache_usage is not None:
        return sample.kv_cache_usage + waiting
    return (sample.running or 0.0) / most + waiting


def _after(before: Felt | None, load: float, told: Told, able: Capability) -> Felt:
    if before is None:
        return Felt(load, load, load, load)
    seconds = told.delta.seconds
    usual = own_seconds(able)
    longest = min(LONGER * usual, LONGEST_SECONDS)
    recent = _towards(before.recent, load, seconds / FELT_SECONDS)
    newest = min(steps(seconds), 1.0)
    # Who is late now came before all those that still wait here, however little comes by now.
    is_left = is_queue(told.sample.waiting or 0.0, able.most_per_second)
    worst = before.worst if is_left else _towards(before.worst, recent, seconds / longest)
    return Felt(
        before.now + newest * (load - before.now),
        recent,
        _towards(before.mean, load, seconds / usual),
        max(recent, worst),
    )


def _towards(before: float | None, now: float, constants: float) -> float:
    """After so many time constants."""
    return blended(before, now, math.exp(-constants))


def own_seconds(able: Capability) -> float:
    """Over which a load is a request's own: as long as it stays, or where prompts wait for each
    other as long as that takes.

    An answer of minutes would else have a rush that nobody was late in count as none, and put
    whoever is late now down to a rush that had long been read.
    """
    return FELT_SECONDS if able.is_of_prompts else felt_seconds(able)


def felt_seconds(able: Capability) -> float:
    """As long as a request stays."""
    stay = able.in_flight / max(able.requests_per_second, LEAST_RATE)
    return min(max(stay, SHORTEST_SECONDS), LONGEST_SECONDS)


def is_settled(told: Told, able: Capability) -> bool:
    """Whether a replica has long been as full as others: one that just became ready gets all that
    arrives, and is not late with it while its cache is empty."""
    return told.is_warm and told.served_seconds >= SETTLED_STAYS * felt_seconds(able)
