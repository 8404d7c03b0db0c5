"""The least number of replicas with which few enough requests are expected to be late."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from poolwise.model.serving.capacity import KV_CACHE
from poolwise.plan.scaling import fragility, surprise
from poolwise.plan.scaling.capability import Capability
from poolwise.plan.scaling.lone import alone_share, known_share
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.outlook import Outlook
from poolwise.plan.scaling.service import Service
from poolwise.plan.scaling.swings import as_strain, blur_of, strain, swing_of, usable_share

MOST_SHARE, AIM_SHARE, LEAST_SHARE = 1.0, 0.7, 0.5
"""Of the allowance, expected to be late: replicas are added above the first, as many as come to the
second; one is taken away where the third would still hold without it."""
CALM_SHARE = 0.6
UNCALM_SECONDS, CALM_SECONDS = 600.0, 1200.0
"""What takes the place of the third, from the first to the second time after more were asked for:
who has just risen may rise again, and a level would else keep one replica or two of fifteen for
ever. Over 42 cells that is 0.9 % cheaper, with the second share 1.2 % but six of them come near
their aim from below."""
BEYOND_PEAK, WHILE_CLIMBING = 1.1, 1.2
"""Times the highest demand so far: usually, and while demand is climbing to it."""
READY_TIMES = 3.0
"""What is foreseen, that a fleet is ready for. Once a service has leapt from a low it would else be
ready for that again with each low, by seven times what it needs, though few of all its requests
come in lows. m-large's day takes 6 % fewer replicas for as many in time, m-small's 26 % (98.3 % for
98.4), and 41 hours of all kinds exactly as many. With 2.0 it is 8 and 32 %, 98.2 % of m-small's."""
LOG_FELT = np.linspace(
    2.0 * surprise.LOG_ERRORS[0], 2.0 * surprise.LOG_ERRORS[-1], 2 * len(surprise.LOG_ERRORS) - 1
)
"""ln(load that a request feels / what was foreseen for the fleet)."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of demand to replicas, at which so many are expected to be late."""

    most: float
    aim: float
    least: float


@dataclass(frozen=True, slots=True)
class Ratios:
    """Against what may come beside what is foreseen, and against what is there: of the strain of a
    demand (:mod:`.swings`)."""

    foreseen: Bounds
    there: Bounds
    swing: float


@dataclass(frozen=True, slots=True)
class Need:
    """In full replicas of the first pool; fractions are left to who rounds them."""

    least: float
    """Below it too many would be late."""
    aim: float
    """What is started when there are fewer."""
    enough: float
    """Above it, some may leave."""
    borne: float
    """Of a full replica, by each where as many as are aimed at bear what is foreseen."""

    def of(self, held: float) -> float:
        """What is needed where ``held`` are there."""
        if self.least > held:
            return self.aim
        return max(self.least, min(self.enough, held))


def ratios(service: Service, memory: Memory, able: Capability, ahead: Outlook) -> Ratios:
    """Of the errors that are made where so much is expected, and of how late this service gets."""
    is_cache, allowed = able.limiting == KV_CACHE, service.allowed_share
    swing = swing_of(able)
    seen = 1.0 if is_cache else memory.cache_edge
    edge = seen / usable_share(ahead.lasting, swing) if seen else None
    mix = memory.mix_of(service)
    alone = alone_share(service, able, mix, memory.lone)
    known = known_share(service, able, mix, memory.lone, alone)
    belief = fragility.informed(memory.belief, edge, is_cache, known)
    floor = alone + fragility.expected_floor(belief)
    factor = memory.budget.factor(allowed)
    late = [
        factor * max(share * allowed - floor, share * allowed / 2.0)
        for share in (MOST_SHARE, AIM_SHARE, _least_share(memory))
    ]
    errors = surprise.shares(
        memory.errors,
        partial(memory.persistence.log_expected, trusted_share=ahead.trusted_share),
        ahead.lasting,
        round(ahead.horizon_seconds),
        memory.usual_arrivals,
    )
    errors = as_strain(errors, surprise.LOG_ERRORS, ahead.lasting, swing)
    uneven = memory.unevenness.shares
    curve = fragility.curve_of(belief, allowed, blur_of(able, memory.dispersion))
    curves = (
        fragility.bearable(curve, LOG_FELT, np.convolve(errors, uneven)),
        fragility.bearable(curve, surprise.LOG_ERRORS, uneven),
    )
    foreseen, there = (Bounds(*map(highest, late)) for highest in curves)
    return Ratios(foreseen, there, swing)


def _least_share(memory: Memory) -> float:
    """Of the allowance, at which one may leave."""
    calm_seconds = memory.calm_seconds(_now_seconds(memory))
    settled = (calm_seconds - UNCALM_SECONDS) / (CALM_SECONDS - UNCALM_SECONDS)
    return LEAST_SHARE + (CALM_SHARE - LEAST_SHARE) * min(max(settled, 0.0), 1.0)


def need(service: Service, memory: Memory, ahead: Outlook, found: Ratios) -> Need:
    """With the queue to be worked off, and replicas that may fail.

    Nobody is ready for more than there ever was, and a bit: a jump beyond that is met when it
    comes, since a fleet that could bear any jump would idle for all other hours; nor for more than
    a few times what is foreseen. That much is taken to be as hard as the present demand is, though
    a fleet grown to it would bear more: it bounds what is not known, and starts that take minutes
    come too late for what it would save.
    """
    spare = ahead.backlog + service.redundancy
    beyond = WHILE_CLIMBING if _is_climbing(memory, ahead) else BEYOND_PEAK
    settled = memory.persistence.expected(max(ahead.settled, ahead.coming), ahead.trusted_share)
    now = usable_share(ahead.lasting, found.swing)

    def of(demand: float, foreseen: float, there: float) -> float:
        most = min(max(memory.peak, demand) * beyond, READY_TIMES * demand)
        return min(strain(demand, found.swing) / foreseen, most / (now * there))

    aim = of(ahead.lasting, found.foreseen.aim, found.there.aim)
    return Need(
        least=of(ahead.lasting, found.foreseen.most, found.there.most) + spare,
        aim=aim + spare,
        enough=of(settled, found.foreseen.least, found.there.least) + spare,
        borne=ahead.lasting / aim if aim > 0.0 else now * found.foreseen.aim,
    )


def _is_climbing(memory: Memory, ahead: Outlook) -> bool:
    """Whether demand was as high as never before when what starts now had not been asked for:
    nobody knows yet where the rise stops."""
    now_seconds = _now_seconds(memory)
    if memory.is_young(now_seconds):
        return False  # all demand is the highest so far
    since_seconds = now_seconds - ahead.horizon_seconds
    return any(
        each.demand >= memory.peak for each in memory.bins if each.at_seconds >= since_seconds
    )


def _now_seconds(memory: Memory) -> float:
    """Of the newest look."""
    return memory.bins[-1].at_seconds if memory.bins else 0.0


def whole(needed: float) -> int:
    """Replicas; a hair above a whole number is that number."""
    return math.ceil(needed - 1e-6)
