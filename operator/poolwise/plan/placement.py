"""The decision for one workload: which candidate, which nodes, and in which words.

The best candidate that can run now is taken; a workload waits only where none can. So a job may
run on its second choice while its first one is busy: waiting is worth it only when the wait is
known to be short, which nothing here can know yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from poolwise.plan.candidates.assessment import candidates, gang
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.situation import Situation, shared_domain
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Candidate, Claim, PlacementRecord, Plan
from poolwise.plan.pool import Pool
from poolwise.plan.ranking import Ranking, rank
from poolwise.plan.ranking_words import judged
from poolwise.plan.requests.request import Request, ServingRequest, Workload

REASONS_NAMED = 3
"""Pools that a plan without any candidate names; status lists all of them."""


@dataclass(frozen=True, slots=True)
class Placement:
    """One plan in the making."""

    workload: Workload
    pools: Sequence[Pool]
    situation: Situation
    current: PlacementRecord | None = None
    """Where the workload runs already, when its spec has changed."""

    def plan(self) -> Plan:
        """Placed, waiting, or impossible; with every candidate."""
        found = candidates(self.workload.request, self.pools, self.situation)
        ranking = rank([each for each in found if each.feasible], self.workload.request.goal)
        if ranking is not None:
            return self._placed(found, self._with_preference(ranking))
        waiting = rank([each for each in found if each.waits], self.workload.request.goal)
        if waiting is not None:
            return self._waiting(found, waiting)
        return self._plan(Reason.NO_FEASIBLE_POOL, _why_none(found), None, found)

    def _with_preference(self, ranking: Ranking) -> Ranking:
        """A running workload stays where it is if that still works: moving it restarts it."""
        if self.current is None:
            return ranking
        here = [each for each in ranking.ordered if each.pool == self.current.pool]
        return replace(ranking, winner=here[0], stays=True) if here else ranking

    def _placed(self, found: tuple[Candidate, ...], ranking: Ranking) -> Plan:
        currency = self.situation.settings.currency
        told = judged(found, ranking, self.workload.request.goal, currency)
        chosen = next(each for each in told if each.chosen)
        if self.workload.is_plan_only:
            return self._plan(Reason.PLAN_ONLY, f"would run on {_where(chosen)}", chosen, told)
        claim = self._claim(chosen)
        return replace(
            self._plan(Reason.PLACED, f"runs on {_where(chosen)}", chosen, told),
            placed=True,
            claim=claim,
            record=self.current,
            is_significant=ranking.is_significant,
            may_surge=self._may_surge(chosen, claim),
            domain=self._domain(chosen, claim),
        )

    def _waiting(self, found: tuple[Candidate, ...], ranking: Ranking) -> Plan:
        awaited = ranking.winner
        told = f"waits for {_awaited(awaited)} in {awaited.pool}: {awaited.reason}"
        if self.workload.is_plan_only:
            told = f"would wait: {told.removeprefix('waits for ')}"
        return self._plan(Verdict.INSUFFICIENT_CAPACITY, told, awaited, found)

    def _plan(
        self, code: str, reason: str, chosen: Candidate | None, found: tuple[Candidate, ...]
    ) -> Plan:
        identity, request = self.workload.identity, self.workload.request
        return Plan(
            key=identity.key,
            uid=identity.uid,
            generation=identity.generation,
            placed=False,
            reason=reason,
            reason_code=code,
            chosen=chosen,
            candidates=found,
            hub_id=_hub_id(request),
        )

    def _claim(self, chosen: Candidate) -> Claim:
        pool = self._pool(chosen)
        pods = gang(self.workload.request, chosen, pool)
        nodes = self.situation.nodes_for(pods, pool, chosen.wish)
        assert nodes is not None, "a feasible candidate has nodes"
        return pods.claim(self.workload.identity.key, pool.name, nodes)

    def _domain(self, chosen: Candidate, claim: Claim) -> dict[str, str]:
        return shared_domain(claim.accelerators_by_node, self._pool(chosen), chosen.wish)

    def _may_surge(self, chosen: Candidate, claim: Claim) -> bool:
        """Whether one replica more finds room, so that updates can start before they stop."""
        if chosen.replicas is None:
            return False
        pool = self._pool(chosen)
        one = replace(gang(self.workload.request, chosen, pool), pods=1)
        return self.situation.ledger.with_claim(claim).fit(pool, one) is not None

    def _pool(self, candidate: Candidate) -> Pool:
        return self.situation.ledger.pools[candidate.pool]


def _where(chosen: Candidate) -> str:
    return f"{chosen.pool}: {chosen.reason}"


def _awaited(candidate: Candidate) -> str:
    if candidate.replicas is None:
        return f"{candidate.count} free {candidate.accelerator}"
    if not candidate.count:
        return f"{candidate.replicas} x free CPU cores"
    return f"{candidate.replicas} x {candidate.count} free {candidate.accelerator}"


def _why_none(found: tuple[Candidate, ...]) -> str:
    """The nearest misses first; last the pools that the spec itself keeps out."""
    if not found:
        return "there is no pool: no node of the cluster is known"
    settled = (Verdict.NOT_SELECTED, Verdict.EXCLUDED, Verdict.CPU_POOL, Verdict.PRODUCT_EXCLUDED)
    telling = sorted(found, key=lambda each: (each.reason_code in settled, each.shortfall))
    named = "; ".join(f"{each.pool} {each.reason}" for each in telling[:REASONS_NAMED])
    more = len(found) - REASONS_NAMED
    return f"no pool can run it: {named}" + (f"; and {more} more" if more > 0 else "")


def _hub_id(request: Request) -> str | None:
    return request.hub_id if isinstance(request, ServingRequest) else None
