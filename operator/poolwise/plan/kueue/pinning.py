"""Which ResourceFlavor stands for a pool, and how a job is kept to it.

Kueue compares a pod's node selector with the labels of the flavors of one resource group, on those
keys alone that some flavor of the group has, and takes the first flavor with quota that agrees. A
selector on any other key is not looked at: quota would be taken from one flavor, and the pods would
wait for nodes of another. So a child names all labels of the flavor that covers its pool, and a
pool that no flavor stands for is no candidate.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from poolwise.plan.kueue.reading import ClusterQueue, Flavor, Group
from poolwise.plan.pool import Node, Pool
from poolwise.plan.pools.taints import tolerates

FLAVORS_NAMED = 3


@dataclass(frozen=True, slots=True)
class Pin:
    """How a pool is named to Kueue."""

    selector: Mapping[str, str]
    """Labels beside the pool's own selector."""
    most: float
    """Accelerators that the queue may ever use there; infinite where it may borrow without end."""
    spare: float
    """Those of them that nobody has reserved."""
    flavors: tuple[str, ...]
    """Those that Kueue may take the accelerators from."""


def pin(pool: Pool, queue: ClusterQueue, asks: Iterable[str]) -> Pin | str:
    """How pods that ask for these resources are kept to the pool, or why they cannot be.

    The first of ``asks`` is what the pool is chosen for; of the others those count that the queue
    covers (Kueue can be told to leave some out, and says itself when it was not).
    """
    first, *others = asks
    main = queue.group_of(first)
    if main is None:
        return f"ClusterQueue {queue.name} has no quota for {first}{_covered(queue)}"
    groups = [main]
    for group in map(queue.group_of, others):
        if group is not None and group not in groups:
            groups.append(group)
    covering = ([each for each in group.flavors if covers(each, pool)] for group in groups)
    for chosen in itertools.product(*covering):
        selector = {key: value for flavor in chosen for key, value in flavor.labels.items()}
        found = [_taken(group, pool, selector) for group in groups]
        if all(found) and _is_safe(pool, itertools.chain(*found)):
            return _pin(pool, selector, main, found[0], first)
    return _why(pool, queue, main)


def _pin(
    pool: Pool, selector: Mapping[str, str], group: Group, taken: Iterable[Flavor], resource: str
) -> Pin:
    names = tuple(flavor.name for flavor in taken)
    beside = {key: value for key, value in selector.items() if key not in pool.node_selector}
    most = {name: group.most.get((name, resource), math.inf) for name in names}
    spare = {name: limit - group.used.get((name, resource), 0) for name, limit in most.items()}
    return Pin(dict(sorted(beside.items())), max(most.values()), max(spare.values()), names)


def covers(flavor: Flavor, pool: Pool) -> bool:
    """Whether all nodes of the pool are the flavor's; a pool without nodes is what it selects."""
    every = [node.labels for node in _there(pool)] or [pool.node_selector]
    return all(labels.get(key) == value for labels in every for key, value in flavor.labels.items())


def _there(pool: Pool) -> list[Node]:
    """Nodes whose labels are known; usable ones, where there are any."""
    there = [node for node in pool.nodes if not node.is_to_come]
    return [node for node in there if node.unusable_reason is None] or there


def _taken(group: Group, pool: Pool, selector: Mapping[str, str]) -> tuple[Flavor, ...]:
    """The flavors that Kueue would consider for pods with that selector beside the pool's own."""
    seen = {
        key: value for key, value in {**pool.node_selector, **selector}.items() if key in group.keys
    }
    return tuple(
        flavor
        for flavor in group.flavors
        if all(flavor.labels.get(key) == value for key, value in seen.items())
        and not _untolerated(flavor, pool)
    )


def _is_safe(pool: Pool, taken: Iterable[Flavor]) -> bool:
    """Whether whichever flavor Kueue takes leads to this pool."""
    return all(covers(flavor, pool) for flavor in taken)


def _untolerated(flavor: Flavor, pool: Pool) -> Mapping[str, Any] | None:
    tolerated = (*pool.tolerations, *flavor.tolerations)
    against = (t for t in flavor.taints if not any(tolerates(each, t) for each in tolerated))
    return next(against, None)


def _why(pool: Pool, queue: ClusterQueue, group: Group) -> str:
    """Why no flavor stands for the pool: one clause for each of the first flavors."""
    if not group.flavors:
        return f"ClusterQueue {queue.name} names no ResourceFlavor that exists"
    told = "; ".join(_against(flavor, pool) for flavor in group.flavors[:FLAVORS_NAMED])
    more = len(group.flavors) - FLAVORS_NAMED
    return f"no flavor of ClusterQueue {queue.name} stands for it: {told}" + (
        f"; and {more} more" if more > 0 else ""
    )


def _against(flavor: Flavor, pool: Pool) -> str:
    taint = _untolerated(flavor, pool)
    if taint is not None:
        return f"{flavor.name} has taint {taint.get('key')}, which the pool does not tolerate"
    nodes = _there(pool)
    for key, value in flavor.labels.items():
        others = [node.labels.get(key) for node in nodes if node.labels.get(key) != value]
        if others or not nodes:
            return f"{flavor.name} wants {key}={value}, {_carried(others, len(nodes))}"
    return f"{flavor.name} has no label that tells the pool from others"


def _carried(others: list[str | None], nodes: int) -> str:
    if not others:
        return "which the pool does not select by"
    if len(others) < nodes:
        return f"which {len(others)} of its {nodes} nodes do not carry"
    values = sorted({value for value in others if value})
    told = f"have {' or '.join(values[:FLAVORS_NAMED])}" if values else "lack that label"
    return f"its nodes {told}"


def _covered(queue: ClusterQueue) -> str:
    known = sorted({resource for group in queue.groups for resource in group.resources})
    return f" (it has for {', '.join(known)})" if known else ""
