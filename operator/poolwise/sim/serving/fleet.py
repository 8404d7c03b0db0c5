"""Replicas behind a router over time: they start, serve, drain and leave; arrivals are spread."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from poolwise.sim.serving.costs import EngineLimits, IterationCosts, StepTable
from poolwise.sim.serving.log import Log
from poolwise.sim.serving.replica import NEVER, Replica
from poolwise.sim.serving.requests import Answers, Requests
from poolwise.sim.serving.router import Router


@dataclass(slots=True, eq=False)
class Member:
    """One replica and its life; it is paid for from its request until it is gone."""

    name: str
    engine: Replica
    requested_at_seconds: float
    ready_at_seconds: float
    """When it will be, while it starts."""
    is_ready: bool = False
    is_draining: bool = False
    gone_at_seconds: float = NEVER
    place: int = field(default=-1, repr=False)
    """Among those that take requests."""
    event: int = field(default=-1, repr=False)
    """The one that counts, of all that were scheduled for it."""


class Fleet:
    """All replicas of one service and the requests that come to it.

    Time stands at ``now_seconds`` and goes on with :meth:`advance`; :meth:`request` and
    :meth:`drain` act at that moment.
    """

    def __init__(
        self,
        requests: Requests,
        costs: IterationCosts,
        limits: EngineLimits,
        router: Router,
        others: Sequence[tuple[IterationCosts, EngineLimits]] = (),
    ) -> None:
        """``others``: further kinds of replicas, as on other pools."""
        self.now_seconds = 0.0
        self.members: list[Member] = []
        """Not gone yet, in order of their requests."""
        self.gone: list[Member] = []
        self.refused = 0
        """Requests that no cache of this size holds."""
        self._router = router
        self._log = Log(requests)
        self._kinds = [
            (StepTable(cost, limit), limit) for cost, limit in ((costs, limits), *others)
        ]
        self._ready: list[Member] = []
        """Those that take requests."""
        self._loads: list[int] = []
        """Of these, in the same order, as the router counts them."""
        self._held: list[int] = []
        """Requests that came while no replica was ready."""
        self._events: list[tuple[float, int, Member]] = []
        self._scheduled = 0
        self._arrived = 0

    @property
    def wanted(self) -> int:
        """Replicas that are not on their way out."""
        return sum(not member.is_draining for member in self.members)

    @property
    def is_done(self) -> bool:
        """Whether every request has come and none is under way."""
        if self._arrived < len(self._log.arrivals) or self._held:
            return False
        return all(not member.engine.outstanding for member in self.members)

    def answers(self) -> Answers:
        """What became of the requests until now."""
        return self._log.answers()

    def replica_seconds(self, since_seconds: float = 0.0, until_seconds: float = NEVER) -> float:
        """That have to be paid between two moments, until now at most."""
        until = min(until_seconds, self.now_seconds)
        return sum(
            max(
                min(member.gone_at_seconds, until)
                - max(member.requested_at_seconds, since_seconds),
                0.0,
            )
            for member in (*self.gone, *self.members)
        )

    def request(self, count: int, start_delay_seconds: float, kind: int = 0) -> None:
        """So many more of a kind; with no delay they are ready at once."""
        table, limits = self._kinds[kind]
        for _ in range(count):
            number = len(self.members) + len(self.gone)
            engine = Replica(table, limits, self._log)
            ready_at = self.now_seconds + start_delay_seconds
            member = Member(f"replica-{number}", engine, self.now_seconds, ready_at)
            self.members.append(member)
            if start_delay_seconds > 0.0:
                self._schedule(member, ready_at)
            else:
                self._become_ready(member)

    def drain(self, count: int) -> None:
        """So many fewer: those that start leave first, then those with the least work in them."""
        staying = [member for member in self.members if not member.is_draining]
        staying.sort(key=_work)
        for member in staying[:count]:
            member.is_draining = True
            if member.is_ready:
                self._take_out(member)
            if not member.engine.outstanding:
                self._leave(member)

    def advance(self, until_seconds: float) -> None:
        """Let time go on; what happens at that very moment is included."""
        events, arrivals, count = self._events, self._log.arrivals, len(self._log.arrivals)
        arrival = arrivals[self._arrived] if self._arrived < count else NEVER
        while True:
            event = events[0][0] if events else NEVER
            if arrival < event:
                if arrival > until_seconds:
                    break
                self.now_seconds = arrival
                self._route(self._arrived)
                self._arrived += 1
                arrival = arrivals[self._arrived] if self._arrived < count else NEVER
            elif event > until_seconds or event == NEVER:
                break
            else:
                self._happen()
        if until_seconds < NEVER:
            self.now_seconds = until_seconds

    def finish(self) -> None:
        """Let time go on until nothing is left to happen."""
        self.advance(NEVER)

    def _happen(self) -> None:
        moment, number, member = heapq.heappop(self._events)
        if number != member.event:
            return
        self.now_seconds = moment
        if not member.is_ready:
            self._become_ready(member)
            return
        engine = member.engine
        engine.step()
        if not member.is_draining:
            self._loads[member.place] = self._router.load(engine)
        elif not engine.outstanding:
            self._leave(member)
            return
        due = engine.next_seconds
        if due < NEVER:
            self._scheduled = member.event = self._scheduled + 1
            heapq.heappush(self._events, (due, self._scheduled, member))

    def _schedule(self, member: Member, moment_seconds: float) -> None:
        self._scheduled += 1
        member.event = self._scheduled
        heapq.heappush(self._events, (moment_seconds, self._scheduled, member))

    def _become_ready(self, member: Member) -> None:
        member.is_ready, member.place = True, len(self._ready)
        self._ready.append(member)
        self._loads.append(0)
        held, self._held = self._held, []
        for number in held:
            self._route(number)

    def _take_out(self, member: Member) -> None:
        """It takes no more requests; those behind it move up."""
        del self._ready[member.place], self._loads[member.place]
        for place, other in enumerate(self._ready):
            other.place = place

    def _leave(self, member: Member) -> None:
        member.gone_at_seconds, member.event = self.now_seconds, -1
        self.members.remove(member)
        self.gone.append(member)

    def _route(self, number: int) -> None:
        if not self._ready:
            self._held.append(number)
            return
        place = self._router.choose(number, self._loads)
        member = self._ready[place]
        engine, due = member.engine, member.engine.next_seconds
        if not engine.accept(number, self.now_seconds):
            self.refused += 1
            return
        self._loads[place] = self._router.load(engine)
        if engine.next_seconds != due:
            self._schedule(member, engine.next_seconds)


def _work(member: Member) -> tuple[bool, int, float]:
    return member.is_ready, member.engine.outstanding, -member.requested_at_seconds
