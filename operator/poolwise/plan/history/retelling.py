"""Stories of what runs, where the status lost its own: by hand, or in a backup without it.

The children remember what runs and where; what was predicted of it, and of other pools, stood in
the status alone. It is worked out again for the very shape that runs: nothing is placed anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from poolwise.plan.candidates.assessment import candidates
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.decision import Candidate, Claim, Holding, Key, Outcome, PlacementRecord, Plan
from poolwise.plan.entries import Entry
from poolwise.plan.requests.request import (
    FixedLayout,
    Request,
    ServingRequest,
    TrainingRequest,
    Workload,
)


def retold(
    entries: Iterable[Entry],
    claims: Mapping[Holding, Claim],
    outcomes: Mapping[Key, Outcome],
    situation: Situation,
) -> Iterator[tuple[Key, Plan]]:
    """Plans with prediction and candidates, of those that run and are told without."""
    for entry in entries:
        plan = outcomes.get(entry.identity.key)
        if not entry.is_untold or entry.state.is_paused or not isinstance(plan, Plan):
            continue
        if isinstance(entry.wanted, Workload) and plan.kept and plan.placed and plan.record:
            alone = situation.without_claim(claims.get(plan.key))
            yield plan.key, _retold(plan, plan.record, entry.wanted, alone)


def _retold(plan: Plan, record: PlacementRecord, wanted: Workload, situation: Situation) -> Plan:
    """As it is where its pool is gone, or tells nothing of such a shape any more."""
    pools = situation.ledger.pools
    if record.pool not in pools:
        return plan
    (here,) = candidates(_as_it_runs(wanted.request, record), [pools[record.pool]], situation)
    if here.prediction is None or plan.chosen is None:
        return plan
    runs = replace(
        here,
        feasible=True,
        waits=False,
        reason=plan.chosen.reason,
        reason_code=Verdict.CHOSEN,
        count=record.count,
        replicas=record.replicas,
        layout=record.layout,
        chosen=True,
    )
    others = [each for each in pools.values() if each.name != record.pool]
    found: tuple[Candidate, ...] = candidates(wanted.request, others, situation)
    return replace(plan, chosen=runs, candidates=(runs, *found))


def _as_it_runs(request: Request, record: PlacementRecord) -> Request:
    """Of the shape and size that runs, and no other, whatever it costs by now."""
    if isinstance(request, TrainingRequest):
        run = record.training_layout
        fixed = FixedLayout(
            data=run.data,
            tensor=run.tensor,
            pipeline=run.pipeline,
            expert=run.expert,
            context=run.context,
            zero_stage=run.zero_stage,
            micro_batch_size=run.micro_batch_size,
            recompute=run.recompute,
        )
        return replace(request, fixed=fixed, least=record.count, most=record.count)
    assert isinstance(request, ServingRequest)
    layout = record.serving_layout
    if not layout.count:
        return replace(request, given_replicas=record.replicas, max_cost_per_hour=None)
    shape = replace(
        request.fixed,
        accelerators=layout.count,
        tensor=layout.tensor,
        pipeline=layout.pipeline,
        expert=layout.expert,
    )
    return replace(request, fixed=shape, given_replicas=record.replicas, max_cost_per_hour=None)
