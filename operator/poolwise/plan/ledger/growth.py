"""Nodes that a pool may still get, as nodes of the ledger that are not there yet.

They have names that no real node can have and that sort behind all real ones. A claim holds them
by name until its pods are bound (:mod:`poolwise.plan.provisioning.landing`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from poolwise.plan.amounts import Told
from poolwise.plan.nodes.labels import HOSTNAME_KEY
from poolwise.plan.pool import Node, Pool
from poolwise.plan.wording import duration
from poolwise.settings import Settings

MARK = "~"
"""First character of their names: none of a DNS name, and behind all of those in order."""
MOST_NODES = 4096
"""To come at once, to bound the time of a pass: 32,768 accelerators in nodes of eight."""
LEAST_MINUTES, MOST_MINUTES = 1.5, 120.0
"""Of a start that is told in minutes; a shorter one in seconds, a longer one in hours."""
ALLOCATABLE_CORES, ALLOCATABLE_MEMORY = 0.95, 0.9
"""Of what a machine type has, what pods may take: the rest is kept for kubelet, system and daemons.
GKE keeps 7 % of 128 GB and 0.4 % of 32 cores, agents for logs, network and devices ask for more.
https://cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes"""
DISCOVERED_PREFIXES = (
    "nvidia.com/",
    "amd.com/",
    "gpu.intel.com/",
    "habana.ai/",
    "feature.node.kubernetes.io/",
)
"""Labels that programs on the node set once it runs. An autoscaler that has no node of the pool to
look at does not know that a new one would get them."""


def is_to_come(name: str) -> bool:
    """Whether a name stands for a node that is not there yet."""
    return name.startswith(MARK)


def grown(pool: Pool) -> Pool:
    """The pool with all nodes that it may still get beside those that it has."""
    if not room_to_grow(pool) or pool.growth_problem is not None:
        return pool
    problem = why_not_provisioned(pool)
    if problem is not None:
        return replace(pool, growth_problem=f"none would come: {problem}")
    return replace(pool, nodes=(*pool.nodes, *_nodes_to_come(pool)))


def room_to_grow(pool: Pool) -> int:
    """Nodes below ``maxNodes``. One that cannot take work now is there all the same."""
    present = sum(not node.is_to_come for node in pool.nodes)
    return max(0, (pool.max_nodes or 0) - present)


def why_not_provisioned(pool: Pool) -> str | None:
    """Why no autoscaler brings nodes that Poolwise could count on; None: one may."""
    if pool.unusable_reason is not None or pool.machine is None:
        return "its hardware is not known"
    if not _size(pool):
        return (
            "neither a node nor a machine type tells the cores and memory of its nodes; add the "
            "label node.kubernetes.io/instance-type to its nodeSelector"
        )
    if HOSTNAME_KEY in pool.node_selector:
        return f"its nodeSelector names a host ({HOSTNAME_KEY}), and a new node has another name"
    late = _set_too_late(pool)
    if late:
        return (
            f"its nodeSelector has {late}, which a program on the node sets once it runs: while "
            "the pool has no node, no autoscaler knows that a new one would get it; select by the "
            "label of the node group instead, such as cloud.google.com/gke-nodepool"
        )
    return None


def startup_seconds(nodes: Iterable[str], pool: Pool, settings: Settings) -> float:
    """Until all of these nodes have started; 0 where all of them are there."""
    if not any(map(is_to_come, nodes)):
        return 0.0
    return pool.startup_seconds(settings.node_startup_seconds)


def _nodes_to_come(pool: Pool) -> tuple[Node, ...]:
    """One for each node that the pool may still get; like the smallest that it has."""
    size = _size(pool)
    assert size is not None, "else none would come"
    cores, memory_bytes = size
    others = _others(pool)
    most_pods = min((node.most_pods for node in pool.nodes), default=math.inf)
    return tuple(
        Node(
            name=f"{MARK}{pool.name}-{index:04}",
            labels=pool.node_selector,
            accelerators=pool.accelerators_per_node,
            cores=cores,
            memory_bytes=memory_bytes,
            is_to_come=True,
            others=others,
            most_pods=most_pods,
        )
        for index in range(min(room_to_grow(pool), MOST_NODES))
    )


def startup_words(seconds: float) -> str:
    """``nodes start in about 4 min``: no more exact than clouds are."""
    minutes = seconds / 60
    in_minutes = LEAST_MINUTES <= minutes < MOST_MINUTES
    told = f"{round(minutes)} min" if in_minutes else duration(seconds)
    return f"nodes start in about {told}"


def _size(pool: Pool) -> tuple[float, float] | None:
    """Cores and bytes of a new node: of the smallest that is there, else of its machine type."""
    there = [node for node in pool.nodes if node.cores > 0 and node.memory_bytes > 0]
    if there:
        return min(n.cores for n in there), min(n.memory_bytes for n in there)
    host = pool.machine.host if pool.machine else None
    if host is None or host.cores <= 0 or host.memory_bytes <= 0:
        return None
    return host.cores * ALLOCATABLE_CORES, host.memory_bytes * ALLOCATABLE_MEMORY


def _others(pool: Pool) -> Told:
    """What else a new node has: of the nodes that are there the least that any has at all. None
    where none is there to tell: a machine type tells no network functions and no disks."""
    told = [node.others for node in pool.nodes if node.cores > 0 and node.others is not None]
    if not told:
        return None
    names = sorted(set().union(*told))
    return {name: min(each[name] for each in told if name in each) for name in names}


def _set_too_late(pool: Pool) -> str | None:
    if pool.nodes:
        return None
    return next((key for key in pool.node_selector if key.startswith(DISCOVERED_PREFIXES)), None)
