"""A cluster profile with prices under the operator, and workloads that people bring there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from e2e import profiles
from e2e.controlplane import nodes as fake_nodes
from e2e.controlplane.client import POLL_SECONDS, Object
from tests.apiserver.operated import API, TIMEOUT_SECONDS, Operated

_GIVEN: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent / "placements.yaml").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Fleet:
    """Nodes in pools, with nothing of ours on them, and a namespace for one test."""

    operator: Operated
    namespace: str

    def place(self, name: str, as_name: str = "") -> Object:
        """Create a workload of placements.yaml; once all its pods are bound, as it was placed."""
        placed = self.operator.wait_condition(self.create(name, as_name), "Placed", "True")
        self.wait_bound(placed)
        return placed

    def wait_bound(self, workload: Object) -> None:
        """Return once the scheduler has bound as many pods as the plan asks for."""
        replicas = workload["status"]["plan"].get("replicas")
        wanted = replicas or self.operator.job_of(workload)["spec"]["parallelism"]
        _wait(lambda: len(list(filter(None, self.nodes_of(workload)))) == wanted, f"{wanted} pods")

    def create(self, name: str, as_name: str = "") -> Object:
        """Create a workload of placements.yaml."""
        metadata = {"name": as_name or name, "namespace": self.namespace}
        return self.operator.client.create({**_GIVEN["workloads"][name], "metadata": metadata})

    def pools(self) -> dict[str, Object]:
        """All AcceleratorPools by name."""
        found = self.operator.client.list(API, "AcceleratorPool")
        return {pool["metadata"]["name"]: pool for pool in found}

    def nodes_of(self, workload: Object) -> list[str]:
        """Where the scheduler has bound the workload's pods, one name for each pod."""
        return [pod["spec"].get("nodeName", "") for pod in self.operator.pods_of(workload)]

    def members(self, pool: Object) -> set[str]:
        """Names of the nodes that carry all labels of the pool's selector."""
        wanted = pool["spec"]["nodeSelector"].items()
        found = self.operator.client.list("v1", "Node")
        return {
            node["metadata"]["name"]
            for node in found
            if wanted <= node["metadata"]["labels"].items()
        }


@contextmanager
def fleet(operator: Operated, name: str) -> Iterator[Callable[[str], Fleet]]:
    """The fleet of placements.yaml, as long as the ``with`` lasts; gives one for a namespace."""
    given = _GIVEN["fleets"][name]
    declared = [_pool(name, spec) for name, spec in given["pools"].items()]
    nodes = fake_nodes.add(operator.client, profiles.render(given["profile"]))
    try:
        for pool in declared:
            operator.client.create(pool)

        def idle(namespace: str) -> Fleet:
            operator.await_idle(len(nodes))
            return Fleet(operator, namespace)

        yield idle
    finally:
        operator.client.delete_all(declared)
        fake_nodes.remove(operator.client, nodes)


def _pool(name: str, spec: Object) -> Object:
    metadata = {"name": name}
    return {"apiVersion": API, "kind": "AcceleratorPool", "metadata": metadata, "spec": spec}


def _wait(until: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not until():
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {what} after {TIMEOUT_SECONDS:g} s")
        time.sleep(POLL_SECONDS)
