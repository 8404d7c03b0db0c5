"""How much load a small fleet bears of what a large one does.

What comes at once swings by the root of what comes on average, so the relative swings of a small
fleet are larger, and gaps between tokens feel each: of the edge that a fleet of
:data:`USUAL_DEMAND` has, one with demand ``D`` has ::

    exp(-SWING * (1 / sqrt(D) - 1 / sqrt(USUAL_DEMAND)))

(the square root law of staffing: Halfin and Whitt, Operations Research 29(3), 1981). So what was
learned of the edge at one demand (:mod:`.lessons`) holds at another (:mod:`.sizing`): a service
that grew is not held to what was late while it had three replicas. Targets of first tokens and full
caches are about what waits on a replica, whatever the others do: there size is no help.
"""

from __future__ import annotations

import math

from poolwise.plan.scaling.capability import Capability

SWING = 0.5
"""Slopes of ln(busiest minute / fewest replicas in time) on 1 / sqrt(busiest minute), of four
fleets for 2.5 to 20 full replicas each (``python -m bench.autoscale.swings``), are 0.7, 1.0 and 2.0
on the traces that miss gaps, and 0.0 where caches fill. Below the least of them: too large a one
would trust a fleet that grew too much."""
USUAL_DEMAND = 6.0
"""In full replicas, at which the model's word holds until something is seen. With 1, 2 or 3 Azure's
code loses half a point more where the model is wrong; else they are alike."""
LEAST_DEMAND = 1.0
"""One replica has nobody to share its swings with, however little comes."""


def usable_share(able: Capability, demand: float) -> float:
    """Of the usual fleet's edge, at a demand in full replicas; above 1 for larger fleets."""
    if not able.is_of_gaps:
        return 1.0
    swing = 1.0 / math.sqrt(max(demand, LEAST_DEMAND)) - 1.0 / math.sqrt(USUAL_DEMAND)
    return math.exp(-SWING * swing)
