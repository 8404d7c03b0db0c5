"""The queue of one pass: everything that waits for a place, decided together.

The joint planner (:mod:`poolwise.plan.joint`) compares run times, goals and prices, and says who
starts on how many accelerators of which pool. It knows no cores, no memory and no pods of others:
the ledger does, and has the last word on the nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import repeat

from poolwise.plan.candidates.situation import Situation
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Candidate, Claim, Key
from poolwise.plan.entries import Entry
from poolwise.plan.joint.bids import LEVEL
from poolwise.plan.joint.outcome import Act, Decision, JointPlan
from poolwise.plan.joint.planning import plan
from poolwise.plan.joint.problem import PoolState, Problem, Reservation, Rules, Workload
from poolwise.plan.joint.rooms import Hold, Rooms
from poolwise.plan.ledger.capacity import Ledger
from poolwise.plan.live.beyond import Fitted
from poolwise.plan.pool import Pool
from poolwise.plan.queueing.holders import Holder, ends_of, pool_state, told, unqualified
from poolwise.plan.queueing.options import MILLICORES, options
from poolwise.plan.requests.request import TrainingRequest
from poolwise.plan.selection.placement import Allotment
from poolwise.plan.standing import Departure, Promise, Standing
from poolwise.settings import Settings

ROUND_SECONDS = (60.0, 300.0, 1800.0, 10800.0, 86400.0)
"""Steps to which moments to come are told: each is used until ten times as long before."""


Kept = Mapping[str, Sequence[tuple[Hold, Claim]]]
"""By pool: room of gangs that wait."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An entry without a place, as it finds room now, and every pool as a candidate for it."""

    fit: Fitted
    found: tuple[Candidate, ...]

    @property
    def entry(self) -> Entry:
        """As one pool has room for it."""
        return self.fit.entry

    @property
    def key(self) -> Key:
        """Of its workload."""
        return self.entry.identity.key

    @property
    def able(self) -> list[str]:
        """Pools that have room for it now."""
        return [each.pool for each in self.found if each.feasible]


@dataclass(frozen=True, slots=True)
class Queue:
    """All that waits, beside all that runs."""

    waiting: Sequence[Waiting]
    holders: Sequence[Holder]
    pools: Sequence[Pool]
    situation: Situation
    before: Standing
    """What the last pass left, or the round before."""

    @property
    def ledger(self) -> Ledger:
        """What is free before anybody in the queue is placed."""
        return self.situation.ledger

    @property
    def now(self) -> datetime:
        """The moment of the pass."""
        return self.situation.now

    def decided(self) -> JointPlan:
        """Who starts where, and who waits for what.

        The optimiser has its say when its last answer is older than ``optimise_seconds``; passes
        in between follow the queue at the prices that it left.
        """
        return plan(self._problem(), optimise=self._is_due)

    def standing(self, joint: JointPlan) -> Standing:
        """What the next pass has to know."""
        optimised = self.now.timestamp() if self._is_due else self.before.optimised
        waiting = {told(each.key) for each in self.waiting}
        departing = {told(holder.key): why for holder, why in self.departures(joint)}
        return Standing(
            joint.reservations,
            joint.shares,
            optimised,
            frozenset({*(self.before.vacated & waiting), *departing}),
            departing,
            self._promised(joint),
        )

    def looks_again_at(self, joint: JointPlan) -> datetime | None:
        """When time alone may let those start who wait: when the optimiser is to be asked, where
        it was not, since it leaves other prices, and when a promise ends. No event would ask for
        that pass."""
        waits = {each.key for each in joint.decisions if each.act is Act.WAIT}
        promised = self._promised(joint).items()
        moments = [each.until for key, each in promised if key in waits]
        if waits and not self._is_due:
            moments.append(self._due)
        return datetime.fromtimestamp(min(moments), UTC) if moments else None

    def _promised(self, joint: JointPlan) -> dict[str, Promise]:
        until = self.now.timestamp() + self.situation.settings.restart_seconds
        made = {each.key: Promise(each.option.pool, until) for each in joint.preemptions}
        return {**self._promises, **made}

    @property
    def _promises(self) -> dict[str, Promise]:
        """Those that stand still."""
        now = self.now.timestamp()
        return {key: each for key, each in self.before.promised.items() if each.until > now}

    @property
    def _is_due(self) -> bool:
        return self.now.timestamp() >= self._due

    @property
    def _due(self) -> float:
        return self.before.due(self.situation.settings.optimise_seconds)

    def allotments(self, joint: JointPlan) -> list[tuple[Waiting, Allotment]]:
        """What each has to know of the joint plan; who starts comes first, and of equals who takes
        several pools: the joint plan knows of the first pool alone, and who starts before would
        take the room on the others."""
        by_key = {each.key: each for each in joint.decisions}
        kept = self._kept(joint)
        found = [
            (each, self._allotment(each, by_key[told(each.key)], joint, kept))
            for each in self.waiting
        ]

        def turn(pair: tuple[Waiting, Allotment]) -> tuple[bool, int, bool]:
            each, allotment = pair
            is_on_one = each.fit.replicas is None
            return not allotment.starts, -each.entry.workload.priority.value, is_on_one

        return sorted(found, key=turn)

    def departures(self, joint: JointPlan) -> list[tuple[Holder, Departure]]:
        """What stops running, to move or to make room, or was told to and is still there."""
        by_key = {told(each.key): each for each in self.holders}
        departing = {**self.before.leaving, **leaving(joint)}
        return [(by_key[key], why) for key, why in departing.items() if key in by_key]

    def _allotment(
        self, each: Waiting, decision: Decision, joint: JointPlan, kept: Kept
    ) -> Allotment:
        pool = decision.option.pool if decision.option else ""
        pools = {option.pool for option in each.found if option.feasible or option.waits}
        return Allotment(
            decision=decision,
            found=each.found,
            nodes=unqualified(pool, decision.nodes),
            prices=tuple(p for p in joint.prices if p.delay and p.pool in pools),
            kept=tuple(self._kept_from(decision, kept)),
            expected_start=rounded_moment(self.now, decision.starts),
        )

    def _kept(self, joint: JointPlan) -> Kept:
        """What gangs that wait keep of each pool."""
        keys = {told(each.key): each.key for each in self.waiting}
        return {
            pool: [(hold, _claim(hold, keys[hold.key], self.ledger.pools[pool])) for hold in holds]
            for pool, holds in joint.holds.items()
        }

    def _kept_from(self, decision: Decision, kept: Kept) -> Iterator[Claim]:
        """What of the pool is for others who start before the workload would surely have ended."""
        option = decision.option
        if option is None or decision.act is not Act.START:
            return
        until = math.inf if option.seconds is None else self.now.timestamp() + option.seconds.high
        for hold, claim in kept.get(option.pool, ()):
            if hold.starts < until and hold.key != decision.key:
                yield claim

    def _problem(self) -> Problem:
        ends = self.situation.memo.ends.each(self.pools, ends_of)
        pools = tuple(map(pool_state, self.pools, ends, repeat(self.ledger)))
        promises = self._promises
        given = self._given(promises)
        pending = [self._pending(each, promises, given) for each in self.waiting]
        return Problem(
            now=self.now.timestamp(),
            pools=pools,
            workloads=(*pending, *(each.workload(self.situation) for each in self.holders)),
            rules=rules(self.situation.settings),
            reservations=tuple(worth_keeping(self.before.reservations, pending, pools)),
            shares={} if self._is_due else self.before.shares,
        )

    def _given(self, promises: Mapping[str, Promise]) -> dict[str, int]:
        """Pools in which others stopped for somebody who waits still, with its priority. Nobody of
        lower priority starts there meanwhile: nobody can tell when pods that were told to end have
        ended, so nothing is booked yet, and who stopped would take again what it left."""
        given = dict[str, int]()
        for each in self.waiting:
            if promise := promises.get(told(each.key)):
                priority = each.entry.workload.priority.value
                given[promise.pool] = max(given.get(promise.pool, priority), priority)
        return given

    def _pending(
        self, each: Waiting, promises: Mapping[str, Promise], given: Mapping[str, int]
    ) -> Workload:
        request, identity = each.entry.workload.request, each.entry.identity
        created = each.entry.workload.created or self.now
        run = request if isinstance(request, TrainingRequest) else None
        deadline = run.deadline if run else None
        priority = each.entry.workload.priority
        is_promised = told(identity.key) in promises
        return Workload(
            key=told(identity.key),
            namespace=identity.key.namespace,
            created=created.timestamp(),
            options=tuple(
                replace(way, is_blocked=True)
                if given.get(way.pool, priority.value) > priority.value
                else way
                for way in options(request, each.found, self.situation)
            ),
            priority=priority.value,
            may_preempt=priority.may_preempt and not is_promised,
            deadline=deadline.timestamp() if deadline else None,
            max_cost=run.max_cost if run else None,
            is_expected=told(identity.key) in self.before.vacated,
        )


def _claim(hold: Hold, key: Key, pool: Pool) -> Claim:
    nodes = unqualified(pool.name, {hold.node: hold.accelerators})
    if pool.is_cpu:
        cores = {node: held / MILLICORES for node, held in nodes.items()}
        return Claim(key, pool.name, {}, cores, {})
    return Claim(key, pool.name, nodes, {}, {})


def worth_keeping(
    booked: Sequence[Reservation], pending: Iterable[Workload], pools: Sequence[PoolState]
) -> Iterator[Reservation]:
    """Without those of who finds room at once where it loses nothing by it: what is booked is kept
    so that nobody changes from one wait to another all the time, and is no reason to wait."""
    ways, rooms = {each.key: each.options for each in pending}, Rooms(pools)
    for each in booked:
        mine = ways.get(each.key, ())
        booked_aims = (way.aim for way in mine if way.pool == each.option.pool)
        most = min(booked_aims, default=0.0) * (1.0 + LEVEL)
        open_to = (way for way in mine if way.aim <= most and not way.is_blocked)
        if all(rooms.fit(way) is None for way in open_to):
            yield each


def leaving(joint: JointPlan) -> dict[str, Departure]:
    """Who is to stop, by name: those that move, and those that others are preferred to."""
    moved = [
        (each.key, Departure(Reason.MOVES, each.reason, each.option))
        for each in joint.decisions
        if each.act is Act.MOVE
    ]
    stopped = [
        (victim.key, Departure(Reason.PREEMPTED, each.reason(victim)))
        for each in joint.preemptions
        for victim in each.victims
    ]
    return dict([*moved, *stopped])


def rounded_moment(now: datetime, at: float | None) -> datetime | None:
    """A moment to come as exact as it deserves: to a tenth of the wait or so, so that its text
    stays the same while the prediction does; None where nobody can tell, or no calendar does."""
    if at is None:
        return None
    wait = max(at - now.timestamp(), 0.0)
    step = next((step for step in ROUND_SECONDS if wait < 10 * step), ROUND_SECONDS[-1])
    try:
        return datetime.fromtimestamp(math.ceil(at / step) * step, UTC)
    except (ValueError, OverflowError):  # a run that ends after the year 9999
        return None


def rules(settings: Settings) -> Rules:
    """What the administrator set."""
    pairs = (each.partition("=") for each in settings.namespace_shares)
    shares = {namespace: float(share) for namespace, _, share in pairs}
    return Rules(
        aging_seconds=settings.aging_seconds,
        namespace_shares=shares,
        marginal_efficiency=settings.marginal_efficiency,
        may_move=settings.may_move,
        may_preempt=settings.may_preempt,
        move_margin=settings.move_margin,
        settle_seconds=settings.settle_seconds,
        time_limit_seconds=settings.optimise_limit_seconds,
        currency=settings.currency,
    )
