"""Which conditions a workload has, from what was decided and what is seen.

``Ready`` tells the whole in one word: its reason is what ``kubectl get`` shows as STATUS. With it,
``Reconciling`` and ``Stalled`` follow kstatus: something goes on, or waits for somebody to act.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from poolwise.plan.conditions import STALLING, WORDS, Reason, Type, condition
from poolwise.plan.decision import Kind, Outcome, Plan, Rejection
from poolwise.plan.gateway.zero import asks_for_zero
from poolwise.plan.kueue.status import is_waiting, queue_conditions
from poolwise.plan.kueue.status import placed as placed_later
from poolwise.plan.live.following import cut_short
from poolwise.plan.live.look import Mode, mode_of
from poolwise.plan.live.telling import MeasuredStatus
from poolwise.plan.observed import Object
from poolwise.plan.pool import Condition, Pool
from poolwise.plan.reading import condition_of, mapping, number
from poolwise.plan.selection.slips import unreachable_target
from poolwise.plan.status.budget import Money, within_budget
from poolwise.plan.status.figures import speed
from poolwise.plan.status.pods import Observation
from poolwise.plan.status.steady import is_same
from poolwise.plan.wording import plural

FINISHED = (Type.COMPLETE, Type.FAILED)


@dataclass(frozen=True, slots=True)
class View:
    """One workload: what is asked, decided, told and seen."""

    resource: Object
    outcome: Outcome
    told: Mapping[str, Any]
    """``status.plan`` as it will be."""
    seen: Observation
    pool: Pool | None
    """The chosen one, while there is one."""
    money: Money
    """What it has cost, and will."""
    measured: MeasuredStatus | None = None
    """What the newest look at a service's replicas told."""

    @property
    def is_job(self) -> bool:
        """TrainingJob, or InferenceService."""
        return self.outcome.key.kind is Kind.TRAINING_JOB

    @property
    def spec(self) -> Mapping[str, Any]:
        """As the user wrote it."""
        spec: Mapping[str, Any] = self.resource.get("spec") or {}
        return spec

    @property
    def is_suspended(self) -> bool:
        """Whether the user stopped the job."""
        return self.is_job and self.spec.get("suspend") is True

    @property
    def is_plan_only(self) -> bool:
        """Whether it is reported and never created."""
        return self.spec.get("mode") == "Plan"

    def previous(self, type_: Type) -> Mapping[str, Any]:
        """A condition of the status as it stands; empty if there is none."""
        return condition_of(mapping(self.resource, "status"), type_)

    @property
    def end(self) -> Condition | None:
        """``Complete`` or ``Failed``, once and for all: what ran it may be gone, since the plan was
        made even, which knows it ended."""
        if self.seen.completed is not None:
            message = self.seen.completed or "all ranks have ended well"
            return condition(Type.COMPLETE, True, Reason.COMPLETED, message)
        if self.seen.gave_up is not None:
            return condition(Type.FAILED, True, Reason.FAILED, self.seen.gave_up)
        for type_ in FINISHED if self.is_job else ():
            before = self.previous(type_)
            if before.get("status") == "True":
                return condition(type_, True, str(before["reason"]), str(before.get("message", "")))
        code = self.outcome.reason_code
        type_of = {Reason.COMPLETED: Type.COMPLETE, Reason.FAILED: Type.FAILED}
        is_told = self.is_job and code in type_of
        return (
            condition(type_of[Reason(code)], True, code, self.outcome.reason) if is_told else None
        )


def workload_conditions(view: View) -> list[Condition]:
    """All conditions of a workload."""
    if isinstance(view.outcome, Rejection):
        return _rejected(view.outcome)
    story = [
        condition(Type.ACCEPTED, True, Reason.VALID, "the spec can be planned"),
        *([] if view.is_suspended else [_planned(view, view.outcome)]),
        *_suspended(view),
        *within_budget(view.spec, view.money),
        *_scales_to_zero(view),
    ]
    if view.end is not None:
        return [*story, view.end, *_progress(view.end.type == Type.COMPLETE, view.end)]
    return [*story, *_under_way(view, view.outcome)]


def _rejected(rejection: Rejection) -> list[Condition]:
    reason, message = rejection.reason_code, rejection.reason
    return [
        condition(Type.ACCEPTED, False, reason, message),
        condition(Type.READY, False, reason, message),
        condition(Type.RECONCILING, False, reason, message),
        condition(Type.STALLED, True, reason, message),
    ]


def _planned(view: View, plan: Plan) -> Condition:
    if plan.chosen is None and not plan.kept and view.end is None:
        return condition(Type.PLANNED, False, plan.reason_code, _reason(view, plan))
    bound = view.told.get("bottleneck")
    phrases = [f"bound by {bound}" if bound else "", speed(view.told)]
    message = "; ".join(filter(None, phrases)) or plan.reason
    return condition(Type.PLANNED, True, Reason.PLAN_READY, message)


def _suspended(view: View) -> list[Condition]:
    if view.is_suspended:
        message = "spec.suspend is true: nothing runs, and nothing is held"
        return [condition(Type.SUSPENDED, True, Reason.SUSPENDED, message)]
    if view.previous(Type.SUSPENDED):
        return [condition(Type.SUSPENDED, False, Reason.RESUMED, "spec.suspend is false")]
    return []


def _scales_to_zero(view: View) -> list[Condition]:
    """As the gateway before it told at the newest look, or at the last that an earlier process
    took."""
    if view.is_job or not asks_for_zero(view.resource):
        return []
    type_ = Type.SCALES_TO_ZERO
    told = view.measured.conditions if view.measured else ()
    found = [_rested(view, each) for each in told if each.type == type_]
    if found:
        return found
    if before := view.previous(type_):
        return [_repeated(before, type_)]
    message = "nobody has looked for a gateway before it yet"
    return [condition(type_, None, Reason.NOT_MEASURED, message)]


def _under_way(view: View, plan: Plan) -> list[Condition]:
    if view.is_suspended:
        waiting = condition(Type.READY, False, Reason.SUSPENDED, "spec.suspend is true")
        return _progress(False, waiting, is_waiting=False)
    if view.is_plan_only:
        message = f"mode is Plan: nothing is created. {_reason(view, plan)}"
        return _progress(True, condition(Type.READY, True, Reason.PLAN_ONLY, message))
    placed, pods = _placed(view, plan), _pods_ready(view, plan)
    cause = _held_up(plan) or _first(placed, pods)
    queue = queue_conditions(view.spec, plan)
    if not view.is_job and _is_pool_gone(view, plan):
        told = _unjudged(view, plan)
    else:
        told = _measured(view, plan) if view.is_job else _with_cut(view, plan)
    return [placed, pods, *queue, *told, *_progress(cause.status is True, cause)]


def _placed(view: View, plan: Plan) -> Condition:
    if not plan.placed:
        return condition(Type.PLACED, False, plan.reason_code, _reason(view, plan))
    if is_waiting(plan):
        return placed_later(plan)
    reason = str(view.told.get("reason") or plan.reason)
    if _is_pool_gone(view, plan) and plan.claim is not None:
        runs_on = view.seen.span.is_active or view.seen.ready
        go_on = "; its pods run on" if runs_on else ""
        reason += f" (AcceleratorPool {plan.claim.pool} is gone{go_on})"
    if view.pool is not None and view.pool.taken_over_by:
        heir = view.pool.taken_over_by
        reason += f" (AcceleratorPool {view.pool.name} is gone; {heir} has its nodes)"
    return condition(Type.PLACED, True, Reason.PLACED, reason)


def _is_pool_gone(view: View, plan: Plan) -> bool:
    """Whether its pods run on in a pool that is not there any more, such as a discovered one whose
    nodes somebody has declared to be another."""
    return plan.placed and view.pool is None and plan.claim is not None


def _unjudged(view: View, plan: Plan) -> list[Condition]:
    """Of a service in such a pool: nobody looks at its replicas, and what was told is old."""
    pool = plan.claim.pool if plan.claim is not None else ""
    told = f"AcceleratorPool {pool} is gone: nobody can tell what a replica there bears"
    message = f"{told}, and their number stays; an edit of the spec places it anew"
    unmeasured = (
        condition(type_, None, Reason.NOT_MEASURED, told)
        for type_ in (Type.METRICS_AVAILABLE, Type.SLO_MET)
    )
    is_off = mode_of(view.resource) is Mode.OFF
    stands = [condition(Type.SCALING_ACTIVE, False, Reason.POOL_GONE, message)]
    return [*unmeasured, *([] if is_off else stands)]


def _reason(view: View, plan: Plan) -> str:
    """As it is told, which rests while figures move a little."""
    same = view.told.get("reasonCode") == plan.reason_code
    return str(view.told.get("reason") or plan.reason) if same else plan.reason


def _pods_ready(view: View, plan: Plan) -> Condition:
    if not plan.has_place or is_waiting(plan):
        return condition(Type.PODS_READY, False, Reason.NO_PODS, "nothing is placed")
    found = _no_room(view) or _pods(view.seen, _is_behind(view, plan))
    if plan.placed:
        return found
    return replace(found, message=f"{found.message}; what runs is of an earlier spec")


def _no_room(view: View) -> Condition | None:
    """Where the first replica is asked for, and there is no room for it."""
    if view.measured is None or view.seen.desired or not view.seen.exists:
        return None
    told = view.measured.conditions
    is_short = any((c.type, c.reason) == (Type.SCALING_ACTIVE, Reason.AT_CAPACITY) for c in told)
    if not is_short or not number(view.measured.scaling, "desiredReplicas"):
        return None
    message = "requests wait, and there is no free room for the first replica"
    return condition(Type.PODS_READY, False, Reason.AT_CAPACITY, message)


def _is_behind(view: View, plan: Plan) -> bool:
    """Whether a service is edited, and what runs it yet to be told, or to begin with the update.

    Its pods are all ready until then, and nobody who waits for an edit waits for these.
    """
    metadata, status = view.resource["metadata"], view.resource.get("status") or {}
    is_edited = status.get("observedGeneration") != metadata.get("generation")
    was_ready = view.previous(Type.READY).get("status") == "True"
    is_open = is_edited or not was_ready
    return not view.is_job and is_open and (plan.is_new or view.seen.lags)


def _pods(seen: Observation, is_behind: bool) -> Condition:
    count = f"{seen.ready} of {plural(seen.desired, 'pod')}"
    if seen.are_all_ready and seen.outdated:
        return _updating(seen)
    if seen.are_all_ready and is_behind:
        message = f"{count} ready; the update to this spec is about to begin"
        return condition(Type.PODS_READY, False, Reason.UPDATING, message)
    if seen.are_all_ready:
        reason = Reason.RUNNING if seen.desired else Reason.SCALED_TO_ZERO
        return condition(Type.PODS_READY, True, reason, f"{count} ready")
    if seen.problems:
        first, *others = seen.problems
        more = f" (and {plural(len(others), 'other problem')})" if others else ""
        return condition(Type.PODS_READY, False, first.reason, first.message + more)
    if not seen.exists:
        return condition(Type.PODS_READY, False, Reason.STARTING, "pods are about to be created")
    if not seen.replicas:
        message = "no pod exists yet; events of the child tell what refuses them, if this lasts"
        return condition(Type.PODS_READY, False, Reason.STARTING, message)
    reason = Reason.PARTLY_READY if seen.ready else Reason.STARTING
    return condition(Type.PODS_READY, False, reason, f"{count} ready")


def _updating(seen: Observation) -> Condition:
    """All serve, and not all of them are of the newest spec."""
    count = f"still of the spec before: {seen.outdated} of {plural(seen.replicas, 'pod')}"
    if seen.problems:
        first = seen.problems[0]
        return condition(Type.PODS_READY, False, first.reason, f"{first.message}; {count}")
    if seen.held_back:
        why, remedy = seen.held_back
        message = f"{why}: {count}; {remedy} lets the update go on"
        return condition(Type.PODS_READY, False, Reason.ROLLOUT_PAUSED, message)
    return condition(Type.PODS_READY, False, Reason.UPDATING, count)


_OF_JOBS = (Type.METRICS_AVAILABLE, Type.AS_PLANNED)
_OF_SERVICES = (*_OF_JOBS, Type.SLO_MET, Type.SCALING_ACTIVE)


def _measured(view: View, plan: Plan) -> list[Condition]:
    """What was seen of what runs; a target that no pool keeps is missed whatever was."""
    floor = _below_floor(plan)
    told = [each for each in _seen(view, plan) if floor is None or each.type != Type.SLO_MET]
    return told if floor is None else [*told, _rested(view, floor)]


def _below_floor(plan: Plan) -> Condition | None:
    if plan.placed or plan.reason_code != Reason.NO_FEASIBLE_POOL:
        return None
    told = unreachable_target(plan.candidates)
    return condition(Type.SLO_MET, False, Reason.SLO_UNREACHABLE, told) if told else None


def _seen(view: View, plan: Plan) -> list[Condition]:
    if view.measured is not None and (view.is_job or plan.has_place):
        seen = view.measured.conditions
        return [_rested(view, each) for each in seen if each.type != Type.SCALES_TO_ZERO]
    told = [_as_told(view, plan, type_) for type_ in (_OF_JOBS if view.is_job else _OF_SERVICES)]
    return [each for each in told if each is not None]


def _with_cut(view: View, plan: Plan) -> list[Condition]:
    """With why fewer replicas run than others asked for.

    A graver reason for which the number stands still goes first. Limits that an earlier look told
    of are left out: whether they hold is known from the plan alone.
    """
    told, cut = _measured(view, plan), cut_short(view.resource, plan, view.told)
    old = [each for each in told if each.type == Type.SCALING_ACTIVE]
    others = [each for each in told if each not in old]
    if cut is not None and view.measured is not None:
        old = [_followed_by(each, cut) for each in old]
    if cut is not None and all(each.status for each in old):
        return [*others, cut]
    is_stale = view.measured is None and mode_of(view.resource) is not Mode.DIRECT
    limits = (Reason.AT_MAXIMUM, Reason.AT_CAPACITY, Reason.AT_COST_LIMIT) if is_stale else ()
    return [*others, *(each for each in old if each.reason not in limits)]


def _followed_by(graver: Condition, cut: Condition) -> Condition:
    """Metrics keep nobody's replicas from running, as another autoscaler does."""
    if graver.reason != Reason.METRICS_BROKEN:
        return graver
    return replace(graver, message=f"{graver.message}; {cut.message}")


def _rested(view: View, each: Condition) -> Condition:
    """With the message that was told of the same, where only figures in it moved a little."""
    before = view.previous(Type(each.type))
    message = str(before.get("message", ""))
    is_so = (before.get("status"), before.get("reason")) == (WORDS[each.status], each.reason)
    return replace(each, message=message) if is_so and is_same(message, each.message) else each


def _as_told(view: View, plan: Plan, type_: Type) -> Condition | None:
    """What was measured before the operator started anew stands until it has looked again."""
    before = view.previous(type_)
    is_there = view.seen.desired if view.is_job else _is_looked_at(view) and plan.has_place
    if before.get("reason") is not None and is_there:
        return _repeated(before, type_)
    if type_ in (Type.SCALING_ACTIVE, Type.AS_PLANNED):
        return None
    whose = "rank 0" if view.is_job else "a replica"
    message = f"nobody has looked at {whose} yet: all figures are predictions"
    return condition(type_, None, Reason.NOT_MEASURED, message)


def _is_looked_at(service: View) -> bool:
    """Whether it will be: also with no replica, which others may have set."""
    return service.seen.exists or asks_for_zero(service.resource)


def _repeated(before: Mapping[str, Any], type_: Type) -> Condition:
    status = {"True": True, "False": False}.get(str(before.get("status")))
    return condition(type_, status, str(before["reason"]), str(before.get("message", "")))


def _first(placed: Condition, pods: Condition) -> Condition:
    """What keeps it from being ready: no place before no pods."""
    return pods if placed.status else placed


def _held_up(plan: Plan) -> Condition | None:
    """What keeps a workload that runs from being as planned: a child that cannot be written."""
    if plan.placed and plan.kept and plan.reason_code in STALLING:
        return condition(Type.READY, False, plan.reason_code, plan.reason)
    return None


def _progress(is_ready: bool, cause: Condition, is_waiting: bool = True) -> list[Condition]:
    """``Ready`` for that cause, and what kstatus reads beside it."""
    is_stalled = not is_ready and cause.reason in STALLING
    goes_on = is_waiting and not is_ready and not is_stalled
    busy = Reason.IN_PROGRESS if goes_on else Reason.CONVERGED
    return [
        condition(Type.READY, is_ready, cause.reason, cause.message),
        condition(Type.RECONCILING, goes_on, busy, cause.message if goes_on else ""),
        condition(
            Type.STALLED,
            is_stalled,
            cause.reason if is_stalled else Reason.CONVERGED,
            cause.message if is_stalled else "",
        ),
    ]
