"""All decisions as ``poolwise plan`` tells them (api.md): workloads, then pools.

Figures are as they were worked out; ``-o json`` rounds them as it writes.
"""

from __future__ import annotations

from typing import Any

from poolwise.plan.conditions import WORDS
from poolwise.plan.decision import Key, Outcome, Plan
from poolwise.plan.joint.outcome import ShadowPrice
from poolwise.plan.observed import Decisions
from poolwise.plan.pool import Condition, Pool
from poolwise.plan.rounding import present
from poolwise.plan.status.further import spread, total
from poolwise.plan.status.story import candidate_story, story, summary
from poolwise.plan.wording import sentence

Document = dict[str, Any]


def report(decisions: Decisions) -> Document:
    """The contract of ``-o json``; what has no meaning is absent."""
    pools = decisions.pools_by_name
    plans = [each for each in decisions.outcomes.values() if isinstance(each, Plan)]
    prices = {price.pool: price for plan in plans for price in plan.prices}
    return {
        "workloads": [
            workload_document(outcome, pools.get(_pool_name(outcome)))
            for outcome in decisions.outcomes.values()
        ],
        "pools": [
            {
                **pool_document(pool, decisions.free_accelerators.get(name)),
                **_left_idle(decisions.idle_nodes.get(name)),
                **_scarcity(prices.get(name)),
            }
            for name, pool in pools.items()
        ],
    }


def workload_document(outcome: Outcome, pool: Pool | None) -> Document:
    """One workload: what was decided and every candidate, or why it cannot be planned."""
    if isinstance(outcome, Plan):
        return {**_identity(outcome.key), **_with_further_pools(story(outcome, pool), outcome)}
    return {
        **_identity(outcome.key),
        "placed": False,
        "reason": sentence(outcome.reason),
        "reasonCode": outcome.reason_code,
        "candidates": [],
    }


def pool_document(pool: Pool, free_accelerators: int | None) -> Document:
    """One pool: its nodes, what is free of it, its role and its price."""
    document = {
        "name": pool.name,
        "accelerator": pool.accelerator,
        "cpu": pool.machine.device.name if pool.is_cpu and pool.machine else None,
        "nodes": len(pool.usable_nodes),
        "unusableNodes": len(pool.nodes) - len(pool.usable_nodes),
        "awaitedNodes": pool.awaited_nodes if pool.max_nodes else None,
        "acceleratorsPerNode": None if pool.is_cpu else pool.accelerators_per_node,
        "free": None if pool.is_cpu else free_accelerators,
        "role": pool.role,
        "roleReason": pool.role_reason or None,
        "ridgePoints": dict(pool.ridge_points) or None,
        "pricePerNodeHour": pool.price.per_node_hour if pool.price else None,
        "currency": pool.price.currency if pool.price else None,
        "priceSource": pool.price.source if pool.price else None,
        "capacityType": pool.capacity_type,
        "discovered": pool.is_discovered,
        "conditions": [_condition(condition) for condition in pool.conditions],
    }
    return present(document)


def _left_idle(nodes: tuple[str, ...] | None) -> Document:
    """Nodes that hold nothing once everything is placed."""
    return {} if nodes is None else {"idleNodeCount": len(nodes)}


def _scarcity(price: ShadowPrice | None) -> Document:
    """What an accelerator-hour costs all who wait, where any of them would lose by it."""
    if price is None:
        return {}
    found = {"shadowPricePerAcceleratorHour": price.per_hour or None, "scarcity": price.reason}
    return {name: value for name, value in found.items() if value}


def _with_further_pools(told: Document, plan: Plan) -> Document:
    """With what a service has where its own pool had no room, and what all of it takes."""
    found = [part.chosen for part in plan.parts or plan.parts_asked if part.chosen]
    if not found or plan.chosen is None:
        return told
    shown = ("pool", "accelerator", "count", "replicas", "shape", "summary", "costPerHour")
    stories = [
        {name: part[name] for name in shown if name in part}
        for each in found
        for part in [{**candidate_story(each), "summary": summary(each)}]
    ]
    everywhere = (plan.chosen, *found)
    sums = {
        "costPerHour": total([each.cost_per_hour for each in everywhere]),
        "energyJoules": total([each.energy_joules for each in everywhere]),
    }
    return spread(told, stories, sums)


def _pool_name(outcome: Outcome) -> str:
    return outcome.chosen.pool if isinstance(outcome, Plan) and outcome.chosen else ""


def _identity(key: Key) -> Document:
    return {"kind": key.kind.value, "namespace": key.namespace, "name": key.name}


def _condition(condition: Condition) -> Document:
    return {
        "type": condition.type,
        "status": WORDS[condition.status],
        "reason": condition.reason,
        "message": condition.message,
    }
