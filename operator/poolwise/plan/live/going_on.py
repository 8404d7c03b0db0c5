"""Services that run as nobody would place them now: their spec was edited to one that has no place,
or their pool is gone, and another one has its nodes.

Their pods stay as they are, and so does all that is written for them, but for the number of
replicas. That follows the load, unless the model of the new spec does not even fit: then nobody
could tell what one replica bears.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from poolwise.model.serving.memory import footprint
from poolwise.model.work import ServingLayout
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.decision import Claim, Holding, Key, Outcome, PlacementRecord, Plan, RoomToGrow
from poolwise.plan.entries import Entry
from poolwise.plan.ledger.capacity import Ledger
from poolwise.plan.live.further import rooms
from poolwise.plan.live.rescaling import Wanted, resized
from poolwise.plan.requests.request import ServingRequest

STANDSTILL = (
    "the running replicas are of an earlier spec and could not hold the model of this one: their"
    " number stays"
)


def going_on(
    entry: Entry,
    plan: Plan,
    claims: Mapping[Holding, Claim],
    wanted: Wanted,
    situation: Situation,
) -> tuple[Plan, Situation]:
    """``plan``, which found no place, with what runs meanwhile; and what is left of the cluster.

    No pool is given up, and none is begun: what the new spec has no place on, it cannot start on.
    """
    record = entry.holds
    assert record is not None
    runs = entry.kept(record)
    if not _holds_model(entry.serving, record, situation):
        return replace(plan, goes_on_as=replace(runs, standstill=STANDSTILL)), situation
    entry, asked = _asked(entry, runs, wanted)
    runs, situation = resized(entry, runs, claims, asked, situation)
    return replace(plan, goes_on_as=runs), situation


def parted(entries: Iterable[Entry], ledger: Ledger) -> tuple[list[Entry], list[Entry]]:
    """Those on a pool that is gone and whose nodes another one has, and all others."""
    left, others = list[Entry](), list[Entry]()
    for entry in entries:
        record = entry.holds
        (left if record and record.pool in ledger.former else others).append(entry)
    return left, others


def carried_on(
    entries: Iterable[Entry],
    claims: Mapping[Holding, Claim],
    wanted: Wanted,
    outcomes: dict[Key, Outcome],
    situation: Situation,
) -> tuple[Situation, dict[Key, RoomToGrow]]:
    """What is left once services on pools that are gone have the replicas that their load asks for,
    and where they could have more. ``outcomes`` gets their new plans.

    A number that others set is an edit of the spec, which places a service anew.
    """
    found: dict[Key, RoomToGrow] = {}
    for entry in entries:
        key, request = entry.identity.key, entry.serving
        plan = outcomes.get(key)
        if request is None or not isinstance(plan, Plan) or not plan.kept or entry.state.is_paused:
            continue
        if request.given_replicas is None:
            asking, asked = _asked(entry, plan, wanted)
            plan, situation = resized(asking, plan, claims, asked, situation)
            outcomes[key] = plan
        if (more := rooms(plan, request, situation)) is not None:
            found[key] = more
    return situation, found


def _asked(entry: Entry, runs: Plan, wanted: Wanted) -> tuple[Entry, Wanted]:
    """Replicas by pool: as the load asks for them, or as others set their number."""
    key, request = entry.identity.key, entry.serving
    there = {part.record.pool for part in runs.parts if part.record}
    if request is not None and request.given_replicas is not None:
        given = request.given_replicas
        least = min(request.least_replicas, given)
        request = replace(request, given_replicas=None, least_replicas=least)
        entry = entry.asking(request)
        return entry, Wanted({key: max(given - runs.further_replicas, 0)}, {})
    elsewhere = wanted.elsewhere.get(key)
    parts = {pool: max((elsewhere or {}).get(pool, 0), 1) for pool in there}
    here = {each: count for each, count in wanted.here.items() if each == key}
    return entry, Wanted(here, {} if elsewhere is None else {key: parts})


def _holds_model(request: ServingRequest | None, record: PlacementRecord, at: Situation) -> bool:
    """Whether the model that the new spec asks for fits replicas as they are now."""
    pool, layout = at.ledger.pool(record.pool), record.layout
    if request is None or pool is None or pool.machine is None:
        return False
    if not isinstance(layout, ServingLayout):
        return False
    return footprint(request.work, layout, pool.machine, at.calibration).holds_weights
