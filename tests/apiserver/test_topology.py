"""Where the real scheduler binds pods that the planner wants close together, or out of the way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from e2e.controlplane.client import Object
from tests.apiserver.conftest import NodeFactory
from tests.apiserver.operated import (
    Operated,
    chat_service,
    condition,
    h100_node,
    training_job,
)

pytestmark = pytest.mark.apiserver

CLIQUE = "nvidia.com/gpu.clique"
LEAF = "network.topology.nvidia.com/leaf"
PER_NODE = 4


@pytest.fixture
def nodes(operator: Operated, nodes: NodeFactory) -> NodeFactory:
    """Add nodes, and return once the operator knows them all: it places on those it has seen."""

    def add(documents: Iterable[Object]) -> list[Object]:
        added = nodes(documents)
        operator.await_idle(len(added))
        return added

    return add


def rack_node(rack: str, index: int) -> Object:
    """A tray of an NVL72 rack."""
    name = f"gb200-{rack}-{index}"
    node = h100_node(PER_NODE, {"nvidia.com/gpu.product": "NVIDIA-GB200", CLIQUE: rack}, name)
    labels = node["metadata"]["labels"]
    del labels["nvidia.com/gpu.memory"]
    labels |= {"nvidia.com/gpu.compute.major": "10"}
    return node


def racks(sizes: dict[str, int]) -> list[Object]:
    return [rack_node(rack, index) for rack, size in sizes.items() for index in range(size)]


def bound(operator: Operated, workload: Object, count: int) -> set[str]:
    """Nodes of the workload's pods, once the scheduler has bound them all."""

    def names() -> list[str]:
        return [pod["spec"].get("nodeName", "") for pod in operator.pods_of(workload)]

    operator.until(lambda: len(names()) == count and all(names()), f"{count} pods are not bound")
    return set(names())


def rack_of(node: str) -> str:
    return node.split("-")[1]


def scheduled_next_to(namespace: str, node: str) -> Object:
    """A pod of somebody else that holds one accelerator of a node."""
    resources: dict[str, Any] = {"limits": {"nvidia.com/gpu": "1"}}
    container = {"name": "main", "image": "registry.example.com/x:1", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "other", "namespace": namespace},
        "spec": {"nodeName": node, "containers": [container]},
    }


def test_a_run_that_talks_a_lot_is_bound_to_one_rack(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    """Its layout counts on NVLink, so all its pods must be in the rack that it was promised: the
    smaller one, which it uses up, and which the scheduler alone has no reason to prefer."""
    nodes(racks({"a": 6, "b": 4}))
    job = operator.client.create(training_job(namespace, "train", 4 * PER_NODE))
    placed = operator.wait_condition(job, "Placed", "True")
    assert bound(operator, job, 4) == {f"gb200-b-{index}" for index in range(4)}
    told = placed["status"]["plan"]["reason"]
    assert f"all nodes in one domain of {CLIQUE}: communication takes" in told
    (selector,) = {pod["spec"]["nodeSelector"][CLIQUE] for pod in operator.pods_of(job)}
    assert selector == "b"


def test_a_run_is_bound_to_the_nodes_that_it_was_promised(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    """Nodes are alike to the scheduler; the planner keeps the larger leaf whole."""
    nodes([h100_node(8, {LEAF: f"leaf-{i // 3}"}, name=f"h100-leaf-{i}") for i in range(5)])
    spec = {"placement": {"topology": {"mode": "Preferred"}}}
    job = operator.client.create(training_job(namespace, "train", 16, **spec))
    operator.wait_condition(job, "Placed", "True")
    assert bound(operator, job, 2) == {"h100-leaf-3", "h100-leaf-4"}


def test_a_replica_is_bound_to_a_rack_that_is_broken_already(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes(racks({"a": 4, "b": 6}))
    mode = {"placement": {"topology": {"mode": "Required"}}}
    job = operator.client.create(training_job(namespace, "train", 3 * PER_NODE, **mode))
    (rack,) = {rack_of(node) for node in bound(operator, job, 3)}
    service = operator.client.create(chat_service(namespace, "chat"))
    operator.wait_condition(service, "Ready", "True")
    assert {rack_of(node) for node in bound(operator, service, 1)} == {rack}


def test_a_run_waits_for_a_rack_and_says_which_pods_are_in_the_way(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes(racks({"a": 2, "b": 2}))
    for rack in ("a", "b"):
        pod = scheduled_next_to(namespace, f"gb200-{rack}-0")
        operator.client.create({**pod, "metadata": {**pod["metadata"], "name": f"other-{rack}"}})
    operator.await_free(4 * PER_NODE - 2)
    mode = {"placement": {"topology": {"mode": "Required"}}}
    job = operator.client.create(training_job(namespace, "train", 2 * PER_NODE, **mode))
    waits = operator.wait_condition(job, "Placed", "False", "InsufficientCapacity")
    message = condition(waits, "Placed")["message"]
    assert (
        "needs 2 whole GB200-NVL72 nodes in one NVLink domain (nvidia.com/gpu.clique);"
        " 2 free nodes are in 2 NVLink domains, at most 1 in one"
    ) in message
    operator.settle()
    assert operator.writes_for(5.0) == []


def test_a_level_that_no_node_has_is_told_and_stops_nobody_else(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node(8, {LEAF: "leaf-0"}) for _ in range(4)])
    topology = {"mode": "Required", "level": "network.topology.nvidia.com/leave"}
    slip = training_job(namespace, "slip", 16, placement={"topology": topology})
    refused = operator.wait_condition(operator.client.create(slip), "Planned", "False")
    assert condition(refused, "Planned")["message"] == (
        "spec.placement.topology.level: no node of any pool has the label"
        f" network.topology.nvidia.com/leave; did you mean {LEAF}? levels there are: {LEAF}"
    )
    other = operator.client.create(training_job(namespace, "other", 16))
    operator.wait_condition(other, "PodsReady", "True")
