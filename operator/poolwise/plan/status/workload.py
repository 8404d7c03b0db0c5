"""The status of a workload, complete: conditions, the plan with its story, and what is seen.

A pure function of what is decided and seen, so that computing it again from its own result gives
the same bytes, and a converged cluster is never written to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from poolwise.plan.children.metadata import selector_text
from poolwise.plan.children.serving import progress_deadline_seconds
from poolwise.plan.conditions import Reason, Type, condition, merged, timestamp
from poolwise.plan.decision import Kind, Outcome, Plan, chosen_pool
from poolwise.plan.live.telling import MeasuredStatus
from poolwise.plan.names import PAUSED
from poolwise.plan.observed import Object
from poolwise.plan.pool import Pool
from poolwise.plan.provisioning.attempts import remembered
from poolwise.plan.provisioning.evidence import bearers, startable_since
from poolwise.plan.reading import is_true, mapping, number
from poolwise.plan.records.hourly import cost_per_hour, joules_per_hour
from poolwise.plan.records.meter import read
from poolwise.plan.records.meter import told as meter_told
from poolwise.plan.rounding import rounded
from poolwise.plan.status.accrual import accrued
from poolwise.plan.status.budget import Money
from poolwise.plan.status.finish import expected_finish
from poolwise.plan.status.further import with_further
from poolwise.plan.status.pods import Live, Observation, observe, with_hung
from poolwise.plan.status.steady import steady
from poolwise.plan.status.story import rollout, story
from poolwise.plan.status.workload_conditions import FINISHED, View, workload_conditions
from poolwise.plan.steps.told import kept
from poolwise.plan.wording import significant

CANDIDATE_LIMIT = 64
"""Candidates in a status, which has to stay far below etcd's 1.5 MB."""
PAUSED_MESSAGE = f'annotation {PAUSED} is "true": Poolwise writes nothing but this'


def status(
    resource: Object,
    outcome: Outcome,
    pools: Mapping[str, Pool],
    live: Live,
    now: datetime,
    measured: MeasuredStatus | None = None,
) -> dict[str, Any]:
    """Everything that ``status`` should say.

    ``pools`` are those that there are, by name. ``measured`` is what the newest look at its pods
    told.
    """
    before = resource.get("status") or {}
    generation = resource["metadata"].get("generation", outcome.generation)
    if is_paused(resource):
        return {**before, "conditions": _with_paused(before, generation, now)}
    pool, seen = chosen_pool(outcome, pools), _seen(outcome, live, now)
    told = with_further(_told(before, outcome, seen, pool, now), outcome, pool, pools)
    meter = read(mapping(before, "observed", "accrued"))
    meter = accrued(meter, outcome, told, pools, seen, now)
    run = measured.observed if measured else mapping(before, "observed")
    money = Money(meter, expected_finish(resource, seen, told, run), now)
    view = View(resource, outcome, told, seen, pool, money, measured)
    wanted = workload_conditions(view)
    return {
        "observedGeneration": generation,
        "conditions": merged(before.get("conditions") or (), wanted, generation, now),
        **({"plan": dict(told)} if told else {}),
        **_start(resource, outcome, seen, live.children, now),
        **_observed(before, view),
    }


def _seen(outcome: Outcome, live: Live, now: datetime) -> Observation:
    """What there is of it, and what of that does not start in time."""
    seen = observe(outcome.uid, *live)
    runs = outcome.running if isinstance(outcome, Plan) else None
    if runs is None or runs.record is None or outcome.key.kind is not Kind.INFERENCE_SERVICE:
        return seen
    return with_hung(seen, live, progress_deadline_seconds(runs.record), now)


def is_paused(resource: Object) -> bool:
    """Whether somebody stopped all writes for this object."""
    annotations = resource["metadata"].get("annotations") or {}
    return bool(annotations.get(PAUSED) == "true")


def _with_paused(before: Mapping[str, Any], generation: int, now: datetime) -> list[Any]:
    others = [each for each in before.get("conditions") or () if each.get("type") != Type.PAUSED]
    paused = condition(Type.PAUSED, True, Reason.PAUSED_BY_ANNOTATION, PAUSED_MESSAGE)
    return [*others, *merged(before.get("conditions") or (), [paused], generation, now)]


def _told(
    before: Mapping[str, Any],
    outcome: Outcome,
    seen: Observation,
    pool: Pool | None,
    now: datetime,
) -> Mapping[str, Any]:
    """The story: as it was told where the plan is kept or over, else the one of this plan."""
    known: Mapping[str, Any] = before.get("plan") or {}
    if not isinstance(outcome, Plan):
        return {}
    is_over = seen.completed is not None or seen.gave_up is not None or _has_ended(before)
    if known and is_over:
        return _without_prices(known)
    if outcome.kept and _is_about(known, outcome) and not _is_retold(known, outcome):
        return _with_replicas(_without_prices(known), outcome, pool)
    if outcome.chosen is None and not outcome.candidates:
        return {}
    return steady(known, rounded(story(outcome, pool, CANDIDATE_LIMIT)), now)


def _without_prices(known: Mapping[str, Any]) -> Mapping[str, Any]:
    """What its pools cost others was of the moment in which it was placed: who waits changes, and
    the statuses of all that runs do not follow."""
    return {name: value for name, value in known.items() if name != "prices"}


def _with_replicas(known: Mapping[str, Any], plan: Plan, pool: Pool | None) -> Mapping[str, Any]:
    """A story whose replicas follow the load: their number, what they cost and use together, and
    whether there is room to update them one more at a time."""
    if plan.record is not None and "rollout" in known:
        known = {**known, "rollout": rollout(plan.record.may_surge)}
    before, after = number(known, "replicas"), plan.chosen.replicas if plan.chosen else None
    if plan.chosen is None or before is None or after is None or before == after:
        return known
    cost, told = number(known, "costPerHour"), {**known, "replicas": after}
    if "energyJoules" in known:
        told["energyJoules"] = rounded(joules_per_hour(plan.chosen, known))
    if cost is None:
        return told
    if before:
        told["costPerHour"] = significant(cost * after / before)
    elif pool:  # what nothing costs tells of no replica
        now = cost_per_hour(pool, plan.chosen)
        told |= {} if now is None else {"costPerHour": significant(now)}
    return told


def _is_about(known: Mapping[str, Any], plan: Plan) -> bool:
    return known.get("placed") is True and known.get("pool") == plan.pool


def _is_retold(known: Mapping[str, Any], plan: Plan) -> bool:
    """Whether this has the prediction that was lost."""
    is_whole = plan.chosen is not None and plan.chosen.prediction is not None
    return is_whole and not known.get("predicted")


def _has_ended(before: Mapping[str, Any]) -> bool:
    return is_true(before, *FINISHED)


def _start(
    resource: Object,
    outcome: Outcome,
    seen: Observation,
    children: Iterable[Object],
    now: datetime,
) -> dict[str, Any]:
    """Attempts to start that were given up, and that the present one was not."""
    attempt = outcome.given_up if isinstance(outcome, Plan) else None
    bearer = bearers(children).get(outcome.uid)
    claim = outcome.claim if isinstance(outcome, Plan) else None
    runs_on = claim.pool if claim and seen.desired and seen.are_all_ready else None
    since = startable_since(bearer) if bearer else None
    start = remembered(resource, attempt, runs_on, since, now)
    return {"start": start} if start else {}


def _observed(before: Mapping[str, Any], view: View) -> dict[str, Any]:
    seen = view.seen
    used = {"accrued": shown} if (shown := meter_told(view.money.meter)) else {}
    if view.is_job:
        is_history = not seen.exists and view.end is not None
        known = mapping(before, "observed") if is_history else _of_job(before, view)
        return {"observed": {**known, **used}} if known or used else {}
    return {
        "observed": {**_of_pods(seen), **_of_service(before, view), **used},
        **_scaling(before, view),
        "replicas": seen.replicas if seen.groups is None else seen.groups,
        "readyReplicas": seen.ready if seen.ready_groups is None else seen.ready_groups,
        "selector": selector_text(view.outcome.key, leaders_only=seen.groups is not None),
    }


def _scaling(before: Mapping[str, Any], view: View) -> dict[str, Any]:
    """As it was measured; as it was told while nobody has looked again; none of what has no
    place and does not run."""
    if not _has_place(view.outcome):
        return {}
    told = view.measured.scaling if view.measured else mapping(before, "scaling")
    return {"scaling": dict(told)} if told else {}


def _has_place(outcome: Outcome) -> bool:
    return isinstance(outcome, Plan) and outcome.has_place


def _of_service(before: Mapping[str, Any], view: View) -> dict[str, Any]:
    """As it was told of this pool while nothing newer is; none of what has no place and does not
    run."""
    if not _has_place(view.outcome):
        return {}
    is_here = mapping(before, "plan").get("pool") == view.told.get("pool")
    told = kept(mapping(before, "observed")) if is_here else {}
    return {**told, **view.measured.observed} if view.measured else told


def _of_job(before: Mapping[str, Any], view: View) -> dict[str, Any]:
    """What it told stands until it tells more."""
    seen, finish = view.seen, view.money.expected_finish
    told = view.measured.observed if view.measured else kept(mapping(before, "observed"))
    times = {
        "startTime": seen.start_time,
        "completionTime": seen.completion_time,
        "expectedFinishTime": None if view.end or not finish else timestamp(finish),
    }
    return {**_of_pods(seen), **{name: time for name, time in times.items() if time}, **told}


def _of_pods(seen: Observation) -> dict[str, Any]:
    if not seen.exists and not seen.problems:
        return {}
    counts = {"desired": seen.desired, "ready": seen.ready, "existing": seen.replicas}
    if seen.succeeded or seen.failed:
        counts |= {"succeeded": seen.succeeded, "failed": seen.failed}
    problems = [
        {"reason": each.reason.value, "message": each.message, "pods": each.pods}
        for each in seen.problems
    ]
    return {"pods": counts, **({"problems": problems} if problems else {})}
