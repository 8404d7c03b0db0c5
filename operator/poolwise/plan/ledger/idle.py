"""Nodes that are paid for and hold nothing: which, since when, and what that costs.

Poolwise neither adds nor removes nodes. It tells who does (a person, or an autoscaler) which ones
nobody holds accelerators of; nothing of ours keeps such a node: pods of a run end with it. Nodes
without accelerators are left out, since something small runs on each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from poolwise.plan.conditions import timestamp
from poolwise.plan.decision import Outcome, Plan
from poolwise.plan.ledger.capacity import Ledger
from poolwise.plan.pool import Node, Pool
from poolwise.plan.wording import significant

NODES_TOLD = 64
"""In a status; the count tells of all."""


def idle_nodes(
    pools: Iterable[Pool], ledger: Ledger, outcomes: Iterable[Outcome]
) -> dict[str, tuple[str, ...]]:
    """Names by pool of usable nodes all of whose accelerators are free.

    :param ledger: before the pass placed anything.
    :param outcomes: of the pass: what it has placed holds its nodes.
    """
    whole = (outcome for outcome in outcomes if isinstance(outcome, Plan))
    plans = (plan for outcome in whole for plan in (outcome, *outcome.parts))
    held = {
        node
        for plan in plans
        if plan.claim is not None
        for node, count in plan.claim.accelerators_by_node.items()
        if count
    }
    return {
        pool.name: tuple(
            node.name
            for node in pool.usable_nodes
            if node.name not in held and _is_empty(node, pool, ledger)
        )
        for pool in pools
        if not pool.is_cpu
    }


def told(
    names: Iterable[str], pool: Pool, status: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    """The part of a pool's status; ``since`` of the status as it stands is kept.

    A node that the status does not know is idle since now, as far as anybody can tell.
    """
    known = _since(status.get("idleNodes"))
    moment = timestamp(now)
    nodes = sorted((known.get(name, moment), name) for name in names)
    price = pool.price.per_node_hour if pool.price else None
    return {
        "idleNodeCount": len(nodes),
        "idleCostPerHour": None if price is None else significant(price * len(nodes)),
        "idleNodes": [{"name": name, "since": since} for since, name in nodes[:NODES_TOLD]],
    }


def _is_empty(node: Node, pool: Pool, ledger: Ledger) -> bool:
    room = ledger.rooms.get(node.name)
    if room is None or node.is_to_come or not node.accelerators:
        return False
    return room.accelerators.get(pool.resource or "", 0) >= node.accelerators


def _since(nodes: Any) -> dict[str, str]:
    """By node, from a status that anybody may have written."""
    items = nodes if isinstance(nodes, list) else []
    return {
        str(each["name"]): each["since"]
        for each in items
        if isinstance(each, Mapping) and "name" in each and isinstance(each.get("since"), str)
    }
