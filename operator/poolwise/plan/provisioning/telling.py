"""What a pass says of nodes to come and of starts that failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.conditions import Reason, Type
from poolwise.plan.decision import Claim, Holding, Outcome, Plan
from poolwise.plan.ledger.growth import (
    room_to_grow,
    startup_words,
    why_not_provisioned,
)
from poolwise.plan.observed import Decisions
from poolwise.plan.pool import Condition, Pool
from poolwise.plan.provisioning.landing import awaited
from poolwise.plan.provisioning.starts import FailedStart, FailedStarts, moment_words
from poolwise.plan.selection.placement import Placement
from poolwise.plan.wording import are, plural, sentence
from poolwise.settings import Settings

ROOM_TO_GROW, AT_MAX_NODES = "RoomToGrow", "AtMaxNodes"
NOT_PROVISIONED, NODES_DID_NOT_COME = "NotProvisioned", "NodesDidNotCome"
"""Reasons of a pool's condition ``CanGrow``."""
NODES_ON_DEMAND = "NodesOnDemand"
"""Reason of ``Ready`` of a pool without nodes that may get some."""


def told(
    found: Decisions, known: Iterable[Pool], start: FailedStarts, claims: Mapping[Holding, Claim],
    situation: Situation,
) -> Decisions:  # fmt: skip
    """The decisions of a pass, with the placements that were given up, and pools as they are.

    :param known: pools with the nodes that they have.
    :param claims: of what ran before the pass, where it is held.
    :param situation: before the pass placed anything.
    """
    given_up = {
        (key := each.entry.identity.key): _given_up(
            each, start, situation.without_claim(claims.get(key))
        )
        for each in start.overdue
    }
    outcomes = {key: _waiting(each) for key, each in found.outcomes.items()} | given_up
    held = [*claims.values(), *_new_claims(outcomes.values())]
    grown = {pool.name: pool for pool in start.pools}
    pools = (_pool(pool, grown[pool.name], held, situation.settings) for pool in known)
    return replace(
        found,
        pools=tuple(pools),
        outcomes=dict(sorted(outcomes.items(), key=lambda item: str(item[0]))),
        look_again_at=min(filter(None, (start.look_again_at, found.look_again_at)), default=None),
    )


def _given_up(overdue: FailedStart, start: FailedStarts, situation: Situation) -> Plan:
    """The end of a placement; where it would go next is only told, and decided once its pods are
    gone."""
    plan = Placement(overdue.entry.workload, start.pools, situation).plan()
    attempt = overdue.attempt
    until = None if attempt.has_lost_pool else attempt.until(situation.settings)
    reason = f"{attempt.words}; next: {_next(plan, until)}"
    return replace(
        plan,
        placed=False,
        claim=None,
        record=None,
        reason=sentence(reason),
        reason_code=Reason.POOL_GONE if attempt.has_lost_pool else Reason.START_TIMEOUT,
        given_up=attempt,
    )


def _next(plan: Plan, until: datetime | None) -> str:
    """Where it goes; what its own pool, which it may try again then, leaves to it."""
    if plan.chosen is not None and plan.placed:
        return plan.chosen.pool
    if plan.chosen is not None or until is None:
        return plan.reason
    return f"no other pool can run it, so it is tried there again from {moment_words(until)}"


def _waiting(outcome: Outcome) -> Outcome:
    """What can only go where it did not start waits for that: time cures it, and nobody else."""
    if not isinstance(outcome, Plan) or outcome.reason_code != Reason.NO_FEASIBLE_POOL:
        return outcome
    avoided = [each for each in outcome.candidates if each.reason_code == Verdict.START_TIMEOUT]
    if not avoided:
        return outcome
    named = "; ".join(f"{each.pool} {each.reason}" for each in avoided)
    reason = sentence(f"waits, since no other pool can run it: {named}")
    return replace(outcome, reason_code=Reason.START_TIMEOUT, reason=reason)


def _new_claims(outcomes: Iterable[Outcome]) -> Iterator[Claim]:
    for outcome in outcomes:
        if isinstance(outcome, Plan):
            for plan in (outcome, *outcome.parts):
                if plan.claim is not None and not plan.kept:
                    yield plan.claim


def _pool(pool: Pool, grown: Pool, held: Iterable[Claim], settings: Settings) -> Pool:
    if not pool.max_nodes:
        return pool
    waited_for = awaited(grown, held)
    growth = _can_grow(grown, waited_for, settings)
    others = [each for each in pool.conditions if each.type != Type.READY]
    ready = [each for each in pool.conditions if each.type == Type.READY]
    if growth.status and not pool.nodes:
        ready = [Condition(Type.READY.value, True, NODES_ON_DEMAND, growth.message)]
    return replace(
        pool,
        growth_problem=grown.growth_problem,
        awaited_nodes=waited_for,
        conditions=(*others, growth, *ready),
    )


def _can_grow(pool: Pool, waited_for: int, settings: Settings) -> Condition:
    there = sum(not node.is_to_come for node in pool.nodes)
    count = f"{there} of {plural(pool.max_nodes or 0, 'node')} {are(there)} there"
    if not room_to_grow(pool):
        return _growth(False, AT_MAX_NODES, count)
    if pool.growth_problem is not None:
        barred = why_not_provisioned(pool) is not None
        code = NOT_PROVISIONED if barred else NODES_DID_NOT_COME
        return _growth(False, code, f"{count}; {pool.growth_problem}")
    seconds = pool.startup_seconds(settings.node_startup_seconds)
    awaits = f"; placed work waits for {waited_for} more" if waited_for else ""
    return _growth(True, ROOM_TO_GROW, f"{count}{awaits}; new {startup_words(seconds)}")


def _growth(status: bool, reason: str, message: str) -> Condition:
    return Condition(Type.CAN_GROW.value, status, reason, sentence(message))
