"""Services that are placed with more replicas than any pool has room for: the others go on further
pools at once.

That is so for a new one whose declared peak is too large for each pool alone, and where people, HPA
or KEDA set a number. Who runs already stays where it is with as many as fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from poolwise.model.work import ServingLayout
from poolwise.plan.candidates.assessment import candidates
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.serving_groups import nodes_of
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.decision import Candidate, Claim, Holding, Plan
from poolwise.plan.entries import Entry
from poolwise.plan.live.further import begun, elsewhere, offered, planned_again, room
from poolwise.plan.live.rescaling import Rescaling, request_of
from poolwise.plan.requests.request import ServingRequest
from poolwise.plan.wording import plural


@dataclass(frozen=True, slots=True)
class Fitted:
    """A service as one pool has room for it."""

    entry: Entry
    replicas: int | None = None
    """On all pools together; None: what it has on further ones stays."""


def fitted(entry: Entry, situation: Situation) -> Fitted:
    """With no more replicas than fit where it runs, or would be best, if that has no room for all
    of them and others have.

    :param situation: without what it holds in its own pool.
    """
    request = request_of(entry)
    if request is None or (entry.holds is not None and entry.holds.nodes_per_replica > 1):
        return Fitted(entry)
    found = candidates(request, situation.ledger.pools.values(), situation)
    wanted = request.given_replicas if entry.parts else None
    first = _first(entry, found)
    if first is None or first.replicas is None or not isinstance(first.layout, ServingLayout):
        return Fitted(entry, wanted)
    pool = situation.ledger.pools[first.pool]
    here = room(first.layout, request, pool, situation.ledger)
    if not here or nodes_of(first.layout, pool) > 1 or here >= first.replicas:
        return Fitted(entry, wanted)
    others = (each for each in situation.ledger.pools.values() if each.name != pool.name)
    there = sum(each.room for at in others if (each := offered(request, at, situation)))
    held = sum(each.replicas or 0 for each in entry.parts)
    if here + there + held < first.replicas:
        return Fitted(entry, wanted)
    return Fitted(_with_replicas(entry, request, here), first.replicas)


def _first(entry: Entry, found: Iterable[Candidate]) -> Candidate | None:
    """The pool that lacks room alone: where it runs, or the best where none has room for all."""
    every = list(found)
    if entry.holds is not None:
        every = [each for each in every if each.pool == entry.holds.pool]
    if any(each.feasible for each in every):
        return None
    short = [each for each in every if each.reason_code == Verdict.INSUFFICIENT_CAPACITY]
    return min(short, key=lambda each: (_objective(each), each.pool), default=None)


def _objective(found: Candidate) -> float:
    return math.inf if found.objective_value is None else found.objective_value


def _with_replicas(entry: Entry, request: ServingRequest, count: int) -> Entry:
    least = min(request.least_replicas, count)
    if request.given_replicas is not None:
        request = replace(request, given_replicas=count, least_replicas=least)
    else:
        request = replace(request, live_replicas=count, least_replicas=least)
    return replace(entry, wanted=replace(entry.workload, request=request))


def with_parts(
    fit: Fitted, plan: Plan, claims: Mapping[Holding, Claim], situation: Situation
) -> tuple[Plan, Situation]:
    """A service that was planned anew, with what it runs on further pools.

    :param situation: with its claim.
    """
    entry, request = fit.entry, request_of(fit.entry)
    if request is None or not plan.placed or not (entry.parts or fit.replicas):
        return plan, situation
    held = [(each, claims[entry.identity.key, each.pool]) for each in entry.parts]
    parts, situation = planned_again(entry, plan, request, held, situation)
    plan = replace(plan, parts=parts)
    if fit.replicas is not None:
        plan, situation = _with_all(fit, plan, claims, situation)
    told = "".join(
        f"; {plural(each.chosen.replicas or 0, 'replica')} on {each.chosen.pool}, beyond its room"
        for each in plan.parts
        if each.chosen
    )
    return replace(plan, reason=plan.reason + told), situation


def _with_all(
    fit: Fitted, plan: Plan, claims: Mapping[Holding, Claim], situation: Situation
) -> tuple[Plan, Situation]:
    """With as many replicas as are wanted: first on the pools where some are, then where they cost
    least."""
    request, found = request_of(fit.entry), list[Plan]()
    left = (fit.replicas or 0) - _replicas(plan)
    assert request is not None
    for part in plan.parts:
        if left <= 0:
            break
        again, situation = _resized(fit.entry, request, part, left, claims, situation)
        found.append(again)
        left -= _replicas(again)
    taken = {each.claim.pool for each in (plan, *found) if each.claim}
    for offer in elsewhere(taken, request, situation) if left > 0 else ():
        pool = situation.ledger.pools[offer.candidate.pool]
        new = begun(fit.entry, request, pool, left, situation) if left > 0 else None
        if new is not None:
            part, situation = new
            found.append(part)
            left -= _replicas(part)
    return replace(plan, parts=tuple(found)), situation


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


def _replicas(plan: Plan) -> int:
    return (plan.chosen.replicas or 0) if plan.chosen else 0
