"""Pools that are gone and whose nodes another pool has now.

A discovered pool goes when somebody declares an AcceleratorPool over its nodes, and a declared one
when it is deleted or renamed. What runs there keeps the old name until its spec is edited, since
pods bear it; what the pool that has their nodes is known for is true of theirs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from poolwise.plan.decision import Claim, Holding, PlacementRecord
from poolwise.plan.pool import Pool


def former_pools(
    pools: Iterable[Pool],
    records: Mapping[Holding, PlacementRecord],
    claims: Mapping[Holding, Claim],
) -> dict[str, Pool]:
    """By the name of each pool that is gone: the one pool that has all nodes of what runs there and
    the same accelerators, under the old name. None where these nodes are of several pools, or of
    none, so that nobody can tell where there is room."""
    there = tuple(pools)
    known = {pool.name for pool in there}
    nodes, kinds = defaultdict[str, set[str]](set), defaultdict[str, set[tuple[object, ...]]](set)
    for holding, record in records.items():
        if record.pool not in known:
            nodes[record.pool] |= claims[holding].nodes
            kinds[record.pool].add((record.accelerator, record.resource))
    return {
        gone: replace(heir, name=gone, taken_over_by=heir.name)
        for gone, held in nodes.items()
        if (heir := _heir(there, held, kinds[gone])) is not None
    }


def _heir(pools: Iterable[Pool], nodes: set[str], kinds: set[tuple[object, ...]]) -> Pool | None:
    """Who has all these nodes, where all that runs on them is of its kind."""
    for pool in pools:
        own = {node.name for node in pool.nodes}
        if nodes and nodes <= own and kinds == {(pool.accelerator, pool.resource)}:
            return pool if pool.machine is not None else None
    return None
