"""A pool as the AcceleratorPool object that stands for it, and its status."""

from __future__ import annotations

from datetime import datetime

from poolwise.api import GROUP, VERSION
from poolwise.plan import idle, names
from poolwise.plan.conditions import merged
from poolwise.plan.observed import Manifest, Object
from poolwise.plan.pool import Pool
from poolwise.plan.wording import significant


def pool_object(pool: Pool) -> Manifest:
    """The AcceleratorPool of a discovered pool, as it is applied."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "AcceleratorPool",
        "metadata": {
            "name": pool.name,
            "labels": {names.MANAGED_BY: names.FIELD_MANAGER, names.DISCOVERED: "true"},
        },
        "spec": {"nodeSelector": dict(sorted(pool.node_selector.items()))},
    }


def pool_status(
    live: Object,
    pool: Pool,
    free_accelerators: int | None,
    now: datetime,
    idle_nodes: tuple[str, ...] | None = None,
) -> Manifest:
    """What is known of the pool; numbers to four significant digits, as everywhere in status.

    ``idle_nodes``: names, of a pool with accelerators.
    """
    generation = live["metadata"].get("generation", 0)
    before = live.get("status") or {}
    previous = before.get("conditions") or []
    status = {
        "observedGeneration": generation,
        "nodes": len(pool.usable_nodes),
        "unusableNodes": len(pool.nodes) - len(pool.usable_nodes),
        "awaitedNodes": pool.awaited_nodes if pool.max_nodes else None,
        "accelerator": pool.accelerator,
        "acceleratorsPerNode": pool.accelerators_per_node,
        "capacity": sum(node.accelerators for node in pool.usable_nodes),
        "free": free_accelerators,
        **({} if idle_nodes is None else idle.told(idle_nodes, pool, before, now)),
        "ridgePoints": {name: significant(value) for name, value in pool.ridge_points.items()},
        "role": pool.role,
        "roleReason": pool.role_reason or None,
        "price": _price(pool),
        "discovered": dict(pool.discovered),
        "conditions": merged(previous, pool.conditions, generation, now),
    }
    return {field: value for field, value in status.items() if value not in (None, {})}


def _price(pool: Pool) -> Manifest | None:
    if pool.price is None:
        return None
    return {
        "perNodeHour": significant(pool.price.per_node_hour),
        "currency": pool.price.currency,
        "source": pool.price.source,
    }
