"""One workload that breaks the planner must not stop the others.

The planner is meant to answer for every object that the API server can hold. Where it does not,
that is an error of ours: the workload at fault is found, left out, and told so in its status.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

import structlog

from poolwise.handlers.refusals import internal_error
from poolwise.plan.children.metadata import key_of
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Key, Outcome, Rejection
from poolwise.plan.observed import Decisions, Object, Observed

_log = structlog.get_logger(__name__)

Decide = Callable[[Observed], Decisions]

MOST = 10
"""Workloads that are looked for in one pass because the planner fails on them beside others: each
takes as many attempts as its number has binary digits."""


def decide_or_isolate(
    decide: Decide, observed: Observed, before: Mapping[Key, Outcome]
) -> Decisions:
    """The planner's answer, without the workloads that it fails on: alone, or beside older ones.

    :param before: what the planner made of the pass before. Who was left out then is left out
        before others are looked for, as long as it fails with all.
    :raises Exception: what the planner raised, when it fails without any workload too, or goes on
        failing without :data:`MOST` of those that it fails on beside others.
    """
    left_out: dict[Key, Rejection] = {}
    one_by_one = [partial(_last_straw, decide)] * MOST
    searches = iter((partial(_known, before), partial(_faults, decide), *one_by_one))
    while True:
        rest = without(observed, left_out)
        try:
            decisions = decide(rest)
        except Exception as error:
            found = next(filter(None, (search(rest, error) for search in searches)), None)
            if found is None:
                raise
            left_out |= {each.key: each for each in found}
        else:
            return replace(decisions, outcomes={**decisions.outcomes, **left_out})


def without(observed: Observed, keys: Collection[Key]) -> Observed:
    """The same view, but without these workloads."""

    def others(workloads: Sequence[Object]) -> tuple[Object, ...]:
        return tuple(each for each in workloads if key_of(each) not in keys)

    return replace(
        observed,
        training_jobs=others(observed.training_jobs),
        inference_services=others(observed.inference_services),
    )


def _known(before: Mapping[Key, Outcome], observed: Observed, error: Exception) -> list[Rejection]:
    """Those that the pass before left out, and that nobody has changed since."""
    there = {
        (key_of(each), each["metadata"]["uid"], each["metadata"].get("generation", 0))
        for each in (*observed.training_jobs, *observed.inference_services)
    }
    return [
        each
        for each in before.values()
        if isinstance(each, Rejection)
        and each.reason_code == Reason.INTERNAL_ERROR
        and (each.key, each.uid, each.generation) in there
    ]


def _faults(decide: Decide, observed: Observed, error: Exception) -> list[Rejection]:
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
        return _told(workload, error)
    return None


def _last_straw(decide: Decide, observed: Observed, error: Exception) -> list[Rejection]:
    """The workload with which the planner begins to fail, as one comes after the other by age;
    none where it fails without any."""
    ages = sorted((*observed.training_jobs, *observed.inference_services), key=_age)

    def fails_with(oldest: int) -> bool:
        try:
            decide(without(observed, {key_of(each) for each in ages[oldest:]}))
        except Exception:
            return True
        return False

    if not ages or fails_with(0):
        return []
    bearable, too_many = 0, len(ages)
    while too_many - bearable > 1:
        middle = (bearable + too_many) // 2
        bearable, too_many = (bearable, middle) if fails_with(middle) else (middle, too_many)
    return [_told(ages[bearable], error)]


def _age(workload: Object) -> tuple[str, str]:
    return str(workload["metadata"].get("creationTimestamp")), str(key_of(workload))


def _told(workload: Object, error: Exception) -> Rejection:
    key, metadata = key_of(workload), workload["metadata"]
    _log.error("the planner failed on one workload", workload=str(key), exc_info=error)
    told = Reason.INTERNAL_ERROR, internal_error(error)
    return Rejection(key, metadata["uid"], metadata.get("generation", 0), *told)
