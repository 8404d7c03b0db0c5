"""Names in a spec that nothing in the cluster has, and the nearest thing that would work."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

from poolwise.plan.candidates.assessment import candidates
from poolwise.plan.candidates.exclusions import products
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.decision import Candidate
from poolwise.plan.pool import Pool
from poolwise.plan.ranking import rank
from poolwise.plan.requests.request import Request


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


def _offer(candidate: Candidate) -> str:
    count = f"{candidate.count} x " if candidate.count else ""
    replicas = f"{candidate.replicas} x " if candidate.replicas and candidate.count else ""
    when = "" if candidate.feasible else ", once they are free"
    return f"{candidate.pool} would run it on {replicas}{count}{candidate.accelerator}{when}"
