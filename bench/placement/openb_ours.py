"""The operator's own choice of a node for openb's pods: its ledger of cores, memory, accelerators.

Every model of accelerator is a pool. Nothing is known of run times or prices, so that pools are
equal and taken in the order of their names, as the operator's ranking takes equals.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

from bench.placement.openb_nodes import Machine, Pod
from poolwise.plan.decision import Key, Kind
from poolwise.plan.ledger.capacity import Gang, Ledger, ledger
from poolwise.plan.pool import Node, Pool

MEBIBYTE = 2.0**20
KEY = Key(Kind.TRAINING_JOB, "default", "pod")
RESOURCE = "nvidia.com/gpu"


class Ours:
    """Keeps the ledger as the operator does."""

    def __init__(self, nodes: Sequence[Machine]) -> None:
        self._pools = _pools(nodes)
        self._ledger: Ledger = ledger(self._pools, {})

    def place(self, pod: Pod) -> bool:
        """In the first pool where the ledger finds a node, as among equals the operator does."""
        gang = Gang(
            1, pod.accelerators, pod.cores_milli / 1000.0, pod.memory_mib * MEBIBYTE, packs=True
        )
        for pool in self._pools:
            found = self._ledger.fit(pool, gang)
            if found is not None:
                held = self._ledger.with_claim(gang.claim(KEY, pool.name, found))
                self._ledger = dataclasses.replace(held, claims=())
                return True
        return False


def _pools(nodes: Sequence[Machine]) -> list[Pool]:
    by_model: defaultdict[str, list[Machine]] = defaultdict(list)
    for each in nodes:
        by_model[each.model].append(each)
    return [_pool(model, members) for model, members in sorted(by_model.items())]


def _pool(model: str, members: Sequence[Machine]) -> Pool:
    return Pool(
        name=model.lower(),
        is_discovered=True,
        accelerator=None,
        resource=RESOURCE,
        machine=None,
        nodes=tuple(
            Node(
                each.name, {}, each.accelerators, each.cores_milli / 1000.0,
                each.memory_mib * MEBIBYTE,
            )
            for each in members
        ),
        accelerators_per_node=max(each.accelerators for each in members),
        node_selector={},
        tolerations=(),
        price=None,
        capacity_type="OnDemand",
        role=None,
    )  # fmt: skip
