"""The queue in order: each workload takes the best start that is left, now or later.

For each option the cost of taking it is told in seconds of delay, its own and everybody else's ::

    cost = weight * (wait + run time) + EXTERNALITY * (weight of those behind) * load

``load`` is the time of the whole cluster that it uses (:mod:`.bids`); so whoever loses least by it
leaves a scarce pool, and an idle pool is left idle where a short wait for a better one is worth
more. What has to wait books its place, so that those behind it see when room really comes free; a
gang also keeps its nodes (conservative backfill: only who ends before it may use them).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from poolwise.plan.joint.bids import LEVEL, Bid, Offer, weight_of_all
from poolwise.plan.joint.problem import SERVICE_SECONDS, Option
from poolwise.plan.joint.rooms import Hold, Rooms
from poolwise.plan.joint.sparing import Needs
from poolwise.plan.joint.timeline import Timeline

EXTERNALITY = 3.0
"""How many times those who wait now stand for those who will have come by then: of 1, 3 and 10 the
best in replays of Gavel's mix at a load of 0.95, and without effect at 0.5, where nobody waits."""
HELD_GANGS = 4
"""Per pool, that keep nodes for themselves; more would leave little to backfill."""
STICKY = 1.1
"""What has a reservation keeps it unless another place costs so many times less."""
SERVICE_IMPATIENCE = 10_000.0
"""A second of waiting of a service counts as so many of a run: users wait meanwhile, so it waits
no minute for a pool of half the cost."""
MISSED = 1000.0
"""Times the cost of a start that misses the deadline: taken only where none would meet it."""
LEAST_SECONDS = 1e-9


@dataclass(frozen=True, slots=True)
class Chance:
    """One option of a workload with when it may start, and what it costs all."""

    offer: Offer
    starts: float
    cost_seconds: float
    """Weighted, and infinite where nobody can tell when it starts."""
    nodes: Mapping[str, int] | None
    """Where it would run if it started now; None where it cannot."""
    is_beyond_share: bool = False
    """Whether its namespace would hold more than its share."""
    is_spared: bool = False
    """Whether it is left to those behind, some of whom would never start without it."""

    @property
    def is_reserved(self) -> bool:
        """Whether it is a gang's that waits for a moment that can be told."""
        is_gang = self.offer.option.accelerators > 1
        return is_gang and self.nodes is None and math.isfinite(self.starts)

    @property
    def is_within_reach(self) -> bool:
        """Whether it may ever start, as far as anybody can tell: shares of namespaces, cores and
        memory come free otherwise than accelerators do."""
        is_told = self.nodes is not None or math.isfinite(self.starts)
        return is_told or self.is_beyond_share or self.offer.option.is_blocked


@dataclass(frozen=True, slots=True)
class Turn:
    """A workload's turn in the queue."""

    bid: Bid
    chances: tuple[Chance, ...]
    """The best first; at least one."""
    ahead: int = 0
    """How many had their turn before and wait for the same pool."""
    behind_weight: float = 0.0

    @property
    def best(self) -> Chance:
        """What it takes, or waits for."""
        return self.chances[0]

    @property
    def within_reach(self) -> tuple[Option, ...]:
        """Options that may ever start."""
        return tuple(each.offer.option for each in self.chances if each.is_within_reach)

    @property
    def has_hopeless_chances(self) -> bool:
        """Whether any of its options can never start, as far as anybody can tell."""
        return not all(each.is_within_reach for each in self.chances)

    @property
    def starting(self) -> Chance | None:
        """What it takes now."""
        return self.best if self.best.nodes is not None else None

    def value(self, chance: Chance) -> float:
        """Completions per second, the delay of others counted as its own."""
        return self.bid.weight**2 / max(chance.cost_seconds, LEAST_SECONDS)


def cost_seconds(bid: Bid, offer: Offer, wait_seconds: float, behind_weight: float) -> float:
    """Delay of all by a start after so long a wait, by weight."""
    wait = wait_seconds * (SERVICE_IMPATIENCE if bid.is_service else 1.0)
    own = bid.weight * (wait + offer.lateness_seconds)
    if wait_seconds + offer.seconds > bid.seconds_left:
        own *= MISSED
    return own + EXTERNALITY * behind_weight * offer.load_seconds


@dataclass(slots=True)
class Walk:
    """One pass through the queue."""

    rooms: Rooms
    timeline: Timeline
    now: float
    limits: dict[str, int]
    """Accelerators that a namespace may still take; absent: all."""
    reserved: Mapping[str, str]
    """Pool by workload that has a reservation."""
    holds: dict[str, list[Hold]] = field(default_factory=dict)
    """By pool; grows with every gang that waits."""
    gangs: dict[str, int] = field(default_factory=dict)
    """By pool: how many hold nodes."""

    def turns(self, bids: Iterable[Bid]) -> list[Turn]:
        """Everybody's turn."""
        ordered = sorted(bids, key=lambda each: each.rank)
        behind = weight_of_all(ordered)
        waiting: dict[str, int] = {}
        rivals = Counter(each.best.option.pool for each in ordered)
        needs = Needs(ordered if any(each.is_service for each in ordered) else ())
        turns = []
        for each in ordered:
            behind -= 0.0 if each.is_hopeless else min(each.weight, behind)
            rivals[each.best.option.pool] -= 1
            needs.served(each)
            chances = self._sparing(self._chances(each, behind, rivals), each, needs)
            pool = chances[0].offer.option.pool
            turns.append(Turn(each, chances, waiting.get(pool, 0), behind))
            if not self._taken(each, chances[0]):
                waiting[pool] = waiting.get(pool, 0) + 1
        return turns

    def _chances(self, bid: Bid, behind: float, rivals: Mapping[str, int]) -> tuple[Chance, ...]:
        """Of what costs the same, where fewest of those behind would rather be."""
        kept = self.reserved.get(bid.workload.key)

        def order(chance: Chance) -> tuple[float, bool, int, str, int]:
            option, is_later = chance.offer.option, chance.nodes is None
            cost = chance.cost_seconds * (1.0 if option.pool == kept or kept is None else STICKY)
            return cost, is_later, rivals[option.pool], option.pool, option.accelerators

        return tuple(sorted((self._chance(bid, offer, behind) for offer in bid.offers), key=order))

    def _sparing(self, chances: tuple[Chance, ...], bid: Bid, needs: Needs) -> tuple[Chance, ...]:
        """Of starts of a service those first that leave more of those behind a place, since it
        gives nothing back: where they are no worse for it, or where all lose less by them if who
        could never start counts as delayed by a day."""
        best = chances[0]
        if not bid.is_service or best.nodes is None:
            return chances
        most = best.offer.lateness_seconds * (1.0 + LEVEL)
        level = [each.offer.lateness_seconds <= most for each in chances]
        doomed = [self._doomed(best, needs)]
        doomed += [
            self._doomed(each, needs) if doomed[0] or is_level else math.inf
            for each, is_level in zip(chances[1:], level[1:], strict=True)
        ]
        lost = [
            SERVICE_SECONDS * count + (best if is_level else each).cost_seconds
            for each, is_level, count in zip(chances, level, doomed, strict=True)
        ]
        fewest = doomed[lost.index(min(lost))]
        found = [
            replace(each, is_spared=True) if fewest < count < math.inf else each
            for each, count in zip(chances, doomed, strict=True)
        ]
        return tuple(sorted(found, key=lambda each: (each.is_spared, each.nodes is None)))

    def _doomed(self, chance: Chance, needs: Needs) -> float:
        """Who behind could never start after it; infinite where it does not start itself."""
        if chance.nodes is None:
            return math.inf
        return needs.doomed(chance.offer.option, chance.nodes, self.timeline)

    def _chance(self, bid: Bid, offer: Offer, behind: float) -> Chance:
        option, starts, nodes = offer.option, self.now, None
        is_allowed = self._may_take(bid, option)
        if is_allowed and not option.is_blocked:
            nodes = self.rooms.fit(option, self.now + offer.ends_within)
        if nodes is None:
            starts = self.timeline.earliest(option)
            if starts <= self.now:  # room that is kept, or not for its namespace
                starts = self.timeline.after(option.pool)
        cost = cost_seconds(bid, offer, starts - self.now, behind)
        return Chance(offer, starts, cost, nodes, not is_allowed)

    def _may_take(self, bid: Bid, option: Option) -> bool:
        left = self.limits.get(bid.workload.namespace)
        return left is None or option.counted <= left

    def _taken(self, bid: Bid, best: Chance) -> bool:
        """Takes room now, or books it; whether it starts."""
        option = best.offer.option
        if best.nodes is not None:
            self.start(option, best.nodes, best.offer.holds_for, bid.workload.namespace)
            return True
        if math.isfinite(best.starts) and self._may_take(bid, option):
            self.reserve(option, bid.workload.key)
            self.timeline.book(option, best.starts + best.offer.holds_for)
        return False

    def start(
        self, option: Option, nodes: Mapping[str, int], seconds: float, namespace: str
    ) -> None:
        """Takes these nodes now, for so long."""
        self.rooms.take(option, nodes)
        self.timeline.start(option, nodes, self.now + seconds)
        if namespace in self.limits:
            self.limits[namespace] -= option.counted

    def reserve(self, option: Option, key: str) -> None:
        """Keeps nodes for a gang that waits, as long as not too many do."""
        if option.accelerators > 1 and self.gangs.get(option.pool, 0) < HELD_GANGS:
            self.gangs[option.pool] = self.gangs.get(option.pool, 0) + 1
            holds = self.timeline.holds(option, key)
            self.holds.setdefault(option.pool, []).extend(holds)
            self.rooms.hold(option.pool, holds)
