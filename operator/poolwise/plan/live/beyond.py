"""Services that are placed with more replicas than any pool has room for: the others go on further
pools at once.

That is so for a new one whose declared peak is too large for each pool alone, and where people, HPA
or KEDA set a number. Who runs already stays where it is with as many as fit.

A declared peak has room as a whole or waits. Of a number that others set as many run as fit, and
more as soon as there is room: nobody would lower a number whose service, being refused, tells none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from poolwise.model.work import ServingLayout
from poolwise.plan.candidates.assessment import candidates
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.serving.groups import gang_of_replicas, wish_of_replicas
from poolwise.plan.candidates.serving.replicas import replicas_paid
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Candidate, Claim, Further, Holding, Key, Outcome, Plan
from poolwise.plan.entries import Entry
from poolwise.plan.live.further import begun, elsewhere, offered, planned_again, room
from poolwise.plan.live.maximum import allowed, cost_of_one
from poolwise.plan.live.rescaling import Rescaling, bounded
from poolwise.plan.requests.request import ServingRequest
from poolwise.plan.selection.ranking import SortKey, by_objective
from poolwise.plan.wording import plural


@dataclass(frozen=True, slots=True)
class Fitted:
    """A service as one pool has room for it."""

    entry: Entry
    replicas: int | None = None
    """On all pools together; None: what it has on further ones stays."""


def fitted(entry: Entry, situation: Situation) -> Fitted:
    """With no more replicas than fit where it runs, or would be best, if that has no room for all
    of them.

    :param situation: without what it holds in its own pool.
    """
    request = entry.serving
    if request is None:
        return Fitted(entry)
    given = request.given_replicas if entry.parts else None
    for first in _firsts(entry, request, situation):
        wanted = first.candidate.replicas or 0
        shared = _with_share(request, wanted)
        fit = min(first.room + _room_beside(first, entry, shared, situation), wanted)
        if fit == wanted or _takes_fewer(entry, shared, fit):
            return Fitted(_with_replicas(entry, shared, first.room), fit)
    return Fitted(entry, given)


def _with_share(request: ServingRequest, wanted: int) -> ServingRequest:
    """A new service's: so many replicas bear its peak, each its even share, on whatever pool."""
    rate, bearing = request.work.requests_per_second, wanted - request.redundancy
    is_set = request.given_replicas is not None or request.live_replicas is not None
    if is_set or rate is None or bearing < 1:
        return request
    return replace(request, least_requests_per_second=rate / bearing)


def _firsts(entry: Entry, request: ServingRequest, situation: Situation) -> list[Further]:
    """The pools that lack room alone: where it runs, or all, the best first, where none has room
    for all."""
    every = candidates(request, situation.ledger.pools.values(), situation)
    if entry.holds is not None:
        every = tuple(each for each in every if each.pool == entry.holds.pool)
    if any(each.feasible for each in every):
        return []
    short = (each for each in every if each.reason_code == Verdict.INSUFFICIENT_CAPACITY)
    found = (Further(each, _room_for(each, request, situation)) for each in short)
    able = (each for each in found if each.room)
    return sorted(able, key=_best_first)


def _room_for(found: Candidate, request: ServingRequest, situation: Situation) -> int:
    """For so many replicas, as close together as they have to be."""
    layout, pool = found.layout, situation.ledger.pools[found.pool]
    if found.replicas is None or not isinstance(layout, ServingLayout):
        return 0
    for count in range(min(room(layout, request, pool, situation.ledger), found.replicas), 0, -1):
        gang = gang_of_replicas(count, layout, request, pool)
        if situation.has_room(gang, pool, wish_of_replicas(count, layout, request, pool)):
            return count
    return 0


def _room_beside(
    first: Further, entry: Entry, request: ServingRequest, situation: Situation
) -> int:
    """For so many on other pools that a peak may be paid for there, those that are there included;
    replicas that span nodes are not mixed with others."""
    pools, layout = situation.ledger.pools, first.candidate.layout
    assert isinstance(layout, ServingLayout)
    spans = entry.holds is not None and entry.holds.nodes_per_replica > 1
    if spans or pools[first.candidate.pool].nodes_of(layout.count) > 1:
        return 0
    others = (each for each in pools.values() if each.name != first.candidate.pool)
    offers = [each for at in others if (each := offered(request, at, situation))]
    money = _money_beside(first, entry, request, situation)
    return _paid(offers, money) + sum(each.replicas or 0 for each in entry.parts)


def _money_beside(
    first: Further, entry: Entry, request: ServingRequest, situation: Situation
) -> float | None:
    """Of what an hour may cost, for more on other pools than are there; None: no limit. Of a number
    that others set as many start as are paid for."""
    limit = request.max_cost_per_hour
    if limit is None or request.given_replicas is not None:
        return None
    parts = [entry.kept_on(each) for each in entry.parts]
    spent = (each.replicas * cost_of_one(each, situation) for each in parts)
    return limit - first.room * _cost_of_a_replica(first, 0.0) - math.fsum(spent)


def _paid(offers: Iterable[Further], money: float | None) -> int:
    """For so many replicas there is room that can be paid for, where one costs least first."""
    count = 0
    for each in sorted(offers, key=_cost_of_a_replica):
        cost = _cost_of_a_replica(each, 0.0)
        more = replicas_paid(each.room, cost, money)
        money = None if money is None else money - more * cost
        count += more
    return count


def _takes_fewer(entry: Entry, request: ServingRequest, fit: int) -> bool:
    """Whether so many replicas are better than none of what is wanted: where others set the number,
    unless more run now, of a smaller size."""
    running = (entry.holds, *entry.parts) if entry.holds else ()
    there = sum(each.replicas or 0 for each in running)
    return request.given_replicas is not None and fit >= there


def _best_first(found: Further) -> tuple[float, int, SortKey]:
    """Of pools that are as good, who has room for most, so that fewest replicas are elsewhere."""
    value = found.candidate.objective_value
    return math.inf if value is None else value, -found.room, by_objective(found.candidate)


def _with_replicas(entry: Entry, request: ServingRequest, count: int) -> Entry:
    least = min(request.least_replicas, count)
    if request.given_replicas is not None:
        request = replace(request, given_replicas=count, least_replicas=least)
    else:
        request = replace(request, live_replicas=count, least_replicas=least)
    return entry.asking(request)


def followed(
    entries: Iterable[Entry],
    claims: Mapping[Holding, Claim],
    outcomes: dict[Key, Outcome],
    situation: Situation,
) -> Situation:
    """What is left once services that are kept have as many more of the replicas that others set as
    there is room for now. ``outcomes`` gets their new plans."""
    for entry in entries:
        plan, request = outcomes.get(entry.identity.key), entry.serving
        if request is None or entry.state.is_paused or not isinstance(plan, Plan) or not plan.kept:
            continue
        there = plan.replicas + plan.further_replicas
        if request.given_replicas is not None and there < request.given_replicas:
            outcomes[plan.key], situation = _with_more(entry, request, plan, claims, situation)
    return situation


def _with_more(
    entry: Entry,
    request: ServingRequest,
    plan: Plan,
    claims: Mapping[Holding, Claim],
    situation: Situation,
) -> tuple[Plan, Situation]:
    record = plan.record
    assert record is not None and request.given_replicas is not None
    claim, there = claims.get(entry.identity.key, record.claim), plan.replicas
    more = request.given_replicas - plan.further_replicas - there
    more = replicas_paid(more, cost_of_one(plan, situation), _money_left(request, plan, situation))
    here = Rescaling(request, record, claim, situation).to(there + more)
    if here is not None:
        record, situation = here
        plan = replace(entry.kept_on(record), parts=plan.parts)
    if record.nodes_per_replica > 1:
        return plan, situation
    return _with_all(Fitted(entry, request.given_replicas), plan, claims, situation)


def with_parts(
    fit: Fitted, plan: Plan, claims: Mapping[Holding, Claim], situation: Situation
) -> tuple[Plan, Situation]:
    """A service that was planned anew, with what it runs on further pools.

    :param situation: with its claim.
    """
    entry, request = fit.entry, fit.entry.serving
    if request is None or not plan.placed or not (entry.parts or fit.replicas):
        return plan, situation
    there = {each.pool: entry.kept_on(each) for each in entry.parts}
    most = allowed(plan, there, request.most_replicas, situation)
    held = [(each, claims[entry.identity.key, each.pool], most[each.pool]) for each in entry.parts]
    parts, situation = planned_again(entry, plan, request, held, situation)
    plan = bounded(entry, replace(plan, parts=parts), request, claims, situation)
    if fit.replicas is not None:
        plan, situation = _with_all(fit, plan, claims, situation)
    return replace(plan, reason=plan.reason + _beyond(plan.parts)), situation


def asked_parts(fit: Fitted, plan: Plan, situation: Situation) -> Plan:
    """A service that only asks, with what it would have on further pools."""
    request, chosen = fit.entry.serving, plan.chosen
    is_answered = plan.reason_code == Reason.PLAN_ONLY and chosen is not None
    if request is None or fit.replicas is None or not is_answered:
        return plan
    assert chosen is not None and isinstance(chosen.layout, ServingLayout)
    pool = situation.ledger.pools[chosen.pool]
    gang = gang_of_replicas(plan.replicas, chosen.layout, request, pool)
    nodes = situation.nodes_for(gang, pool, chosen.wish)
    if nodes is None:
        return plan
    claim = gang.claim(plan.key, pool.name, nodes)
    left = situation.with_claim(claim)
    parts = _with_all(fit, replace(plan, claim=claim), {}, left)[0].parts
    return replace(plan, reason=plan.reason + _beyond(parts), parts_asked=parts)


def _beyond(parts: Iterable[Plan]) -> str:
    """How many are on which further pools, as clauses."""
    return "".join(
        f"; {plural(each.replicas, 'replica')} on {each.chosen.pool}, beyond its room"
        for each in parts
        if each.chosen
    )


def _with_all(
    fit: Fitted, plan: Plan, claims: Mapping[Holding, Claim], situation: Situation
) -> tuple[Plan, Situation]:
    """With as many replicas as are wanted: first on the pools where some are, then where one costs
    least, whatever it could bear: each gets as many requests as the others."""
    request, found = fit.entry.serving, list[Plan]()
    left = (fit.replicas or 0) - plan.replicas
    assert request is not None
    behind = plan.further_replicas
    for index, part in enumerate(plan.parts):
        if left <= 0:
            break
        there = part.replicas
        behind -= there
        so_far = replace(plan, parts=(*found, *plan.parts[index:]))
        more = max(left - behind, min(left, there)) - there
        more = replicas_paid(
            more, cost_of_one(part, situation), _money_left(request, so_far, situation)
        )
        again, situation = _resized(fit.entry, request, part, there + more, claims, situation)
        found.append(again)
        left -= again.replicas
    taken = {each.pool for each in (plan, *found) if each.pool}
    offers = elsewhere(taken, request, situation) if left > 0 else []
    for offer in sorted(offers, key=_cost_of_a_replica):
        pool = situation.ledger.pools[offer.candidate.pool]
        money = _money_left(request, replace(plan, parts=tuple(found)), situation)
        count = replicas_paid(left, _cost_of_a_replica(offer, 0.0), money)
        new = begun(fit.entry, request, pool, count, situation) if count > 0 else None
        if new is not None:
            part, situation = new
            found.append(part)
            left -= part.replicas
    return replace(plan, parts=tuple(found)), situation


def _cost_of_a_replica(offer: Further, unknown: float = math.inf) -> float:
    """An hour of it; a pool whose price nobody knows comes after all others."""
    cost, replicas = offer.candidate.cost_per_hour, offer.candidate.replicas
    return unknown if cost is None else cost / max(replicas or 0, 1)


def _money_left(request: ServingRequest, plan: Plan, situation: Situation) -> float | None:
    """Of what an hour may cost, for replicas that others ask for; None: no limit. A peak that is
    declared is paid for as a whole, or refused (:func:`_money_beside`)."""
    limit = request.max_cost_per_hour
    if limit is None or request.given_replicas is None:
        return None
    spent = (each.replicas * cost_of_one(each, situation) for each in (plan, *plan.parts))
    return limit - math.fsum(spent)


def _resized(
    entry: Entry,
    request: ServingRequest,
    part: Plan,
    count: int,
    claims: Mapping[Holding, Claim],
    situation: Situation,
) -> tuple[Plan, Situation]:
    """One in its shape of before; in a new one it has as many as before."""
    if not part.kept or part.record is None:
        return part, situation
    claim = claims[entry.identity.key, part.record.pool]
    found = Rescaling(request, part.record, claim, situation).to(count)
    return (entry.kept_on(found[0]), found[1]) if found else (part, situation)
