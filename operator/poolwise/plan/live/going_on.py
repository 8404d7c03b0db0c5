"""Services whose spec was edited to one that has no place: what runs goes on.

Their pods stay those of the spec before, and so does all that is written for them, but for the
number of replicas. That follows the load, unless the model is another one that does not even fit:
then nobody could tell what one replica bears.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from poolwise.model.serving.memory import footprint
from poolwise.model.work import ServingLayout
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.decision import Claim, Holding, PlacementRecord, Plan
from poolwise.plan.entries import Entry
from poolwise.plan.live.rescaling import Wanted, resized
from poolwise.plan.requests.request import ServingRequest

STANDSTILL = (
    "what runs is of an earlier spec, and could not hold the model of the present one: the number"
    " of replicas stays"
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
    pool, layout = at.ledger.pools.get(record.pool), record.layout
    if request is None or pool is None or pool.machine is None:
        return False
    if not isinstance(layout, ServingLayout):
        return False
    return footprint(request.work, layout, pool.machine, at.calibration).holds_weights
