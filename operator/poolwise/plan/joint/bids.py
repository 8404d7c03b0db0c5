"""What each pending workload can do, and how much it counts: the terms of the comparison.

A run of ``T`` seconds on ``a`` accelerators of a pool uses ``y * a * T`` of the whole cluster's
time, where ``y`` is the pool's share (:mod:`.pricing`). Its *length* is the least over its options:
what it uses where it loses least. Shorter work goes first by weight, since that makes the mean time
to completion smallest (Smith's rule), and the weight grows with age, so that nothing waits for
ever. Priorities are strict, as in Kubernetes: weights compare those who have the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from poolwise.plan.joint.problem import Option, Rules, Share, Workload, run_seconds

MOST_DOUBLINGS = 60.0
"""Of the weight by age, so that it stays a number."""

AS_GOOD = 1e-6
"""Relative, of what is minimised: counts of one pool that are nearer are the same but for time."""
LEVEL = 1e-4
"""Relative: pools whose own loss differs by less are held equal by the ranking."""
URGENT = 0.25
"""Share of its run time that is left to wait: a workload with a deadline then goes first."""

FREE = Share(0.0)
"""Of a pool that is not scarce."""

Tier = tuple[int, bool, bool, bool]


@dataclass(frozen=True, slots=True)
class Offer:
    """One option in the terms of the comparison."""

    option: Option
    seconds: float
    """How long it holds its accelerators."""
    lateness_seconds: float
    """Run time, or what the loss of the goal is worth in run time."""
    load_seconds: float
    """Of the whole cluster's time."""

    @property
    def holds_for(self) -> float:
        """Seconds until its room is another's: a service that starts is as endless as one that
        runs."""
        return math.inf if self.option.seconds is None else self.seconds

    @property
    def ends_within(self) -> float:
        """Seconds in which it surely ends."""
        return math.inf if self.option.seconds is None else self.option.seconds.high


@dataclass(frozen=True, slots=True)
class Bid:
    """One pending workload in a pass."""

    workload: Workload
    weight: float
    offers: tuple[Offer, ...]
    """At least one."""
    length_seconds: float
    """Of the whole cluster's time, where it uses least."""
    seconds_left: float
    """Until its deadline."""
    is_urgent: bool
    """Whether its deadline allows no more waiting to speak of."""
    is_hopeless: bool = False
    """Whether all that it could run on is held without end: nobody delays it."""
    is_promoted: bool = False
    """Whether it goes first in its tier, since all lose less by it (:mod:`.promotion`)."""

    @property
    def is_service(self) -> bool:
        """Whether it serves, and should not wait."""
        return self.offers[0].option.seconds is None

    @property
    def best(self) -> Offer:
        """Where it loses nothing."""
        return min(self.offers, key=loss)

    def offer_of(self, option: Option) -> Offer:
        """The offer of one of its options."""
        return next(each for each in self.offers if each.option is option)

    @property
    def tier(self) -> Tier:
        """By priority, then who is on the move, services, and who must start now: each before all
        that follow."""
        workload = self.workload
        is_first = not workload.is_expected
        return -workload.priority, is_first, not self.is_service, not self.is_urgent

    @property
    def rank(self) -> tuple[Tier, bool, float, float, str]:
        """In a tier the shortest by weight first, then the oldest."""
        workload = self.workload
        return self.tier, not self.is_promoted, self.per_weight, workload.created, workload.key

    @property
    def per_weight(self) -> float:
        """Its length by weight: who has least goes first among equals."""
        return self.length_seconds / self.weight


def weight_of_all(bids: Iterable[Bid]) -> float:
    """Of those who can be delayed at all."""
    return math.fsum(each.weight for each in bids if not each.is_hopeless)


def loss(offer: Offer) -> tuple[float, str, int]:
    """By which a workload's own best offer is the least."""
    return offer.lateness_seconds, offer.option.pool, offer.option.accelerators


def bid(
    workload: Workload, options: Iterable[Option], shares: Mapping[str, Share], now: float,
    rules: Rules,
) -> Bid:  # fmt: skip
    """The bid of a workload that has options."""
    known = tuple(options)
    best = min(known, key=lambda option: (option.aim, option.pool))
    base = run_seconds(best)
    offers = _levelled([_offer(option, base, best.aim, shares) for option in known])
    length = min(offer.load_seconds for offer in offers)
    left = math.inf if workload.deadline is None else workload.deadline - now
    run = min(offer.seconds for offer in offers)
    is_urgent = left - run < URGENT * run
    return Bid(workload, weight(workload, now, rules), offers, length, left, is_urgent)


def weight(workload: Workload, now: float, rules: Rules) -> float:
    """How much a second of its waiting counts."""
    doublings = max(now - workload.created, 0.0) / rules.aging_seconds
    by_age: float = 2.0 ** min(doublings, MOST_DOUBLINGS)
    return by_age


def _levelled(offers: Sequence[Offer]) -> tuple[Offer, ...]:
    """Counts that cost the same (goals Cost and Energy) use the same of the cluster: a hundredth
    less of it is no reason to take eight times as long."""
    groups: list[list[Offer]] = []
    for each in sorted(offers, key=lambda offer: (offer.option.pool, offer.option.aim)):
        if not groups or not _is_as_good(each.option, groups[-1][0].option):
            groups.append([])
        groups[-1].append(each)
    alike = [group for group in groups if len(group) > 1]
    if not alike:
        return tuple(offers)
    loads: dict[Option, float] = {}
    for group in alike:
        least = min(each.load_seconds for each in group)
        loads |= {each.option: least for each in group}
    return tuple(
        replace(each, load_seconds=loads.get(each.option, each.load_seconds)) for each in offers
    )


def _is_as_good(option: Option, best: Option) -> bool:
    return option.pool == best.pool and option.aim <= best.aim * (1.0 + AS_GOOD)


def _offer(option: Option, base: float, best_aim: float, shares: Mapping[str, Share]) -> Offer:
    seconds = run_seconds(option)
    times = option.aim / best_aim if best_aim > 0 else 1.0
    share = shares.get(option.pool, FREE)
    delays_for = seconds if option.seconds is not None else min(seconds, share.done_seconds)
    load_seconds = share.of_all * option.accelerators * delays_for
    return Offer(option, seconds, base * times, load_seconds)
