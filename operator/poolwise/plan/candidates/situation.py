"""What a candidate is judged in: free capacity, the model's constants, and the moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from poolwise.model.efficiency import Calibration
from poolwise.plan.candidates.memo import Memo
from poolwise.plan.capacity import Gang, Ledger
from poolwise.plan.pool import Pool
from poolwise.plan.requests.request import Topology, Where
from poolwise.plan.wording import plural
from poolwise.settings import Settings

HOLDERS_NAMED = 3
"""Workloads that a waiting one names; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything beside the request and the pool."""

    ledger: Ledger
    calibration: Calibration
    memo: Memo
    settings: Settings
    now: datetime

    def with_ledger(self, ledger: Ledger) -> Situation:
        """The same moment with other capacity."""
        return replace(self, ledger=ledger)

    def nodes_for(self, gang: Gang, pool: Pool, where: Where) -> dict[str, int] | None:
        """Nodes for all pods, those of a training run as close together as it wants them."""
        if not gang.one_per_node or where.topology is Topology.UNCONSTRAINED:
            return self.ledger.fit(pool, gang)
        is_required = where.topology is Topology.REQUIRED
        return self.ledger.fit(pool, gang, levels(where, pool), must_share=is_required)

    def why_no_room(self, gang: Gang, pool: Pool, where: Where) -> str:
        """One sentence: what is missing, and who holds it."""
        wanted = gang.pods * gang.accelerators
        free, total = self.ledger.free(pool), self.ledger.total(pool)
        if pool.is_cpu:
            room = self.ledger.most_pods(pool, gang)
            missing = (
                f"{plural(gang.pods, 'replica')} of {gang.cores:g} cores wanted, room for {room}"
            )
        elif free < wanted:
            missing = f"{free} of {total} are free, needs {wanted}"
        else:
            missing = self._fragmented(gang, pool, where, free)
        return missing + self._held_by(pool)

    def _fragmented(self, gang: Gang, pool: Pool, where: Where, free: int) -> str:
        room = self.ledger.most_pods(pool, gang)
        if room >= gang.pods:
            named = " or ".join(levels(where, pool)) or "the fabric, which no label tells,"
            return f"{free} are free, but no one domain of {named} has room for all"
        nodes = "nodes with" if gang.one_per_node else "places for"
        return (
            f"{free} are free, but needs {gang.pods} {nodes} {gang.accelerators} free accelerators"
            f" and what its pods ask beside them, and there are {room}"
        )

    def _held_by(self, pool: Pool) -> str:
        holders = self.ledger.holders(pool)
        if not holders:
            return ""
        named = [
            f"{key.namespace}/{key.name}" + (f" ({count})" if count else "")
            for key, count in list(holders.items())[:HOLDERS_NAMED]
        ]
        more = len(holders) - len(named)
        return "; held by " + ", ".join(named) + (f" and {more} more" if more else "")


def levels(where: Where, pool: Pool) -> tuple[str, ...]:
    """Node labels of the fabric's levels that count for a workload, nearest first."""
    return (where.topology_level,) if where.topology_level else pool.topology_keys


def shared_domain(nodes: Iterable[str], pool: Pool, where: Where) -> dict[str, str]:
    """The nearest label that all these nodes share, where the workload requires one."""
    if where.topology is not Topology.REQUIRED:
        return {}
    labels = [node.labels for node in pool.nodes if node.name in set(nodes)]
    for level in levels(where, pool):
        values = {each.get(level) for each in labels}
        if len(values) == 1 and (value := values.pop()):
            return {level: value}
    return {}
