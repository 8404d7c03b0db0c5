"""One workload that breaks the planner must not stop the others.

The planner is meant to answer for every object that the API server can hold. Where it does not,
that is an error of ours: the workload at fault is found, left out, and told so in its status.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import structlog

from poolwise.handlers.refusals import internal_error
from poolwise.plan.children.metadata import key_of
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Key, Rejection
from poolwise.plan.observed import Decisions, Object, Observed

_log = structlog.get_logger(__name__)

Decide = Callable[[Observed], Decisions]


def decide_or_isolate(decide: Decide, observed: Observed) -> Decisions:
    """The planner's answer, without the workloads that it fails on.

    :raises Exception: what the planner raised, when no workload alone is at fault.
    """
    try:
        return decide(observed)
    except Exception:
        faults = _faults(decide, observed)
        if not faults:
            raise
        decisions = decide(without(observed, {rejection.key for rejection in faults}))
        outcomes = {rejection.key: rejection for rejection in faults}
        return replace(decisions, outcomes={**decisions.outcomes, **outcomes})


def without(observed: Observed, keys: Collection[Key]) -> Observed:
    """The same view, but without these workloads."""

    def others(workloads: Sequence[Object]) -> tuple[Object, ...]:
        return tuple(each for each in workloads if key_of(each) not in keys)

    return replace(
        observed,
        training_jobs=others(observed.training_jobs),
        inference_services=others(observed.inference_services),
    )


def _faults(decide: Decide, observed: Observed) -> list[Rejection]:
    """Workloads that the planner fails on even when they are alone."""
    nobody = replace(observed, training_jobs=(), inference_services=())
    alone = [
        *((job, replace(nobody, training_jobs=(job,))) for job in observed.training_jobs),
        *(
            (service, replace(nobody, inference_services=(service,)))
            for service in observed.inference_services
        ),
    ]
    tried = (_fault(decide, workload, view) for workload, view in alone)
    return [rejection for rejection in tried if rejection is not None]


def _fault(decide: Decide, workload: Object, alone: Observed) -> Rejection | None:
    try:
        decide(alone)
    except Exception as error:
        key, metadata = key_of(workload), workload["metadata"]
        _log.exception("the planner failed on one workload", workload=str(key))
        generation = metadata.get("generation", 0)
        told = Reason.INTERNAL_ERROR, internal_error(error)
        return Rejection(key, metadata["uid"], generation, *told)
    return None
