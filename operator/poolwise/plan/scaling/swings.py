"""What swings of arrivals do to the load that a fleet bears: a small one bears less, bursts blur.

What comes at once swings by the root of what comes on average, so the relative swings of a small
fleet are larger, and gaps between tokens feel each: of the edge that a fleet of
:data:`USUAL_DEMAND` has, one with demand ``D`` has ::

    exp(-swing * (1 / sqrt(D) - 1 / sqrt(USUAL_DEMAND)))

(the square root law of staffing: Halfin and Whitt, Operations Research 29(3), 1981). So what was
learned of the edge at one demand (:mod:`.lessons`) holds at another (:mod:`.sizing`): a service
that grew is not held to what was late while it had three replicas.

Bursts that many users make together do not even out in a large fleet, and between two looks nobody
sees them: a request meets a load that differs from what looks tell, and the sharpest edge looks
blurred (:mod:`.fragility`). Of ln(load) the deviation is taken in proportion to that of
arrivals beyond chance. So a service with bursts needs not be late first to be taken
for one, and one that comes evenly now is not held to what was late in its bursts.

Targets of first tokens and full caches are about what waits on a replica, whatever the others do,
and looks tell that: there neither counts.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, fields

import numpy as np

from poolwise.plan.scaling.cadence import steps
from poolwise.plan.scaling.capability import Capability
from poolwise.plan.scaling.grid import Vector, spread

SWING = 0.5
"""Slopes of ln(busiest minute / fewest replicas in time) on 1 / sqrt(busiest minute), of four
fixed fleets for 2.5 to 20 full replicas each, are 0.7, 1.0 and 2.0 on the traces that miss gaps,
and 0.0 where caches fill (``python -m bench.autoscale.swings``). In the loop the least of them
does best: with one that grows as the root of the dispersion (0.5 to 2), as that of fixed fleets
does, Azure's code at 14 peaks lacks 0.20 points instead of 0.04, for 3 % more replicas."""
USUAL_DEMAND = 6.0
"""In full replicas, at which the model's word holds until something is seen. With 1, 2 or 3 Azure's
code loses half a point more where the model is wrong; else they are alike."""
BLUR = 0.2
"""Deviation of ln(load) for bursts as large as chance is where a full replica's requests come. Over
37 hours of services that miss gaps it takes 0.4 % more replicas than none, and instead of 0.15
points they lack 0.04 of what they aim at, nearly all of it on Azure's code. Where bursts fade three
times as fast 0.1, 0.2 and 0.3 take 0.7 % fewer, 0.3 and 1.3 % more, and lack 0.06, 0.04 and 0.03:
it matters little. All of it before short answers were told apart (:mod:`.gaps`)."""
MOST_BURSTS = 4.0
"""Beyond which nothing was seen."""
LEAST_DEMAND = 1.0
"""One replica has nobody to share its swings with, however little comes."""
HALF_LIFE_SECONDS = 1800.0
PRIOR_LOOKS = 10.0
"""How many looks at arrivals by chance are taken to have been before."""
MEAN_DEVIATION = math.sqrt(2.0 / math.pi)
"""Mean distance from zero of a standard normal number."""


@dataclass(frozen=True, slots=True)
class Dispersion:
    """How far arrivals of two looks differ, in deviations of chance: fading sums."""

    deviations: float = 0.0
    looks: float = 0.0
    requests_per_second: float = 0.0

    def after(self, before: float, arrivals: float, seconds: float) -> Dispersion:
        """``seconds`` after the last look; ``before`` as many as came in as long a time.

        Distances and not their squares: one jump of the load is no burstiness.
        """
        kept = 0.5 ** (seconds / HALF_LIFE_SECONDS)
        faded = Dispersion(*(kept * each for each in astuple(self)))
        if before + arrivals <= 0.0:
            return faded
        distance = abs(arrivals - before) / math.sqrt(before + arrivals)
        looks, rate = steps(seconds), (before + arrivals) / (2.0 * seconds)
        return Dispersion(
            faded.deviations + looks * distance / MEAN_DEVIATION,
            faded.looks + looks,
            faded.requests_per_second + looks * rate,
        )

    @property
    def root(self) -> float:
        """Of the index of dispersion; 1 for arrivals by chance."""
        return (self.deviations + PRIOR_LOOKS) / (self.looks + PRIOR_LOOKS)

    def bursts(self, requests_per_second: float) -> float:
        """Relative deviation of arrivals beyond chance, over that of chance at the given rate.

        However much comes it is the same, where many users come and go together.
        """
        if self.requests_per_second <= 0.0:
            return 0.0
        demand = self.requests_per_second / self.looks / max(requests_per_second, 1e-12)
        return math.sqrt(max(self.root**2 - 1.0, 0.0) / max(demand, LEAST_DEMAND))

    @staticmethod
    def read(listed: list[float]) -> Dispersion:
        """From a record. One of an earlier version tells no rates, and nothing by itself."""
        told = tuple(map(float, listed))
        return Dispersion(*told) if len(told) == len(fields(Dispersion)) else Dispersion()


def swing_of(able: Capability) -> float:
    """By which a fleet's edge depends on its size: where chance spreads requests, what comes to one
    replica swings as much however many there are."""
    return SWING * able.served.routed.apart_share if able.is_of_gaps else 0.0


def blur_of(able: Capability, dispersion: Dispersion) -> float:
    """Deviation of ln(load) that a request meets, about what looks tell."""
    if not able.is_of_gaps:
        return 0.0
    return BLUR * min(dispersion.bursts(able.requests_per_second), MOST_BURSTS)


def usable_share(demand: float, swing: float) -> float:
    """Of the usual fleet's edge, at a demand in full replicas; above 1 for larger fleets."""
    return math.exp(-swing * (_relative_swings(demand) - _relative_swings(USUAL_DEMAND)))


def strain(demand: float, swing: float) -> float:
    """Demand that would be as hard on the usual fleet's edge."""
    return demand / usable_share(demand, swing)


def as_strain(shares: Vector, log_errors: Vector, demand: float, swing: float) -> Vector:
    """Errors of a demand as errors of its strain.

    What comes beyond the demand comes to a fleet with more to do, which bears more of it.

    :param shares: of requests, by the errors that they meet.
    :param log_errors: ln(what comes / ``demand``), evenly spaced; those of the answer too.
    """
    if not swing:
        return shares
    came = np.maximum(demand * np.exp(log_errors), LEAST_DEMAND)
    strained = log_errors + swing * (1.0 / np.sqrt(came) - _relative_swings(demand))
    return spread(strained, shares, log_errors)


def _relative_swings(demand: float) -> float:
    return 1.0 / math.sqrt(max(demand, LEAST_DEMAND))
