"""What daemons will take of nodes that are still to come: what they take of those that are there.

A node that is there has the pods of its DaemonSets, and what they ask for is not free. They come to
a new node before any work does, so a pod that asks for all else would never start there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from poolwise.plan.ledger.capacity_pods import (
    NOTHING,
    ONE_POD,
    ByNode,
    Usage,
    node_held_by,
    requests,
)
from poolwise.plan.memo import Memo
from poolwise.plan.observed import Object
from poolwise.plan.pool import Pool
from poolwise.plan.reading import mapping, objects


def with_daemons(
    foreign: ByNode, pools: Iterable[Pool], pods: Sequence[Object], memo: Memo
) -> ByNode:
    """What foreign pods hold by node, with what daemons will hold of nodes to come."""
    growing = [pool for pool in pools if any(node.is_to_come for node in pool.nodes)]
    if not growing:
        return foreign
    held: dict[str, Usage] = {}
    for found in memo.daemons.each(pods, _of_daemon):
        if found is not None:
            node, usage = found
            held[node] = held.get(node, NOTHING) + usage
    to_come = {
        node.name: usage
        for pool in growing
        if (usage := _least(pool, held)) is not NOTHING
        for node in pool.nodes
        if node.is_to_come
    }
    return {**foreign, **to_come}


def _least(pool: Pool, held: Mapping[str, Usage]) -> Usage:
    """Of the nodes that are there: some may have more that no new one gets."""
    there = [node.name for node in pool.usable_nodes if not node.is_to_come]
    usages = [held.get(name, NOTHING) for name in there]
    cores = min((each.cores for each in usages), default=0.0)
    memory_bytes = min((each.memory_bytes for each in usages), default=0.0)
    names = sorted(usages[0].others) if usages else ()
    others = {name: min(each.others.get(name, 0.0) for each in usages) for name in names}
    is_any = cores or memory_bytes or any(others.values())
    return Usage({}, cores, memory_bytes, others) if is_any else NOTHING


def _of_daemon(pod: Object) -> tuple[str, Usage] | None:
    """Its node, and what it holds; None for every other pod."""
    owners = objects(mapping(pod, "metadata"), "ownerReferences")
    is_daemon = any(each.get("controller") and each.get("kind") == "DaemonSet" for each in owners)
    node = node_held_by(pod) if is_daemon else None
    return None if node is None else (node, requests(pod) + ONE_POD)
