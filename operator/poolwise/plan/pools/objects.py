"""A pool as the AcceleratorPool object that stands for it, and its status."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from poolwise.api import GROUP, VERSION
from poolwise.plan import names
from poolwise.plan.conditions import Reason, Type, condition, merged
from poolwise.plan.ledger import idle
from poolwise.plan.observed import Manifest, Object
from poolwise.plan.pool import Condition, Pool
from poolwise.plan.reading import mapping, texts
from poolwise.plan.wording import first_of, significant

NAMED_AT_MOST = 5
"""Fields that one message names."""


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
        "conditions": merged(previous, (*pool.conditions, *_unread(live, pool)), generation, now),
    }
    return {field: value for field, value in status.items() if value not in (None, {})}


def _unread(live: Object, pool: Pool) -> Iterator[Condition]:
    """That a person's words in the spec of a discovered pool count for nothing: it goes with its
    last node, so a price or a name that stood there would be lost with it."""
    if not pool.is_discovered or names.DISCOVERED not in texts(live, "metadata", "labels"):
        return
    given = [f"spec.{name}" for name in sorted(mapping(live, "spec")) if name != "nodeSelector"]
    if given:
        text = (
            f"{first_of(given, NAMED_AT_MOST)}: not read, since Poolwise discovered this pool; to"
            f" make it yours: kubectl label acceleratorpool {pool.name} {names.DISCOVERED}-"
        )
        yield condition(Type.SPEC_READ, False, Reason.DISCOVERED_POOL, text)


def _price(pool: Pool) -> Manifest | None:
    if pool.price is None:
        return None
    return {
        "perNodeHour": significant(pool.price.per_node_hour),
        "currency": pool.price.currency,
        "source": pool.price.source,
    }
