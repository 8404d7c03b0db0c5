"""The least number of replicas with which few enough requests are expected to be late."""

from __future__ import annotations

import math
from dataclasses import dataclass

from poolwise.plan.scaling import fragility, surprise
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.outlook import Outlook
from poolwise.plan.scaling.service import Service

MOST_SHARE, AIM_SHARE, LEAST_SHARE = 1.0, 0.7, 0.5
"""Of the allowance, expected to be late: replicas are added above the first, as many as come to the
second; one is taken away where the third would still hold without it."""


@dataclass(frozen=True, slots=True)
class Ratios:
    """Of demand to replicas, at which so many are expected to be late."""

    most: float
    aim: float
    least: float


@dataclass(frozen=True, slots=True)
class Need:
    """In full replicas of the first pool; fractions are left to who rounds them."""

    least: float
    """Below it too many would be late."""
    aim: float
    """What is started when there are fewer."""
    enough: float
    """Above it, some may leave."""

    def of(self, held: float) -> float:
        """What is needed where ``held`` are there."""
        if self.least > held:
            return self.aim
        return max(self.least, min(self.enough, held))


def ratios(service: Service, memory: Memory, ahead: Outlook) -> Ratios:
    """Of the errors that forecasts of this size have made, and of how late this service gets."""
    errors = surprise.shares(memory.errors, ahead.lasting, round(ahead.horizon_seconds))
    allowed, floor = service.allowed_share, fragility.expected_floor(memory.belief)
    highest = fragility.bearable(memory.belief, surprise.LOG_ERRORS, errors, allowed)
    factor = memory.budget.factor(allowed)
    return Ratios(
        *(
            highest(factor * max(share * allowed - floor, share * allowed / 2.0))
            for share in (MOST_SHARE, AIM_SHARE, LEAST_SHARE)
        )
    )


def need(service: Service, memory: Memory, ahead: Outlook, found: Ratios) -> Need:
    """With the queue to be worked off, and replicas that may fail."""
    spare = ahead.backlog + service.redundancy
    settled = memory.persistence.expected(max(ahead.settled, ahead.coming))
    return Need(
        ahead.lasting / found.most + spare,
        ahead.lasting / found.aim + spare,
        settled / found.least + spare,
    )


def whole(needed: float) -> int:
    """Replicas; a hair above a whole number is that number."""
    return math.ceil(needed - 1e-6)
