"""The joint pass: everything that waits, and what may be moved, placed together.

Prices come first (:mod:`.pricing`), then the queue in order (:mod:`.walk`), then the optimiser on
what could start now (:mod:`.assignment`); its answer is taken only where it is worth more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from poolwise.plan.joint.admission import Admission, Gate
from poolwise.plan.joint.assignment import tiered
from poolwise.plan.joint.bids import FREE, Bid, Offer, Tier, bid, loss, weight_of_all
from poolwise.plan.joint.decisions import Story
from poolwise.plan.joint.exchange import exchanged
from poolwise.plan.joint.items import Assignment, Choice, Floor, Item
from poolwise.plan.joint.moves import Move, movable, moves
from poolwise.plan.joint.outcome import JointPlan
from poolwise.plan.joint.outlook import outlook
from poolwise.plan.joint.preemption import preemptions
from poolwise.plan.joint.pricing import Level, capacity, levels
from poolwise.plan.joint.problem import (
    Option,
    PoolState,
    Problem,
    Reservation,
    Share,
    Workload,
)
from poolwise.plan.joint.promotion import Walked, promoted
from poolwise.plan.joint.rooms import Rooms
from poolwise.plan.joint.settling import all_start, lacking, settled
from poolwise.plan.joint.timeline import Timeline
from poolwise.plan.joint.walk import Turn, Walk
from poolwise.plan.joint.worth import item_of, moving_item, started, with_moves


def plan(problem: Problem, optimise: bool = True) -> JointPlan:
    """A decision for every workload, and a price for every pool.

    :param optimise: False: the queue in order alone.
    """
    found, queue = _walked(problem)
    turns, floor = queue.turns, Floor(problem.pools, found.limits, queue.holds)
    greedy, tiers, offered = found.greedy(turns, floor)
    taken = greedy
    if optimise and not found.has_room_for_all:
        best = tiered(tiers, floor, problem.rules.time_limit_seconds, greedy)
        taken = best if found.is_clearly_better(best, greedy, offered) else greedy
    shares = found.shares
    if not found.has_room_for_all and all_start(taken, found.bids):
        taken = settled(taken, found.bids, floor)
        full = lacking(taken, found.bids)
        shares = {pool: share for pool, share in shares.items() if pool in full}
    story = Story(problem, shares, found.admissions, queue, taken, offered)
    decisions = story.decisions()
    return JointPlan(
        decisions=decisions,
        prices=story.prices,
        reservations=_reservations(turns, taken),
        objective=taken.objective,
        solver=taken.solver,
        shares=found.shares or problem.shares,
        holds=floor.holds,
        preemptions=preemptions(problem, decisions),
        is_as_queued=_is_as_queued(turns, taken),
    )


def _walked(problem: Problem) -> tuple[_Pass, Walked]:
    """The queue in order, but for who goes first since all lose less by it. Where services hold for
    good what somebody could run on, it is walked again at prices that do not count it: nothing is
    kept scarce for who can never have it."""
    found = _Pass.of(problem)
    queue = Walked.by(found.walk(), found.bids)
    if found.has_room_for_all:
        return found, queue
    if any(turn.has_hopeless_chances for turn in queue.turns):
        found = found.within({turn.bid.workload.key: turn.within_reach for turn in queue.turns})
        queue = Walked.by(found.walk(), found.bids)
    queue = promoted(queue, found.walk, Rooms(problem.pools))
    return replace(found, bids=queue.bids), queue


@dataclass(frozen=True, slots=True)
class _Pass:
    """What one pass knows before anything is placed."""

    problem: Problem
    admissions: Mapping[str, Admission]
    """Of pending workloads and of those that may be moved."""
    shares: Mapping[str, Share]
    bids: Sequence[Bid]
    limits: Mapping[str, int]
    movable: Sequence[Workload]
    free: Sequence[Bid]
    """As they would be if no pool were scarce."""
    has_room_for_all: bool = False
    """Whether everybody may start at once where it is best: there is nothing to optimise."""

    @staticmethod
    def of(problem: Problem) -> _Pass:
        now, rules = problem.now, problem.rules
        gate = Gate(problem.pools, rules, now)
        may_go = list(movable(problem.workloads, rules, now))
        admissions = {each.key: gate.admit(each) for each in [*_pending(problem), *may_go]}
        open_to = ((each, admissions[each.key].options) for each in _pending(problem))
        free = [bid(each, ways, {}, now, rules) for each, ways in open_to if ways]
        return _Pass(problem, admissions, {}, free, _limits(problem, gate), may_go, free).within({})

    def within(self, reach: Mapping[str, Sequence[Option]]) -> _Pass:
        """With the prices of those options alone that may ever start; of who is absent all may."""
        problem, limits = self.problem, self.limits
        ways = {key: each.options for key, each in self.admissions.items()} | dict(reach)
        free = _marked(self.free, ways)
        hopeful = [each for each in free if not each.is_hopeless]
        best = [(each, each.best) for each in hopeful]
        if not self.movable and _is_room_for_all(best, problem.pools, limits):
            return replace(self, shares={}, bids=free, has_room_for_all=True)
        shares = dict(problem.shares) or _shares(
            levels(
                [(each, ways[each.key]) for each in [*_pending(problem), *self.movable]],
                capacity(problem.pools, problem.workloads),
            ),
            hopeful,
            problem.pools,
            limits,
        )
        return replace(self, shares=shares, bids=_marked(self._priced(shares), ways))

    def _priced(self, shares: Mapping[str, Share]) -> Sequence[Bid]:
        if shares == self.shares:
            return self.bids
        now, rules = self.problem.now, self.problem.rules
        workloads = [each.workload for each in self.free]
        return [bid(w, self.admissions[w.key].options, shares, now, rules) for w in workloads]

    def walk(self) -> Walk:
        problem = self.problem
        return Walk(
            rooms=Rooms(problem.pools),
            timeline=Timeline(problem.pools, problem.workloads, problem.now),
            now=problem.now,
            limits=dict(self.limits),
            reserved={each.key: each.option.pool for each in problem.reservations},
        )

    def greedy(
        self, turns: Sequence[Turn], floor: Floor
    ) -> tuple[Assignment, list[list[Item]], dict[str, Move]]:
        """The walk's answer with the moves that still find room; all items by tier; the moves."""
        tiers: dict[Tier, list[Item]] = {}
        all_weight = weight_of_all(self.bids)
        for turn in turns:
            item = item_of(turn, self.problem.now, all_weight)
            if item.choices:
                tiers.setdefault(turn.bid.tier, []).append(item)
        items = [item for each in tiers.values() for item in each]
        choices = {item.key: item.choices for item in items}
        best = started(turns, choices)
        if not self.has_room_for_all:
            bids = {turn.bid.workload.key: turn.bid for turn in turns}
            best = exchanged(best, items, bids, floor)
        best_moves = self._moves(all_weight)
        moving = [moving_item(each) for each in best_moves]
        answer = with_moves(best, moving, floor)
        return answer, [*tiers.values(), *([moving] if moving else [])], _by_key(best_moves)

    def is_clearly_better(
        self, answer: Assignment, than: Assignment, moves: Mapping[str, Move]
    ) -> bool:
        """Whether it means less delay for everybody, or says the same and was proven."""
        if _choices(answer) == _choices(than):
            return True
        mine = outlook(self.bids, answer.taken, moves, self.walk())
        return mine.is_clearly_less(outlook(self.bids, than.taken, moves, self.walk()))

    def _moves(self, behind_weight: float) -> list[list[Move]]:
        found = (
            moves(each, self.admissions[each.key].options, self.shares, self.problem.rules,
                  self.problem.now, behind_weight)
            for each in self.movable
        )  # fmt: skip
        return sorted((each for each in found if each), key=lambda each: -each[0].gain_seconds)


def _pending(problem: Problem) -> list[Workload]:
    return [each for each in problem.workloads if each.running is None]


def _marked(bids: Iterable[Bid], ways: Mapping[str, Sequence[Option]]) -> list[Bid]:
    """Who has no way that may ever start is hopeless."""
    return [each if ways[each.workload.key] else replace(each, is_hopeless=True) for each in bids]


def _is_as_queued(turns: Iterable[Turn], answer: Assignment) -> bool:
    queued = {each.bid.workload.key: each.best.offer.option for each in turns if each.starting}
    return queued == {key: each.choice.option for key, each in answer.taken.items()}


def _choices(answer: Assignment) -> dict[str, Choice]:
    return {key: each.choice for key, each in answer.taken.items()}


def _shares(
    found: Sequence[Level],
    bids: Sequence[Bid],
    pools: Sequence[PoolState],
    limits: Mapping[str, int],
) -> dict[str, Share]:
    """By pool, of the time of all who wait, by weight: a level takes that of its own alone, and of
    nobody where all who would rather be there find room."""
    shares = {pool.name: FREE for pool in pools}
    all_weight = weight_of_all(bids)
    for level in found:
        wanted = [(each, offer) for each in bids if (offer := _wanted(each, level)) is not None]
        if not _is_room_for_all(wanted, pools, limits):
            own = weight_of_all(each for each in bids if each.workload.key in level.keys)
            shares |= {
                name: Share(y * own / all_weight, level.seconds) for name, y in level.shares.items()
            }
    return shares


def _wanted(bid: Bid, level: Level) -> Offer | None:
    """What it would have of a level: who belongs there its best there, anybody its best of all."""
    best = bid.best
    if best.option.pool in level.shares:
        return best
    inside = [each for each in bid.offers if each.option.pool in level.shares]
    return min(inside, key=loss) if bid.workload.key in level.keys else None


def _is_room_for_all(
    wanted: Iterable[tuple[Bid, Offer]], pools: Sequence[PoolState], limits: Mapping[str, int]
) -> bool:
    """Whether everybody may start at once where it is best: then nothing is scarce."""
    rooms, left = Rooms(pools), dict(limits)
    for each, offer in sorted(wanted, key=lambda pair: pair[0].rank):
        option, namespace = offer.option, each.workload.namespace
        nodes = rooms.fit(option)
        if (
            nodes is None
            or option.is_blocked
            or option.counted > left.get(namespace, option.counted)
        ):
            return False
        rooms.take(option, nodes)
        if namespace in left:
            left[namespace] -= option.counted
    return True


def _by_key(all_moves: Iterable[Sequence[Move]]) -> dict[str, Move]:
    return {each[0].bid.workload.key: each[0] for each in all_moves}


def _limits(problem: Problem, gate: Gate) -> dict[str, int]:
    """What each namespace with a share may still take."""
    held: dict[str, int] = {}
    for each in problem.workloads:
        if each.running is not None:
            held[each.namespace] = held.get(each.namespace, 0) + each.running.option.counted
    limits = {name: gate.limit(name) for name in problem.rules.namespace_shares}
    return {
        name: max(limit - held.get(name, 0), 0)
        for name, limit in limits.items()
        if limit is not None
    }


def _reservations(turns: Iterable[Turn], taken: Assignment) -> tuple[Reservation, ...]:
    """Of gangs that wait for a moment that can be told."""
    waiting = ((each.bid.workload.key, each.best) for each in turns)
    return tuple(
        Reservation(key, best.offer.option, best.starts)
        for key, best in waiting
        if best.is_reserved and key not in taken.taken
    )
