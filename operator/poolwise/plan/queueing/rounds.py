"""The queue carried out, in rounds: what starts takes room, and others are of another size in what
is left. Whom that lets start is not left for the next pass to find.

What waits is sized for what is free before anybody starts. In what is left a service may be of
fewer accelerators a replica, or spread over pools, and a start may find no nodes any more. Runs are
weighed at every count at once: one that waits for a better pool than has room does so on purpose.
A round decides as the next pass would, at the same prices, and what is booked stays booked. Where
somebody is told to stop, the next pass sees what that frees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from poolwise.plan.candidates.assessment import candidates
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.decision import Claim, Holding, Key, Kind, Outcome, Plan
from poolwise.plan.entries import Entry
from poolwise.plan.live.beyond import fitted, with_parts
from poolwise.plan.pool import Pool
from poolwise.plan.queueing.holders import Holder
from poolwise.plan.queueing.queue import Queue, Waiting, leaving
from poolwise.plan.selection.placement import Allotment, Placement
from poolwise.plan.standing import Standing

MOST_ROUNDS = 4
"""Of one pass; nearly all that may start does in the second."""

Allotments = Sequence[tuple[Waiting, Allotment]]


@dataclass(frozen=True, slots=True)
class Carried:
    """What became of the queue."""

    standing: Standing
    situation: Situation
    """Without the room of what started."""
    outcomes: Mapping[Key, Outcome]
    asks_at: datetime | None = None
    """When the optimiser is to be asked for those who wait."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """Of one pass."""

    pools: Sequence[Pool]
    claims: Mapping[Holding, Claim]
    """Of what runs."""

    def carried_out(
        self,
        entries: Sequence[Entry],
        holders: Sequence[Holder],
        situation: Situation,
        standing: Standing,
    ) -> Carried:
        """Who starts is told in its round; who waits once nobody starts any more."""
        outcomes: dict[Key, Outcome] = {}
        waiting = self._sized(entries, situation)
        for _ in range(MOST_ROUNDS):
            queue = Queue(waiting, holders, self.pools, situation, standing)
            joint = queue.decided()
            outcomes |= {each.key: each.left(why) for each, why in queue.departures(joint)}
            asks_at = queue.looks_again_at(joint)
            standing = queue.standing(joint)
            allotments = queue.allotments(joint)
            started, situation = self._started(allotments, situation, outcomes)
            entries = [entry for entry in entries if entry.identity.key not in started]
            if not started or leaving(joint):
                break
            waiting = self._sized(entries, situation)
            if not _may_start(waiting, allotments, joint.is_as_queued):
                break
            holders = [*holders, *started.values()]
        waits = (pair for pair in allotments if pair[0].key not in started)
        outcomes |= {each.key: self._plan(each, allotment, situation) for each, allotment in waits}
        return Carried(standing, situation, outcomes, asks_at)

    def _sized(self, entries: Iterable[Entry], situation: Situation) -> list[Waiting]:
        """As they find room now."""
        fits = [fitted(entry, situation) for entry in entries]
        requests = (each.entry.workload.request for each in fits)
        found = (candidates(request, self.pools, situation) for request in requests)
        return list(map(Waiting, fits, found))

    def _started(
        self, allotments: Allotments, situation: Situation, outcomes: dict[Key, Outcome]
    ) -> tuple[dict[Key, Holder], Situation]:
        """Those whose turn it is, on their nodes; what is left."""
        found: dict[Key, Holder] = {}
        for each, allotment in allotments:
            if not allotment.starts:
                break
            plan = self._plan(each, allotment, situation)
            if plan.claim is not None:
                found[plan.key] = Holder(each.entry, plan.claim)
                situation = situation.with_start(plan.key, plan.claim, allotment.seconds)
                plan, situation = with_parts(each.fit, plan, self.claims, situation)
                outcomes[plan.key] = plan
        return found, situation

    def _plan(self, each: Waiting, allotment: Allotment, situation: Situation) -> Plan:
        return Placement(each.entry.workload, self.pools, situation, allotment=allotment).plan()


def _may_start(waiting: Iterable[Waiting], allotments: Allotments, is_as_queued: bool) -> bool:
    """Whether something has room in what is left for somebody who was not asked about it: for
    anybody, where others start than the queue had counted on."""
    told = {each.key: allotment for each, allotment in allotments}
    is_other = not is_as_queued or any(told[each.key].starts for each in waiting)
    return any(is_other or _is_news(each, told[each.key]) for each in waiting if each.able)


def _is_news(each: Waiting, allotment: Allotment) -> bool:
    """Whether it is a service, of a size that was not weighed, or waits for what has room: the
    queue, which knows accelerators alone, had counted on other nodes."""
    is_service = each.key.kind is Kind.INFERENCE_SERVICE
    awaited = allotment.decision.option.pool if allotment.decision.option else None
    return is_service or awaited in each.able
