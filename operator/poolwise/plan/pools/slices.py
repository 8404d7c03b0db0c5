"""TPU slices of several hosts, which run as one: their runtime starts once all hosts have joined.

GKE names the shape of a slice on each of its nodes, and makes a node pool of each slice.
Source: https://cloud.google.com/kubernetes-engine/docs/concepts/tpus, "Multi-host TPU slice node
pools".
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from poolwise.plan.nodes import labels
from poolwise.plan.nodes.topology_labels import SLICE_KEY
from poolwise.plan.pool import Node
from poolwise.plan.pools.members import Draft


def slice_sizes(draft: Draft) -> list[int]:
    """Chips of the slices that all nodes are of, or would be; empty: they are of none."""
    every = [member.node.labels for member in draft.members] or [draft.spec.node_selector]
    shapes = {each.get(labels.TPU_TOPOLOGY_KEY, "") for each in every}
    sides = [[int(side) for side in shape.split("x") if side.isdecimal()] for shape in shapes]
    return [math.prod(each) for each in sides] if all(sides) else []


def hosts_per_slice(draft: Draft, per_node: int) -> int:
    """Nodes that run together or not at all; of slices of several sizes those of the largest."""
    return max(1, math.ceil(max(slice_sizes(draft), default=0) / max(per_node, 1)))


def with_whole_slices(nodes: tuple[Node, ...], hosts: int) -> tuple[Node, ...]:
    """Nodes of slices that lack a host take no work either, until it is there."""
    if hosts == 1:
        return nodes
    there = Counter(_slice(node) for node in nodes if node.unusable_reason is None)
    return tuple(_while_missing(-there[_slice(node)] % hosts, node, hosts) for node in nodes)


def _slice(node: Node) -> str:
    return node.labels.get(SLICE_KEY, "")


def _while_missing(missing: int, node: Node, hosts: int) -> Node:
    if not missing or node.unusable_reason is not None:
        return node
    reason = f"is of a slice of {hosts} hosts, which run as one, and {missing} cannot be used"
    return replace(node, unusable_reason=reason)
