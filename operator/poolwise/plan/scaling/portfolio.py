"""Which pools the replicas of one service run on: the cheapest mix that carries the demand.

A replica of each pool counts as so many of the first pool's as it serves more requests inside the
targets. Fleets grow by the pool that closes what is missing at the least cost, and shrink by the
replicas that cost most for what they serve; so the mix goes to the cheapest one as demand moves,
and no replica is replaced for its own sake, which would pay for a start.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SLACK = 1e-6


@dataclass(frozen=True, slots=True)
class Offer:
    """Replicas of one pool."""

    pool: str
    worth: float
    """Of one, in replicas of the first pool."""
    cost_per_hour: float
    held: int
    """That are there or start."""
    most: int
    """At most so many, those held included."""

    @property
    def price(self) -> float:
        """Of what one replica of the first pool serves."""
        return self.cost_per_hour / self.worth if self.worth > 0.0 else math.inf


def held(offers: Sequence[Offer]) -> dict[str, int]:
    """What is there."""
    return {each.pool: each.held for each in offers}


def worth(counts: Mapping[str, int], offers: Sequence[Offer]) -> float:
    """Of so many replicas by pool together."""
    return math.fsum(counts.get(each.pool, 0) * each.worth for each in offers)


def grown(offers: Sequence[Offer], needed: float, most: int) -> dict[str, int]:
    """What is there and so many more that all are worth ``needed``, or as many as there may be."""
    counts = held(offers)
    while worth(counts, offers) < needed - SLACK and sum(counts.values()) < most:
        left = needed - worth(counts, offers)
        free = [each for each in offers if each.worth > 0.0 and counts[each.pool] < each.most]
        if not free:
            break
        best = min(free, key=lambda each: _closing(each, left))
        counts[best.pool] += 1
    return counts


def shrunk(offers: Sequence[Offer], needed: float, least: int) -> dict[str, int]:
    """What is there without all that can go while the rest is worth ``needed``."""
    counts = held(offers)
    for each in sorted(offers, key=lambda each: (-each.price, each.pool)):
        spare = worth(counts, offers) - needed
        can_go = _floor(spare / each.worth) if each.worth > 0.0 else counts[each.pool]
        over = sum(counts.values()) - least
        counts[each.pool] -= max(min(can_go, over, counts[each.pool]), 0)
    return counts


def weights(counts: Mapping[str, int], offers: Sequence[Offer]) -> dict[str, float]:
    """Share of the requests for one replica of each pool; they sum to 1 over all replicas."""
    together = worth(counts, offers)
    return {
        each.pool: each.worth / together
        for each in offers
        if together > 0.0 and counts.get(each.pool)
    }


def cost_per_hour(counts: Mapping[str, int], offers: Sequence[Offer]) -> float:
    """Of all replicas."""
    return math.fsum(counts.get(each.pool, 0) * each.cost_per_hour for each in offers)


def _closing(offer: Offer, left: float) -> tuple[float, float, str]:
    """Cost of closing the rest with this pool alone."""
    count = math.ceil(left / offer.worth - SLACK)
    return count * offer.cost_per_hour, -offer.worth, offer.pool


def _floor(value: float) -> int:
    return math.floor(value + SLACK)
