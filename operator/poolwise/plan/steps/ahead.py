"""What lies ahead of a run that was stopped and waits again: what its last checkpoint lacks.

The one place where steps that were done, and money that was spent, enter a plan: times, cost,
energy, deadline, ``maxCost``, reservations and moves all follow from the request that is made here.
A step is only taken as done where a checkpoint was seen that has it. Without one (none in the spec,
none told of, or of another model) the whole length is ahead, which is said.
"""

from __future__ import annotations

from dataclasses import replace

from poolwise.plan.learning.corrections import name_of
from poolwise.plan.observed import Object
from poolwise.plan.reading import mapping
from poolwise.plan.records.meter import Meter, read
from poolwise.plan.requests.request import History, TrainingRequest, Workload
from poolwise.plan.steps.told import MeasuredRun, measured

LEAST_AHEAD = 0.01
"""Of a run that is not over."""


def with_history(wanted: Workload, resource: Object, currency: str) -> Workload:
    """The workload with what is left of it; the same where nothing of it ever ran.

    :param currency: in which costs are compared; money of another one is not.
    """
    request = wanted.request
    if not isinstance(request, TrainingRequest):
        return wanted
    meter = read(mapping(resource, "status", "observed", "accrued"))
    run = measured(resource)
    if run is None and meter.until is None:
        return wanted
    return replace(wanted, request=_left(request, run, _spent(meter, currency)))


def kept_steps(run: MeasuredRun | None, keeps_checkpoints: bool) -> float:
    """Steps of a run that need not be done again."""
    if run is None or not keeps_checkpoints:
        return 0.0
    return run.progress.checkpoint_steps or 0.0


def left_of(steps: float, kept: float) -> float:
    """Of a run that is not over, however far it is."""
    return max(steps - kept, steps * LEAST_AHEAD)


def _left(request: TrainingRequest, run: MeasuredRun | None, spent: float) -> TrainingRequest:
    work = request.work
    steps = work.steps or 0.0
    kept = min(_still_kept(request, run), steps)
    history = History(
        whole_steps=steps,
        kept_steps=kept,
        spent=spent,
        lost_because="" if kept else _why_lost(request, run),
    )
    limit = request.max_cost
    return replace(
        request,
        work=replace(work, steps=left_of(steps, kept)),
        max_cost=None if limit is None else max(limit - spent, 0.0),
        history=history,
    )


def _still_kept(request: TrainingRequest, run: MeasuredRun | None) -> float:
    """Steps as the spec counts them now: while a run is suspended its batch or its length may be
    changed. Which of both nobody tells, so the fewer count."""
    kept = kept_steps(run, _keeps(request))
    if run is None or not kept or run.basis.model != name_of(request.work.model):
        return 0.0
    then, now = run.basis.steps, request.work.steps or 0.0
    return min(kept, kept * now / then) if then else kept


def _why_lost(request: TrainingRequest, run: MeasuredRun | None) -> str:
    if not _keeps(request):
        return "spec.checkpoint is not set"
    if run is None or run.checkpoint is None:
        return "no checkpoint of it was seen"
    if run.basis.model != name_of(request.work.model):
        return f"its checkpoint is of {run.basis.model}"
    return "nobody knows how many steps its checkpoint has"


def _keeps(request: TrainingRequest) -> bool:
    return bool(request.work.checkpoint_interval_seconds)


def _spent(meter: Meter, currency: str) -> float:
    return meter.cost if meter.currency == currency else 0.0
