"""Replicas of a service on pools beyond the one that it is placed on.

A pool is offered where a replica would meet every target and there is room for one. Its replica is
the one that the pool would have been chosen with: for the declared peak, and where nothing of that
has room, the smallest. Which offers are taken, and how many replicas of each, is the controller's
affair (:mod:`poolwise.plan.scaling.portfolio`); here they get their nodes.

Replicas that span nodes are not mixed with others.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace

from poolwise.model.work import ServingLayout
from poolwise.plan.candidates.assessment import candidates
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.serving.groups import gang_of_replicas
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.children.budget import record_of
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Candidate, Claim, Further, PlacementRecord, Plan, RoomToGrow
from poolwise.plan.entries import Entry
from poolwise.plan.ledger.capacity import Ledger
from poolwise.plan.pool import Pool
from poolwise.plan.requests.request import ServingRequest
from poolwise.settings import Settings

MOST_OFFERED = 4
"""Pools: each costs the controller a capacity curve."""
_MEETS_ITS_TARGETS = (Verdict.LOST, Verdict.INSUFFICIENT_CAPACITY)


def room(layout: ServingLayout, request: ServingRequest, pool: Pool, ledger: Ledger) -> int:
    """For so many replicas more, on nodes that are there."""
    many = gang_of_replicas(max(request.most_replicas, 1), layout, request, pool)
    there = {node.name for node in pool.usable_nodes if not node.is_to_come}
    slots = ledger.slots(pool, many)
    return sum(count for node, count in slots.items() if node in there) // many.group


def rooms(plan: Plan, request: ServingRequest, situation: Situation) -> RoomToGrow | None:
    """Where a service that runs as planned could have more replicas; None where its pool is
    gone, and on no further ones where another one has that pool's nodes."""
    record = plan.record
    pool = situation.ledger.pool(record.pool) if record else None
    if record is None or pool is None or not isinstance(record.layout, ServingLayout):
        return None
    here = room(record.layout, request, pool, situation.ledger)
    if record.nodes_per_replica > 1 or pool.taken_over_by:
        return RoomToGrow(here)
    return RoomToGrow(here, tuple(_elsewhere(plan, request, situation)))


def _elsewhere(plan: Plan, request: ServingRequest, situation: Situation) -> Iterator[Further]:
    """Where it is already, then where it would be best."""
    own = {part.pool: part for part in plan.parts if part.pool}
    for name, part in own.items():
        pool, chosen = situation.ledger.pools.get(name), part.chosen
        if pool is not None and chosen and isinstance(chosen.layout, ServingLayout):
            yield Further(chosen, room(chosen.layout, request, pool, situation.ledger))
    yield from elsewhere({plan.pool, *own}, request, situation)[: max(MOST_OFFERED - len(own), 0)]


def elsewhere(
    taken: Container[str | None], request: ServingRequest, situation: Situation
) -> list[Further]:
    """Pools beside those that are taken, where a request costs least first."""
    others = (each for each in situation.ledger.pools.values() if each.name not in taken)
    found = [each for pool in others if (each := offered(request, pool, situation))]
    return sorted(found, key=lambda each: (_cost_of_a_request(each.candidate), each.candidate.pool))


def _cost_of_a_request(found: Candidate) -> float:
    """Relative; a pool whose price nobody knows comes after all others."""
    prediction, replicas = found.prediction, max(found.replicas or 0, 1)
    if found.cost_per_hour is None or prediction is None:
        return float("inf")
    rate = getattr(prediction, "capacity_requests_per_second", 0.0)
    return found.cost_per_hour / replicas / max(rate, 1e-9)


def offered(request: ServingRequest, pool: Pool, situation: Situation) -> Further | None:
    """The pool at its best replica that has room; None where none meets the targets or fits."""
    alone = replace(
        request,
        least_replicas=1,
        most_replicas=max(request.most_replicas, 10**6),
        redundancy=0,
        given_replicas=None,
        live_replicas=None,
        running_replicas=0,
        max_cost_per_hour=None,
    )
    for asked in (alone, replace(alone, live_replicas=1)):
        (found,) = candidates(asked, [pool], situation)
        if found.reason_code not in _MEETS_ITS_TARGETS or found.prediction is None:
            return None
        layout = found.layout
        if not isinstance(layout, ServingLayout) or pool.nodes_of(layout.count) > 1:
            return None
        free = room(layout, request, pool, situation.ledger)
        if free:
            return Further(found, free)
    return None


def begun(
    entry: Entry, request: ServingRequest, pool: Pool, count: int, situation: Situation
) -> tuple[Plan, Situation] | None:
    """Replicas on one pool more, as many of ``count`` as there is room for; None: for none."""
    found = offered(request, pool, situation)
    if found is None:
        return None
    return _on(entry, request, pool, found.candidate, min(count, found.room), situation)


def _on(
    entry: Entry,
    request: ServingRequest,
    pool: Pool,
    found: Candidate,
    most: int,
    situation: Situation,
) -> tuple[Plan, Situation] | None:
    assert isinstance(found.layout, ServingLayout)
    for count in range(most, 0, -1):
        gang = gang_of_replicas(count, found.layout, request, pool)
        nodes = situation.nodes_for(gang, pool)
        if nodes is not None:
            claim = gang.claim(entry.identity.key, pool.name, nodes)
            left = situation.with_claim(claim)
            may_surge = left.ledger.fit(pool, replace(gang, pods=1)) is not None
            plan = _plan(entry, request, _of_so_many(found, count), claim, may_surge)
            return plan, left
    return None


def _of_so_many(found: Candidate, count: int) -> Candidate:
    """With another number of replicas, and what those cost."""
    cost, before = found.cost_per_hour, found.replicas
    hourly = cost * count / before if cost is not None and before else cost
    return replace(found, replicas=count, cost_per_hour=hourly)


def _plan(
    entry: Entry, request: ServingRequest, found: Candidate, claim: Claim, may_surge: bool
) -> Plan:
    identity = entry.identity
    return Plan(
        key=identity.key,
        uid=identity.uid,
        generation=identity.generation,
        placed=True,
        reason="beyond the room of the pool that it is placed on",
        reason_code=Reason.PLACED,
        chosen=replace(found, chosen=True),
        candidates=(),
        claim=claim,
        may_surge=may_surge,
        hub_id=request.hub_id,
    )


def planned_again(
    entry: Entry,
    plan: Plan,
    request: ServingRequest,
    parts: Iterable[tuple[PlacementRecord, Claim, int]],
    situation: Situation,
) -> tuple[tuple[Plan, ...], Situation]:
    """The parts of a service whose spec moved: in their shape, where that of the first pool stays;
    else in a new one. Where the targets cannot be met any more they go.

    :param parts: each with as many replicas as may be there in a new shape.
    """
    found: list[Plan] = []
    for record, claim, limit in parts:
        pool = situation.ledger.pools.get(record.pool)
        free = situation.without_claim(claim)
        offer = offered(request, pool, free) if pool and pool.name != plan.pool else None
        if pool is None or offer is None:
            continue
        if _has_same_shape(plan):
            kept = entry.kept_on(replace(record, generation=entry.identity.generation))
            found.append(kept)
            continue
        most = min(record.replicas or 0, offer.room, limit)
        anew = _on(entry, request, pool, offer.candidate, most, free)
        if anew is not None:
            part, situation = anew
            found.append(replace(part, record=record))
    return tuple(found), situation


def recorded(
    plan: Plan, found: Candidate, pool: Pool, settings: Settings, longest_over_told: float
) -> PlacementRecord:
    """What replicas of an offer would run as; none of them does yet."""
    nothing = Claim(plan.key, pool.name, {}, {}, {})
    trial = replace(
        plan, chosen=replace(found, replicas=0), claim=nothing, record=None, kept=False, parts=()
    )
    return record_of(trial, pool, settings, longest_over_told)


def _has_same_shape(plan: Plan) -> bool:
    """Whether a service that was planned again has replicas as before."""
    before, after = plan.record, plan.chosen
    return bool(before and after and (before.pool, before.layout) == (after.pool, after.layout))
