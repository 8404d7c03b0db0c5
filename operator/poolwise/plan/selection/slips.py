"""What a spec asks for and the cluster cannot give, and the nearest thing that would work."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from poolwise.plan.candidates.assessment import candidates
from poolwise.plan.candidates.exclusions import products
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.decision import Candidate
from poolwise.plan.limits import pays
from poolwise.plan.pool import Pool
from poolwise.plan.requests.request import Request, TrainingRequest
from poolwise.plan.selection.ranking import rank
from poolwise.plan.wording import duration, plural


def unknown_pool(request: Request, pools: Sequence[Pool]) -> str:
    """That ``placement.pools`` names none that exists; empty where one does."""
    wanted, known = request.where.pools, {pool.name for pool in pools}
    if not wanted or wanted & known or not known:
        return ""
    listed = " or ".join(sorted(wanted))
    near = difflib.get_close_matches(sorted(wanted)[0], sorted(known), n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
    return f"placement.pools: there is no pool {listed}; {hint}"


def missing_product(request: Request, pools: Sequence[Pool], situation: Situation) -> str:
    """That no pool has a product that it asks for, and what would run it; empty where one has."""
    wanted = request.where.products
    if not wanted or not pools or any(wanted & products(pool) for pool in pools):
        return ""
    anything = replace(request, where=replace(request.where, products=frozenset()))
    found = candidates(anything, pools, situation)
    ranking = rank([each for each in found if each.feasible or each.waits], request.goal)
    told = f"accelerators.products: no pool has {' or '.join(sorted(wanted))}"
    return f"{told}; {_offer(ranking.winner)}" if ranking else told


def nearest_deadline(request: Request, found: Iterable[Candidate]) -> str:
    """The soonest deadline that could be kept, as a clause; empty where it is not the deadline that
    is in the way. Told as a time to go, or the sentence would change with every look."""
    if not isinstance(request, TrainingRequest) or request.deadline is None:
        return ""
    late = [
        (each.startup_seconds + (each.total_seconds or 0.0), each.pool, each)
        for each in found
        if each.reason_code == Verdict.DEADLINE_MISSED and _is_affordable(request, each)
    ]
    if not late:
        return ""
    seconds, pool, each = min(late, key=lambda one: one[:2])
    on = f"{each.count} x {each.accelerator} of {pool}"
    return f"; nearest that would work: a deadline {duration(seconds)} from its start, on {on}"


def unreachable_target(found: Iterable[Candidate]) -> str:
    """That no pool keeps the targets even for one request, with the floor of the one that comes
    nearest; empty where a pool would, or none gets so far that it counts."""
    every = list(found)
    missed = [each for each in every if each.reason_code == Verdict.TARGET_UNREACHABLE]
    others = (each for each in every if each.reason_code != Verdict.TARGET_UNREACHABLE)
    if not missed or any(each.prediction is not None for each in others):
        return ""
    nearest = min(missed, key=lambda each: (each.shortfall, each.pool))
    told = "no pool keeps the targets even for one request"
    return f"{told}; nearest is {nearest.pool}: {nearest.reason}"


def _is_affordable(request: TrainingRequest, candidate: Candidate) -> bool:
    cost = candidate.total_cost
    return request.max_cost is None or (cost is not None and pays(request.max_cost, cost))


def _offer(candidate: Candidate) -> str:
    count = f"{candidate.count} x " if candidate.count else ""
    several = candidate.replicas and candidate.count
    replicas = f"{plural(candidate.replicas or 0, 'replica')} of " if several else ""
    when = "" if candidate.feasible else ", once they are free"
    return f"{candidate.pool} would run it on {replicas}{count}{candidate.accelerator}{when}"
