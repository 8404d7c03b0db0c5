"""The decision for one workload: which candidate, which nodes, and in which words.

What the queue decided (:mod:`poolwise.plan.queueing.queue`) is carried out. What is placed alone,
since it holds a place already or only asks, takes the best candidate that can run now.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from poolwise.model.prediction import Interval
from poolwise.plan.candidates.assessment import candidates, gang
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.candidates.topology import shared_domain, unknown_level
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Candidate, Claim, PlacementRecord, Plan
from poolwise.plan.joint.outcome import Act, Decision, ShadowPrice
from poolwise.plan.joint.problem import Option
from poolwise.plan.ledger.capacity import Ledger
from poolwise.plan.pool import Pool
from poolwise.plan.requests.request import Request, ServingRequest, TrainingRequest, Workload
from poolwise.plan.selection.ranking import Ranking, rank
from poolwise.plan.selection.ranking_words import judged
from poolwise.plan.selection.slips import missing_product, nearest_deadline, unknown_pool

REASONS_NAMED = 3
"""Pools that a plan without any candidate names; status lists all of them."""

OTHERS_FIRST = "what is free goes to those ahead of it"


@dataclass(frozen=True, slots=True)
class Allotment:
    """What the queue decided for one workload."""

    decision: Decision
    found: tuple[Candidate, ...]
    """Its candidates before anybody in the queue was placed."""
    nodes: Mapping[str, int]
    """Pods by node, where it starts."""
    prices: tuple[ShadowPrice, ...] = ()
    """Of its candidates' pools, where they are scarce."""
    kept: tuple[Claim, ...] = ()
    """Room that is for others who start before it would end."""
    expected_start: datetime | None = None

    @property
    def starts(self) -> bool:
        """Whether it gets its place in this pass."""
        return self.decision.act is Act.START

    @property
    def seconds(self) -> Interval | None:
        """How long it runs as decided; None where nobody can tell, and of a service."""
        return self.decision.option.seconds if self.decision.option else None

    def beside_kept(self, free: Ledger) -> Ledger:
        """The ledger without what is kept for others."""
        for claim in self.kept:
            free = free.with_claim(claim)
        return free


@dataclass(frozen=True, slots=True)
class Placement:
    """One plan in the making."""

    workload: Workload
    pools: Sequence[Pool]
    situation: Situation
    current: PlacementRecord | None = None
    """Where the workload runs already, when its spec has changed."""
    allotment: Allotment | None = None
    """What the queue decided for it; None for what is placed alone."""

    def plan(self) -> Plan:
        """Placed, waiting, or impossible; with every candidate."""
        allotment = self.allotment
        if allotment is None:
            return self._alone(self._candidates())
        found = allotment.found if allotment.starts else self._candidates()
        return replace(self._directed(found, allotment), prices=allotment.prices)

    def _candidates(self) -> tuple[Candidate, ...]:
        return candidates(self.workload.request, self.pools, self.situation)

    def _directed(self, found: tuple[Candidate, ...], allotment: Allotment) -> Plan:
        """As the queue decided; a start that finds no nodes any more waits."""
        decision = allotment.decision
        if decision.act is Act.REFUSE or decision.option is None:
            return self._refused(found, decision)
        found, taken = self._at_count(found, decision.option)
        if not allotment.starts:
            return self._queued(found, taken, allotment)
        nodes = self._nodes(taken, allotment)
        if nodes is None:
            return self._queued(*self._at_count(self._candidates(), decision.option), allotment)
        return self._placed(found, self._ranking(found, taken, decision.because), nodes)

    def _refused(self, found: tuple[Candidate, ...], decision: Decision) -> Plan:
        """What no candidate tells is the share of its namespace."""
        if any(each.feasible or each.waits for each in found):
            return self._plan(Reason.BEYOND_SHARE, decision.reason, None, found)
        return self._plan(Reason.NO_FEASIBLE_POOL, self._why_none(found), None, found)

    def _at_count(
        self, found: tuple[Candidate, ...], option: Option
    ) -> tuple[tuple[Candidate, ...], Candidate]:
        """With the pool of the option at the option's count of accelerators, which comes second."""
        request = self.workload.request
        taken = next(each for each in found if each.pool == option.pool)
        if not isinstance(request, TrainingRequest) or taken.count == option.accelerators:
            return found, taken
        exactly = replace(request, least=option.accelerators, most=option.accelerators)
        (again,) = candidates(exactly, [self._pool(taken)], self.situation)
        return tuple(again if each is taken else each for each in found), again

    def _nodes(self, taken: Candidate, allotment: Allotment) -> dict[str, int] | None:
        """Where it starts: as the ledger fills nodes, beside what is kept for others; else where
        the queue has found room, which it has where several gangs share nodes just so."""
        if not taken.feasible:
            return None
        pool = self._pool(taken)
        pods = gang(self.workload.request, taken, pool)
        nodes = self.situation.with_ledger(allotment.beside_kept(self.situation.ledger)).nodes_for(
            pods, pool, taken.wish
        )
        if nodes is not None:
            return nodes
        has_room = self.situation.ledger.has_room(pool, pods, allotment.nodes)
        return dict(allotment.nodes) if has_room else None

    def _ranking(self, found: tuple[Candidate, ...], taken: Candidate, because: str) -> Ranking:
        ranking = rank([each for each in found if each.feasible], self.workload.request.goal)
        assert ranking is not None, "what is taken is feasible"
        return replace(ranking, winner=taken, because=because)

    def _queued(
        self, found: tuple[Candidate, ...], awaited: Candidate, allotment: Allotment
    ) -> Plan:
        """What it waits for, and why it does not take what is free."""
        told = _waits_for(awaited)
        if awaited.waits:
            told += f": {awaited.reason}"
        because = allotment.decision.because or ("" if awaited.waits else OTHERS_FIRST)
        told += ("; " if awaited.waits else ": ") + because if because else ""
        found = self._spurned(found, awaited, because or OTHERS_FIRST)
        plan = self._plan(Verdict.INSUFFICIENT_CAPACITY, told, awaited, found)
        return replace(plan, expected_start=allotment.expected_start)

    def _spurned(
        self, found: tuple[Candidate, ...], awaited: Candidate, because: str
    ) -> tuple[Candidate, ...]:
        """What is free and not taken, with what is against it beside what it waits for."""
        goal, currency = self.workload.request.goal, self.situation.settings.currency
        ranking = rank([each for each in found if each.feasible or each is awaited], goal)
        if ranking is None:
            return found
        told = judged(found, replace(ranking, winner=awaited, because=because), goal, currency)
        pairs = zip(found, told, strict=True)
        return tuple(before if before is awaited else after for before, after in pairs)

    def _alone(self, found: tuple[Candidate, ...]) -> Plan:
        """The best candidate that can run now; it waits only where none can."""
        ranking = rank([each for each in found if each.feasible], self.workload.request.goal)
        if ranking is not None:
            return self._placed(found, self._with_preference(ranking), None)
        waiting = rank([each for each in found if each.waits], self.workload.request.goal)
        if waiting is not None:
            return self._waiting(found, waiting)
        return self._plan(Reason.NO_FEASIBLE_POOL, self._why_none(found), None, found)

    def _with_preference(self, ranking: Ranking) -> Ranking:
        """A running workload stays where it is if that still works: moving it restarts it."""
        if self.current is None:
            return ranking
        here = [each for each in ranking.ordered if each.pool == self.current.pool]
        return replace(ranking, winner=here[0], stays=True) if here else ranking

    def _placed(
        self, found: tuple[Candidate, ...], ranking: Ranking, nodes: Mapping[str, int] | None
    ) -> Plan:
        currency = self.situation.settings.currency
        told = judged(found, ranking, self.workload.request.goal, currency)
        chosen = next(each for each in told if each.chosen)
        if self.workload.is_plan_only:
            return self._plan(Reason.PLAN_ONLY, f"would run on {_where(chosen)}", chosen, told)
        claim = self._claim(chosen, nodes)
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
        told = f"{_waits_for(awaited)}: {awaited.reason}"
        if self.workload.is_plan_only:
            told = f"would wait: {told.removeprefix('waits for ')}"
        return self._plan(Verdict.INSUFFICIENT_CAPACITY, told, awaited, found)

    def _why_none(self, found: tuple[Candidate, ...]) -> str:
        """A name that nothing in the cluster has is a slip of the spec, whatever pools lack."""
        request = self.workload.request
        return (
            unknown_level(request.where, self.pools)
            or unknown_pool(request, self.pools)
            or missing_product(request, self.pools, self.situation)
            or _why_none(found) + nearest_deadline(request, found)
        )

    def _plan(
        self, code: str, reason: str, chosen: Candidate | None, found: tuple[Candidate, ...]
    ) -> Plan:
        identity, request = self.workload.identity, self.workload.request
        history = request.history if isinstance(request, TrainingRequest) else None
        return Plan(
            key=identity.key,
            uid=identity.uid,
            generation=identity.generation,
            placed=False,
            reason=f"{reason}; {history.words()}" if history else reason,
            reason_code=code,
            chosen=chosen,
            candidates=found,
            steps_ahead=_steps_ahead(request),
            hub_id=_hub_id(request),
        )

    def _claim(self, chosen: Candidate, nodes: Mapping[str, int] | None) -> Claim:
        pool = self._pool(chosen)
        pods = gang(self.workload.request, chosen, pool)
        if nodes is None:
            nodes = self.situation.nodes_for(pods, pool, chosen.wish)
        assert nodes is not None, "a feasible candidate has nodes"
        return pods.claim(self.workload.identity.key, pool.name, nodes)

    def _domain(self, chosen: Candidate, claim: Claim) -> dict[str, str]:
        levels = chosen.wish.levels if chosen.wish.must_share else ()
        return shared_domain(claim.accelerators_by_node, self._pool(chosen), levels)

    def _may_surge(self, chosen: Candidate, claim: Claim) -> bool:
        """Whether one replica more finds room, so that updates can start before they stop."""
        if chosen.replicas is None:
            return False
        pool = self._pool(chosen)
        pods = gang(self.workload.request, chosen, pool)
        one = replace(pods, pods=pods.group)
        return self.situation.ledger.with_claim(claim).fit(pool, one) is not None

    def _pool(self, candidate: Candidate) -> Pool:
        return self.situation.ledger.pools[candidate.pool]


def _where(chosen: Candidate) -> str:
    return f"{chosen.pool}: {chosen.reason}"


def _waits_for(awaited: Candidate) -> str:
    return f"waits for {_awaited(awaited)} in {awaited.pool}"


def _awaited(candidate: Candidate) -> str:
    if candidate.replicas is None:
        return f"{candidate.count} free {candidate.accelerator}"
    if not candidate.count:
        return f"{candidate.replicas} x free CPU cores"
    return f"{candidate.replicas} x {candidate.count} free {candidate.accelerator}"


def _why_none(found: tuple[Candidate, ...]) -> str:
    """A deadline that has passed, which nothing else matters beside, and the nearest misses first;
    last the pools that the spec itself keeps out."""
    if not found:
        return "there is no pool: no node of the cluster is known"
    settled = (Verdict.NOT_SELECTED, Verdict.EXCLUDED, Verdict.CPU_POOL, Verdict.PRODUCT_EXCLUDED)

    def order(each: Candidate) -> tuple[bool, bool, float]:
        is_over = each.reason_code == Verdict.DEADLINE_MISSED and math.isinf(each.shortfall)
        return each.reason_code in settled, not is_over, each.shortfall

    return none_can_run(sorted(found, key=order))


def none_can_run(found: Sequence[Candidate]) -> str:
    """Why no pool can run a workload: the first reasons in this order, and how many more."""
    named = "; ".join(f"{each.pool}: {each.reason}" for each in found[:REASONS_NAMED])
    more = len(found) - REASONS_NAMED
    return f"no pool can run it: {named}" + (f"; and {more} more" if more > 0 else "")


def _steps_ahead(request: Request) -> float | None:
    if not isinstance(request, TrainingRequest) or request.history is None:
        return None
    return request.work.steps


def _hub_id(request: Request) -> str | None:
    return request.hub_id if isinstance(request, ServingRequest) else None
