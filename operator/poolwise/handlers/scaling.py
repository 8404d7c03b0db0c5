"""The loop that keeps services inside their targets: look at all replicas, decide, carry out.

In mode Direct the decided number goes into the next planning pass, which finds room for it; else it
is told alone. A service whose metrics break, whose decision fails, or that somebody else scales too
keeps its replicas, and no other service waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import structlog

from poolwise.cluster import clock
from poolwise.cluster.cache import Cache
from poolwise.cluster.resources import AUTOSCALERS, INFERENCE_SERVICES
from poolwise.cluster.scraping import Reply, Source, Target
from poolwise.cluster.under_way import UnderWay
from poolwise.handlers.asking import Asking
from poolwise.handlers.kinds import Kinds
from poolwise.handlers.lookout import Lookout
from poolwise.handlers.planner import Planner
from poolwise.handlers.rounds import forget, rounds
from poolwise.handlers.turn import LOOKS_UNTIL_TOLD, Known, Turn, missed, refused
from poolwise.handlers.turns import Turns
from poolwise.handlers.vigil import Vigil
from poolwise.model.calibration import shipped
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Key
from poolwise.plan.gateway.reading import QUEUE_ALONE
from poolwise.plan.live.knowledge import Knowledge
from poolwise.plan.live.look import Look, Mode, Standstill, failed, standing
from poolwise.plan.live.overdue import Overdue, together
from poolwise.plan.live.rivals import rival
from poolwise.plan.live.telling import measured
from poolwise.plan.reading import mapping
from poolwise.plan.scaling.controller import decide
from poolwise.plan.scaling.decision import Decision, Remark
from poolwise.plan.scaling.seen import Seen
from poolwise.plan.signals.sample import Sample
from poolwise.settings import Settings
from poolwise.tables import load

_log = structlog.get_logger(__name__)

LEAST_LOOKS = 2


@dataclass(frozen=True, slots=True)
class _Found:
    """What a round came to for one service."""

    seen: Seen
    decision: Decision
    knowledge: Knowledge
    """All that is known from now on."""
    standstill: Standstill | None
    """Why the number of replicas stays, whatever was seen; None: it was decided."""
    refused: str
    """As :func:`poolwise.handlers.turn.refused`."""


class Scaler:
    """Looks and decides; ``looks`` and ``cache.scaling`` are what comes of it."""

    def __init__(
        self,
        cache: Cache,
        planner: Planner,
        source: Source,
        looks: dict[Key, Look],
        settings: Settings,
    ) -> None:
        self._cache = cache
        self._planner = planner
        self._source = source
        self._looks = looks
        self._settings = settings
        self._known: dict[Key, Known] = {}
        tables = load()
        self._kinds = Kinds(planner, settings, shipped(tables))
        self._turns = Turns(cache, planner, self._kinds, self._known, settings, tables)
        self._asking = Asking(cache, planner)
        self._lookout = Lookout(self._take, is_together=bool(settings.prometheus_url))
        self._vigil = Vigil(lambda targets: self._source(targets), self._wake)

    @property
    def samples(self) -> Mapping[str, Sample]:
        """Newest look at each replica, by uid of its pod: who has least work left."""
        return self._lookout.samples

    @property
    def under_way(self) -> Mapping[str, UnderWay[Key]]:
        """Whose replicas, and whose gateways while it sleeps, are looked at just now."""
        return {"scaling": self._lookout.under_way, "gateways": self._vigil.under_way}

    async def run(self) -> None:
        """Round after round, for ever; none waits for the looks of the one before."""
        async with asyncio.TaskGroup() as tasks:

            async def begin() -> None:
                self._begin(tasks)

            async def watch() -> None:
                self._vigil.begin(tasks)

            if not self._settings.prometheus_url:  # which reads no more often than replicas
                watching = rounds(watch, self._settings.gateway_seconds, "gateways")
                tasks.create_task(watching)
            await rounds(begin, self._settings.scaling_interval_seconds, "scaling")

    async def step(self) -> None:
        """One round, until every service is decided."""
        async with asyncio.TaskGroup() as tasks:
            self._begin(tasks)

    async def watch(self) -> None:
        """One look at the queues before all who sleep, and what follows from it."""
        async with asyncio.TaskGroup() as tasks:
            self._vigil.begin(tasks)

    def _begin(self, tasks: asyncio.TaskGroup) -> None:
        turns = list(self._turns.of(self._cache.stores[INFERENCE_SERVICES]))
        for gone in forget(self._by_key, {turn.key for turn in turns}):
            self._planner.look_again(gone, 0)  # its status tells what was seen of its pods
        self._lookout.begin(turns, self._source, tasks)

    def forget(self, key: Key) -> None:
        """Another service has the name now."""
        for known in self._by_key:
            known.pop(key, None)

    @property
    def _by_key(self) -> tuple[dict[Key, Any], ...]:
        """All that is known of services."""
        cache, watched = self._cache, self._vigil.watched
        told = cache.scaling, cache.overflow, cache.least_replicas
        return self._known, self._looks, *told, watched

    def _wake(self, key: Key, tasks: asyncio.TaskGroup) -> None:
        """Decide on one service now: a request waits for its first replica."""
        resource = self._cache.get(INFERENCE_SERVICES, key.namespace, key.name)
        turns = list(self._turns.of([resource] if resource else []))
        self._lookout.look(turns, self._source, tasks)

    def _known_of(self, turn: Turn) -> Known | None:
        """Of this very service; None where it went since, or another one has its name."""
        known = self._known.get(turn.key)
        return known if known and known.version[0] == turn.resource["metadata"]["uid"] else None

    async def _take(self, turn: Turn, told: Mapping[Target, Reply]) -> None:
        known, now = self._known_of(turn), clock.utc_now()
        if known is None:
            return  # it went while its replicas were asked
        overdue = turn.overdue(self._settings.start_timeout_seconds, now.timestamp())
        late = together(overdue.values())
        turn.hear(told, known, now.timestamp())
        seen, failing = turn.seen(told, known, late, now.timestamp())
        known.looks += 1
        found = await self._found(turn, known, seen, overdue, late)
        if self._known_of(turn) is not known:
            return  # it went while it was decided
        self._watch(turn)
        if known.looks < _least_looks(turn, known):
            return  # what was decided and told before a restart stands till then
        self._looks[turn.key] = look = self._look(turn, known, found, failing, now)
        if not self._asking.carry_out(turn, look) and self._says_more(turn, look):
            self._planner.look_again(turn.key, 0)
        if found.standstill:
            self._asking.leave(turn.key, None)
        elif found.knowledge.least is not None:
            self._asking.leave(turn.key, found.knowledge.least.replicas)

    def _look(
        self, turn: Turn, known: Known, found: _Found, failing: Mapping[str, str], now: datetime
    ) -> Look:
        """What is told of the round."""
        knowledge, standstill, placed = found.knowledge, found.standstill, turn.placed
        now_seconds, zero = now.timestamp(), self._kinds.zero(turn, known)
        autoscalers = self._cache.stores[AUTOSCALERS]
        return Look(
            decision=found.decision,
            mode=turn.mode,
            declared=sum(turn.asked.values()),
            told=len(found.seen.samples),
            failing=failing,
            missed=missed(known),
            refused=found.refused,
            conflict=rival(turn.key, turn.mode, autoscalers, turn.held_elsewhere),
            now=now,
            signals=() if standstill else knowledge.record.signals(placed.reported, now_seconds),
            mismatches=() if standstill else knowledge.watch.told,
            memory=knowledge.text,
            by_pool=turn.held,
            least=placed.request.least_replicas,
            most=placed.request.most_replicas,
            standstill=standstill,
            is_asleep=turn.is_asleep,
            is_heard=known.holding is not None and known.holding.is_told,
            zero=zero.condition() if zero else None,
            gateway=self._kinds.gateway(turn, known, now_seconds),
        )

    async def _found(
        self, turn: Turn, known: Known, seen: Seen, overdue: Mapping[str, Overdue], late: Overdue
    ) -> _Found:
        standstill = None
        if turn.standstill is not None:
            knowledge = known.recall(turn, seen.now_seconds)
            standstill = Standstill(Reason.EARLIER_SPEC, turn.standstill)
            decision = standing(turn.held, standstill)
        else:
            try:
                decision, knowledge = await self._decision(turn, known, seen, overdue, late)
            except Exception as error:
                _log.exception("scaling failed on one service", workload=str(turn.key))
                knowledge = Knowledge()  # with what was remembered it would fail again
                standstill = failed(error)
                decision = standing(turn.held, standstill)
            known.knowledge = knowledge
        return _Found(seen, decision, knowledge, standstill, refused(known, decision, seen))

    async def _decision(
        self, turn: Turn, known: Known, seen: Seen, overdue: Mapping[str, Overdue], late: Overdue
    ) -> tuple[Decision, Knowledge]:
        service = self._kinds.service(turn, known, overdue)
        before = known.recall(turn, seen.now_seconds)
        decision = await asyncio.to_thread(decide, service, before.memory, seen)
        if turn.offers and not turn.parts and Remark.AT_CAPACITY in decision.remarks:
            service = self._kinds.service(turn, known, overdue, with_offers=True)
            decision = await asyncio.to_thread(decide, service, before.memory, seen)
        if turn.is_asleep and not decision.replicas and Remark.AT_CAPACITY in decision.remarks:
            decision = turn.with_one(decision)
        place = turn.place(decision, known.log_band)
        after = await asyncio.to_thread(before.after, seen, decision, late, service.targets, place)
        return turn.in_full(decision, overdue, bool(seen.broken) or not seen.samples), after

    def _watch(self, turn: Turn) -> None:
        """Look at the queue before it often while it sleeps."""
        if turn.is_asleep and turn.gateway.targets and turn.mode is not Mode.OFF:
            asked = (replace(each, engine=QUEUE_ALONE) for each in turn.gateway.targets)
            self._vigil.watched[turn.key] = tuple(asked)
        else:
            self._vigil.watched.pop(turn.key, None)

    def _says_more(self, turn: Turn, look: Look) -> bool:
        """Whether the status would tell something else."""
        told = measured(look, mapping(turn.resource, "status", "scaling"))
        known = self._known[turn.key]
        before, known.told = known.told, told
        return before != told


def _least_looks(turn: Turn, known: Known) -> int:
    """Before anything is told: a single look tells of no load, but of a queue."""
    if turn.is_asleep:
        return 1
    return LOOKS_UNTIL_TOLD if known.failures else LEAST_LOOKS
