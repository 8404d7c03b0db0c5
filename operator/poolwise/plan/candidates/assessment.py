"""Every pool as a candidate for a workload: at its best shape, or with what is against it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from poolwise.errors import InvalidInput
from poolwise.model.collectives import group, low_confidence_reason
from poolwise.model.work import ServingLayout
from poolwise.plan.candidates.exclusions import Exclusion, excluded
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.recall import Recall
from poolwise.plan.candidates.serving.candidate import serving_candidate
from poolwise.plan.candidates.serving.groups import gang_of_replicas
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.candidates.training.answers import gang_of
from poolwise.plan.candidates.training.candidate import training_candidate
from poolwise.plan.decision import Candidate
from poolwise.plan.ledger.capacity import Gang
from poolwise.plan.pool import Pool
from poolwise.plan.requests.request import Request, TrainingRequest
from poolwise.plan.wording import money


def candidates(
    request: Request, pools: Iterable[Pool], situation: Situation
) -> tuple[Candidate, ...]:
    """One candidate per pool, in the order of the pools."""
    recall = Recall.of(request, situation)
    found = ((recall.candidate(pool, _judged), pool) for pool in pools)
    return tuple(_told_anew(each, request, pool, situation) for each, pool in found)


def _judged(request: Request, pool: Pool, situation: Situation) -> Candidate:
    found = _remarked(_candidate(request, pool, situation), pool)
    return _beside_spent(found, request, situation.settings.currency)


def _told_anew(found: Candidate, request: Request, pool: Pool, situation: Situation) -> Candidate:
    """Who holds the room that is waited for, and until when, changes with no room."""
    if not found.waits:
        return found
    reason = situation.why_no_room(gang(request, found, pool), pool, found.wish)
    return replace(found, reason=reason)


def _beside_spent(found: Candidate, request: Request, currency: str) -> Candidate:
    """``maxCost`` as the spec has it, where a part of it is spent."""
    history = request.history if isinstance(request, TrainingRequest) else None
    if found.reason_code != Verdict.TOO_EXPENSIVE or history is None or not history.spent:
        return found
    told = f"{found.reason} after the {money(history.spent, currency)} already spent"
    return replace(found, reason=told)


def _remarked(candidate: Candidate, pool: Pool) -> Candidate:
    problem, low_confidence = pool.price_problem, doubt(candidate, pool)
    if problem is None and low_confidence is None:
        return candidate
    return replace(candidate, price_problem=problem, doubt=low_confidence)


def doubt(candidate: Candidate, pool: Pool) -> str | None:
    """Why a prediction deserves low confidence: the links that it leans on."""
    if candidate.layout is None or candidate.prediction is None or pool.machine is None:
        return None
    link = pool.machine.interconnect
    return low_confidence_reason(group(candidate.layout.count, 1, link), link)


def gang(request: Request, candidate: Candidate, pool: Pool) -> Gang:
    """The pods of a candidate that has a layout."""
    if isinstance(request, TrainingRequest):
        return gang_of(candidate.count, request, pool)
    assert isinstance(candidate.layout, ServingLayout), "services have serving layouts"
    return gang_of_replicas(candidate.replicas or 0, candidate.layout, request, pool)


def _candidate(request: Request, pool: Pool, situation: Situation) -> Candidate:
    try:
        if isinstance(request, TrainingRequest):
            return training_candidate(request, pool, situation)
        return serving_candidate(request, pool, situation)
    except InvalidInput as error:  # the model refuses a pair of format and device
        return excluded(pool, Exclusion(Verdict.FORMAT_UNSUPPORTED, str(error)))
