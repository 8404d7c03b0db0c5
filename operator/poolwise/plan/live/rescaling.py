"""Services that run, with the replicas that their load asks for.

The number changes, the place does not: same pool, same shape, same pod template, so that nothing
restarts. New replicas take free room alone; where there is not enough, as many come as fit, and
others on further pools (:mod:`poolwise.plan.live.further`). What replicas are given up is free for
others once their pods have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from poolwise.plan.candidates.serving.groups import gang_of_replicas, wish_of_replicas
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.decision import (
    Claim,
    Holding,
    Key,
    Outcome,
    PlacementRecord,
    Plan,
    RoomToGrow,
)
from poolwise.plan.entries import Entry
from poolwise.plan.ledger.capacity import Gang
from poolwise.plan.ledger.growth import is_to_come
from poolwise.plan.live.further import begun, rooms
from poolwise.plan.live.maximum import allowed
from poolwise.plan.pool import Pool
from poolwise.plan.requests.request import ServingRequest


@dataclass(frozen=True, slots=True)
class Wanted:
    """Replicas that the load of services asks for."""

    here: Mapping[Key, int]
    """On the pool that each is placed on."""
    elsewhere: Mapping[Key, Mapping[str, int]]
    """On further ones, as :attr:`Observed.overflow`."""


def with_live_replicas(entries: Iterable[Entry], scaling: Mapping[Key, int]) -> Iterator[Entry]:
    """Entries that are planned with as many replicas as their load asks for, and where that is not
    known, with no fewer than they run with: neither a change of a spec nor replicas that tell
    nothing are a reason to forget the load. A larger declared peak counts before it is seen."""
    for entry in entries:
        if (request := entry.serving) is not None:
            request = replace(
                request,
                live_replicas=scaling.get(entry.identity.key),
                running_replicas=(entry.holds.replicas or 0) if entry.holds else 0,
            )
            entry = entry.asking(request)
        yield entry


def rescaled(
    entries: Iterable[Entry],
    claims: Mapping[Holding, Claim],
    wanted: Wanted,
    outcomes: dict[Key, Outcome],
    situation: Situation,
) -> tuple[Situation, dict[Key, RoomToGrow]]:
    """What is left once services that are kept have the replicas of ``wanted``; and where those
    could have more that asked, or that did not get as many as they need.

    ``outcomes`` gets their new plans. Only services that run and may be scaled are touched.
    """
    asking = list[tuple[Entry, Plan, ServingRequest]]()
    for entry in entries:
        key, plan = entry.identity.key, outcomes.get(entry.identity.key)
        request = entry.serving
        if request is None or not isinstance(plan, Plan) or not plan.kept or plan.record is None:
            continue
        if key in wanted.here or key in wanted.elsewhere or plan.parts:
            service = _Service(entry, request, claims)
            plan, situation = service.scaled(plan, wanted, situation)
            outcomes[key] = plan
            if key in wanted.elsewhere or service.is_short(plan, wanted):
                asking.append((entry, plan, request))
    found = {
        entry.identity.key: each
        for entry, plan, request in asking
        if (each := rooms(plan, request, situation)) is not None
    }
    return situation, found


def resized(
    entry: Entry,
    plan: Plan,
    claims: Mapping[Holding, Claim],
    wanted: Wanted,
    situation: Situation,
) -> tuple[Plan, Situation]:
    """What a service runs by, with the replicas of ``wanted`` where there is room for them."""
    request = entry.serving
    if request is None:
        return plan, situation
    return _Service(entry, request, claims).scaled(plan, wanted, situation)


@dataclass(frozen=True, slots=True)
class _Service:
    """One service on all its pools."""

    entry: Entry
    request: ServingRequest
    claims: Mapping[Holding, Claim]

    def scaled(self, plan: Plan, wanted: Wanted, situation: Situation) -> tuple[Plan, Situation]:
        """With the replicas that it needs, where there is room for them."""
        key, record = self.entry.identity.key, plan.record
        assert record is not None
        if self.request.given_replicas is not None:  # others set it: see :mod:`.beyond`
            return plan, situation
        here = wanted.here.get(key)
        if here is not None and record.replicas is not None:
            record, situation = self._rescaled(record, self._bounded(here, plan), situation, key)
        parts, situation = self._parts(plan, wanted.elsewhere.get(key), situation)
        found = replace(self.entry.kept_on(record), parts=parts)
        parts = bounded(self.entry, found, self.request, self.claims, situation).parts
        if record is plan.record and parts == plan.parts:
            return plan, situation
        return replace(found, parts=parts), situation

    def is_short(self, plan: Plan, wanted: Wanted) -> bool:
        """Whether its pool has fewer replicas of it than are needed there."""
        here = wanted.here.get(self.entry.identity.key)
        if here is None or plan.record is None or self.request.given_replicas is not None:
            return False
        return (plan.record.replicas or 0) < self._bounded(here, plan)

    def _bounded(self, here: int, plan: Plan) -> int:
        least = 1 if plan.parts else self.request.least_replicas
        return min(max(here, least), self.request.most_replicas)

    def _rescaled(
        self, record: PlacementRecord, count: int, situation: Situation, holding: Holding
    ) -> tuple[PlacementRecord, Situation]:
        claim = self.claims.get(holding, record.claim)
        found = Rescaling(self.request, record, claim, situation).to(count)
        return found or (record, situation)

    def _parts(
        self, plan: Plan, wanted: Mapping[str, int] | None, situation: Situation
    ) -> tuple[tuple[Plan, ...], Situation]:
        """Those that are there with another number, and new ones; what is given up is held until
        its pods have ended."""
        if wanted is None:
            return plan.parts, situation
        key, parts = self.entry.identity.key, list[Plan]()
        there = {part.record.pool: part for part in plan.parts if part.record}
        for name, count in sorted(wanted.items()):
            pool, part = situation.ledger.pools.get(name), there.get(name)
            if pool is None or count <= 0 or name == plan.pool:
                continue
            if part is not None and part.record is not None:
                again, situation = self._rescaled(part.record, count, situation, (key, name))
                parts.append(self.entry.kept_on(again))
            elif (new := begun(self.entry, self.request, pool, count, situation)) is not None:
                part, situation = new
                parts.append(part)
        return tuple(parts), situation


def bounded(
    entry: Entry,
    plan: Plan,
    request: ServingRequest,
    claims: Mapping[Holding, Claim],
    situation: Situation,
) -> Plan:
    """Without replicas on further pools beyond ``maxReplicas``, whether anybody looks at them or
    not. A number that others set is theirs; what is planned in a new shape is bounded already."""
    if request.given_replicas is not None:
        return plan
    there = {each.pool: each for each in plan.parts if each.pool}
    most, parts = allowed(plan, there, request.most_replicas, situation), list[Plan]()
    for pool, part in there.items():
        if part.kept and part.record is not None and 0 < most[pool] < part.replicas:
            claim = claims.get((plan.key, pool), part.record.claim)
            found = Rescaling(request, part.record, claim, situation).to(most[pool])
            part = entry.kept_on(found[0]) if found else part
        if most[pool]:
            parts.append(part)
    return replace(plan, parts=tuple(parts))


@dataclass(frozen=True, slots=True)
class Rescaling:
    """One service on one pool."""

    request: ServingRequest
    _record: PlacementRecord
    _claim: Claim
    _situation: Situation

    def to(self, wanted: int) -> tuple[PlacementRecord, Situation] | None:
        """The record with so many replicas, or as many as there is room for; None where nothing
        changes."""
        record, pool = self._record, self._situation.ledger.pool(self._record.pool)
        if pool is None or record.replicas is None:
            return None
        if wanted < record.replicas:
            return self._smaller(wanted, pool), self._situation
        if wanted > record.replicas:
            return self._larger(wanted, pool)
        return None

    def as_it_is(self, wanted: int) -> tuple[PlacementRecord, Situation] | None:
        """The same where others set the number, and started or ended pods already: what these hold
        is neither asked for again nor kept. None while the pool is gone."""
        pool = self._situation.ledger.pool(self._record.pool)
        if pool is None:
            return None
        gang = self._gang(1, pool)
        there = sum(self._pods(gang).values()) // gang.pods
        record = self._smaller(there, pool)
        counted = replace(self, _record=record, _claim=record.claim)
        return counted.to(wanted) or (record, self._situation)

    def _smaller(self, wanted: int, pool: Pool) -> PlacementRecord:
        gang = self._gang(wanted, pool)
        kept: dict[str, int] = {}
        rest = gang.pods
        for node, pods in sorted(self._pods(gang).items(), key=_leaves_last):
            kept[node] = min(pods, rest)
            rest -= kept[node]
        claim = gang.claim(self._claim.key, pool.name, {node: n for node, n in kept.items() if n})
        return replace(self._record, replicas=wanted, claim=claim)

    def _larger(self, wanted: int, pool: Pool) -> tuple[PlacementRecord, Situation] | None:
        assert self._record.replicas is not None
        more = wanted - self._record.replicas
        wished = self._gang(more, pool)
        room = self._situation.ledger.most_pods(pool, wished) // wished.group
        for count in range(min(more, room), 0, -1):
            gang = self._gang(count, pool)
            wish = wish_of_replicas(count, self._record.serving_layout, self.request, pool)
            nodes = self._situation.nodes_for(gang, pool, wish)
            if nodes is not None:
                return self._grown(count, gang, nodes, pool)
        return None

    def _grown(
        self, count: int, gang: Gang, nodes: Mapping[str, int], pool: Pool
    ) -> tuple[PlacementRecord, Situation]:
        assert self._record.replicas is not None
        pods = self._pods(gang)
        for node, more in nodes.items():
            pods[node] = pods.get(node, 0) + more
        claim = gang.claim(self._claim.key, pool.name, pods)
        left = self._situation.without_claim(self._claim).with_claim(claim)
        one = replace(gang, pods=gang.group)
        record = replace(
            self._record,
            replicas=self._record.replicas + count,
            claim=claim,
            may_surge=left.ledger.fit(pool, one) is not None,
        )
        return record, left

    def _gang(self, replicas: int, pool: Pool) -> Gang:
        nodes = self._record.nodes_per_replica
        return gang_of_replicas(replicas, self._record.serving_layout, self.request, pool, nodes)

    def _pods(self, gang: Gang) -> dict[str, int]:
        """By node: how many pods the claim stands for."""
        if gang.accelerators:
            held = self._claim.accelerators_by_node
            return {node: count // gang.accelerators for node, count in held.items()}
        cores = self._claim.cores_by_node
        return {node: round(amount / gang.cores) for node, amount in cores.items()}


def _leaves_last(item: tuple[str, int]) -> tuple[bool, int, str]:
    """Nodes that are not there yet are given up first, then those with few replicas."""
    node, pods = item
    return is_to_come(node), -pods, node
