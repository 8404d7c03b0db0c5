"""Which pools the replicas of one service run on: the cheapest mix that carries the demand.

A replica of each pool counts as so many of the first pool's as it serves more requests inside the
targets. Fleets grow by the pool that closes what is missing at the least cost, and shrink by the
replicas that cost most for what they serve; so the mix goes to the cheapest one as demand moves,
and no replica is replaced for its own sake, which would pay for a start.

Where requests go to all replicas alike (a plain Service: kube-proxy does not know who is fast), the
one that can bear least bounds what each of them may get, so that n replicas are worth n times the
least capable of them: a weaker pool pays only where its replicas are many, and a stronger one gives
no more than the others bear.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

SLACK = 1e-6
DRAG = 1.1
"""Times as much as with weak replicas that the others must be worth without them."""


@dataclass(frozen=True, slots=True)
class PoolOffer:
    """Replicas of one pool."""

    pool: str
    worth: float
    """Of one, in replicas of the first pool."""
    cost_per_hour: float
    held: int
    """That are there or start."""
    most: int
    """At most so many, those held included."""
    is_even: bool = False
    """Whether every replica of the service gets the same share of the requests; else each gets as
    much as it can bear. The same in all offers."""

    @property
    def price(self) -> float:
        """Per hour, of as much as one replica of the first pool serves; where all replicas get the
        same share, of one replica."""
        if self.is_even:
            return self.cost_per_hour
        return self.cost_per_hour / self.worth if self.worth > 0.0 else math.inf


def held(offers: Sequence[PoolOffer]) -> dict[str, int]:
    """What is there."""
    return {each.pool: each.held for each in offers}


def worth(counts: Mapping[str, int], offers: Sequence[PoolOffer]) -> float:
    """Of so many replicas by pool together."""
    if not is_even(offers):
        return _sum(counts, offers)
    weakest = hardest(counts, offers)
    count = sum(counts.get(each.pool, 0) for each in offers)
    return weakest.worth * count if weakest else 0.0


def hardest(counts: Mapping[str, int], offers: Sequence[PoolOffer]) -> PoolOffer | None:
    """The pool whose replicas are fullest. Where all get the same share, those are the ones that
    bear least; None where each gets as much as it bears, so that all are equally full."""
    present = [each for each in offers if counts.get(each.pool)]
    return min(present, key=lambda each: each.worth) if present and is_even(offers) else None


def is_even(offers: Sequence[PoolOffer]) -> bool:
    """Whether all replicas get the same share."""
    return any(each.is_even for each in offers)


def _sum(counts: Mapping[str, int], offers: Sequence[PoolOffer]) -> float:
    return math.fsum(counts.get(each.pool, 0) * each.worth for each in offers)


def grown(
    offers: Sequence[PoolOffer], needed: float, most: int, most_cost_per_hour: float = math.inf
) -> dict[str, int]:
    """What is there and so many more that all are worth ``needed``, or as many as there may be."""
    if is_even(offers):
        return _grown_evenly(offers, needed, most, most_cost_per_hour)
    counts = held(offers)
    while worth(counts, offers) < needed - SLACK and sum(counts.values()) < most:
        left = needed - worth(counts, offers)
        can = affordable(counts, offers, most_cost_per_hour)
        free = [each for each in offers if each.worth > 0.0 and can[each.pool]]
        if not free:
            break
        best = min(free, key=lambda each: _closing(each, left))
        counts[best.pool] += 1
    return counts


def shrunk(offers: Sequence[PoolOffer], needed: float, least: int) -> dict[str, int]:
    """What is there without all that can go while the rest is worth ``needed``."""
    if is_even(offers):
        return _shrunk_evenly(offers, needed, least)
    counts = held(offers)
    for each in sorted(offers, key=lambda each: (-each.price, each.pool)):
        spare = worth(counts, offers) - needed
        can_go = _floor(spare / each.worth) if each.worth > 0.0 else counts[each.pool]
        over = sum(counts.values()) - least
        counts[each.pool] -= max(min(can_go, over, counts[each.pool]), 0)
    return counts


def weights(counts: Mapping[str, int], offers: Sequence[PoolOffer]) -> dict[str, float]:
    """Share of the requests for one replica of each pool, as a router that knows them would spread
    them; they sum to 1 over all replicas."""
    together = _sum(counts, offers)
    return {
        each.pool: each.worth / together
        for each in offers
        if together > 0.0 and counts.get(each.pool)
    }


def cost_per_hour(counts: Mapping[str, int], offers: Sequence[PoolOffer]) -> float:
    """Of all replicas."""
    return math.fsum(counts.get(each.pool, 0) * each.cost_per_hour for each in offers)


def affordable(
    counts: Mapping[str, int], offers: Sequence[PoolOffer], most_cost_per_hour: float
) -> dict[str, int]:
    """So many more of each pool, if it were the only one to grow, as have room and money."""
    left = most_cost_per_hour - cost_per_hour(counts, offers)
    room = {each.pool: max(each.most - counts[each.pool], 0) for each in offers}
    if math.isinf(left):
        return room
    paid = {each.pool: _floor(left / each.cost_per_hour) for each in offers if each.cost_per_hour}
    return {pool: max(min(count, paid.get(pool, count)), 0) for pool, count in room.items()}


def filled(
    counts: Mapping[str, int],
    offers: Sequence[PoolOffer],
    total: int,
    most_cost_per_hour: float = math.inf,
) -> dict[str, int]:
    """With at least so many replicas in all, the cheapest first, as far as there is room and money;
    of equally cheap ones those that are offered first."""
    full = dict(counts)
    for each in sorted(offers, key=lambda each: each.cost_per_hour):
        can = affordable(full, offers, most_cost_per_hour)[each.pool]
        full[each.pool] += max(min(total - sum(full.values()), can), 0)
    return full


def _grown_evenly(
    offers: Sequence[PoolOffer], needed: float, most: int, most_cost_per_hour: float
) -> dict[str, int]:
    """The cheapest of what each least capability leads to; where none is enough, what is worth
    most: one more weak replica may be worth less than none."""
    there = _without_drags(offers)
    found, weakest = [there], hardest(there, offers)
    for bound in _bounds(offers, weakest.worth if weakest else math.inf):
        total = min(math.ceil(needed / bound - SLACK), most)
        able = [each for each in offers if each.worth >= bound]
        found.append(filled(there, able, total, most_cost_per_hour))

    def merit(counts: dict[str, int]) -> tuple[float, float, int]:
        missing = max(needed - SLACK - worth(counts, offers), 0.0)
        return missing, cost_per_hour(counts, offers), sum(counts.values())

    return min(found, key=merit)


def _without_drags(offers: Sequence[PoolOffer]) -> dict[str, int]:
    """What is there, without weak replicas if the others alone are worth clearly more: what they
    turned out to bear bounds all of them."""
    there = held(offers)
    (first, *_), best = offers, there
    for bound in _bounds(offers, first.worth if first.held else math.inf):
        able = {each.pool: each.held if each.worth >= bound else 0 for each in offers}
        if worth(able, offers) > max(worth(best, offers), DRAG * worth(there, offers)):
            best = able
    return best


def _shrunk_evenly(offers: Sequence[PoolOffer], needed: float, least: int) -> dict[str, int]:
    """The cheapest part of what is there that is enough; one of the first pool stays, where the
    service is placed."""
    there, (first, *_) = held(offers), offers
    found = [there]
    for bound in _bounds(offers, first.worth if first.held else math.inf):
        total = max(math.ceil(needed / bound - SLACK), least)
        able = [replace(each, most=each.held) for each in offers if each.worth >= bound]
        kept = dict.fromkeys(there, 0) | {first.pool: min(first.held, total, 1)}
        counts = filled(kept, able, total)
        if sum(counts.values()) >= total and worth(counts, offers) >= needed - SLACK:
            found.append(counts)
    return min(found, key=lambda each: (cost_per_hour(each, offers), sum(each.values())))


def _bounds(offers: Sequence[PoolOffer], most: float) -> list[float]:
    """What the least capable replica may bear."""
    return sorted({each.worth for each in offers if 0.0 < each.worth <= most})


def _closing(offer: PoolOffer, left: float) -> tuple[float, float, str]:
    """Cost of closing the rest with this pool alone."""
    count = math.ceil(left / offer.worth - SLACK)
    return count * offer.cost_per_hour, -offer.worth, offer.pool


def _floor(value: float) -> int:
    return math.floor(value + SLACK)
