"""Pools without nodes: what they would give, told beside the reason that they cannot be used.

Poolwise creates no nodes, and a cluster autoscaler acts on pods that wait, which Poolwise does not
create before there is room. So such a pool is never waited for.
"""

from __future__ import annotations

from dataclasses import replace

from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.decision import Candidate
from poolwise.plan.pool import Node, Pool
from poolwise.plan.wording import duration, money, plural
from poolwise.settings import Settings

MOST_NODES = 4096
"""Judged at most, to bound the time: 32,768 accelerators in nodes of eight."""


def grown_from_zero(pool: Pool) -> Pool | None:
    """The pool with all the nodes that it may have; None where it has some, or nobody knows."""
    if pool.nodes or not pool.max_nodes or pool.machine is None or not _is_known(pool):
        return None
    host = pool.machine.host
    nodes = (
        Node(
            name=f"{pool.name}-{index}",
            labels=pool.node_selector,
            accelerators=pool.accelerators_per_node,
            cores=host.cores,
            memory_bytes=host.memory_bytes,
        )
        for index in range(min(pool.max_nodes, MOST_NODES))
    )
    return replace(pool, nodes=tuple(nodes))


def without_nodes(candidate: Candidate, grown: Pool, settings: Settings) -> Candidate:
    """A candidate that would be feasible if only the pool had nodes."""
    would = _would(candidate, settings.currency)
    nodes = plural(grown.max_nodes or 0, "node")
    return replace(
        candidate,
        feasible=False,
        reason=(
            "has no node now; this version does not scale pools from zero"
            f" (with its {nodes} at most: {would})"
        ),
        reason_code=Verdict.NO_USABLE_NODE,
        shortfall=1.0,
    )


def _is_known(pool: Pool) -> bool:
    host = pool.machine.host if pool.machine else None
    return host is not None and host.cores > 0 and host.memory_bytes > 0


def _would(candidate: Candidate, currency: str) -> str:
    """Time and money of a run, replicas and money per hour of a service."""
    if candidate.total_seconds is not None:
        told, cost, unit = duration(candidate.total_seconds), candidate.total_cost, ""
    else:
        told = plural(candidate.replicas or 0, "replica")
        cost, unit = candidate.cost_per_hour, " per hour"
    return told if cost is None else f"{told} for {money(cost, currency)}{unit}"
