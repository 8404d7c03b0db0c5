"""What the cache forgets of objects decides nothing, and wakes nobody."""

from __future__ import annotations

from typing import Any

import pytest

from poolwise.cluster.pruning import pruned
from poolwise.cluster.resources import NODES, PODS
from poolwise.plan.ledger.capacity_pods import requests
from poolwise.plan.pools.gathering import pools
from poolwise.settings import Settings
from tests.plan.cluster_given import cpu_nodes, h100
from tests.plan.machines import TABLES


def live(node: dict[str, Any], beat: str = "00:00", pressure: str = "False") -> dict[str, Any]:
    """As a node's agent reports it: the architecture, a heartbeat, and what it has pulled."""
    labels = dict(node["metadata"]["labels"])
    del labels["kubernetes.io/arch"]
    conditions = [
        {"type": "MemoryPressure", "status": pressure, "lastHeartbeatTime": beat},
        {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": beat},
    ]
    told = {
        "nodeInfo": {"architecture": "amd64", "kubeletVersion": "v1.34.0"},
        "images": [{"names": [f"image-{beat}"], "sizeBytes": 1}],
        "conditions": conditions,
    }
    metadata = {**node["metadata"], "labels": labels, "annotations": {"beat": beat}}
    return {**node, "metadata": metadata, "status": {**node["status"], **told}}


@pytest.mark.parametrize(
    "node", [*h100(1), *cpu_nodes("known", 1), *cpu_nodes("unknown", 1, "its-own")],
    ids=["accelerators", "cpu", "cpu-by-architecture"],
)  # fmt: skip
def test_what_is_left_of_a_node_makes_the_same_pool(node):
    given = live(node)
    (found,) = pools([given], [], TABLES, Settings())
    assert (found,) == pools([pruned(NODES, given)], [], TABLES, Settings())
    assert found.machine is not None


def test_a_heartbeat_changes_nothing():
    (node,) = h100(1)
    assert pruned(NODES, live(node)) == pruned(NODES, live(node, "00:10", pressure="True"))


def test_what_is_left_of_a_pod_asks_for_the_same():
    asked = {"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}, "image": "i", "args": ["a"]}
    sidecar = {**asked, "name": "sidecar", "restartPolicy": "Always"}
    port = {"name": "http", "containerPort": 8000}
    pod = {
        "metadata": {"name": "p", "namespace": "a", "managedFields": [{}]},
        "spec": {
            "nodeName": "n",
            "overhead": {"cpu": "1"},
            "containers": [{**asked, "name": "main", "ports": [port]}],
            "initContainers": [sidecar],
        },
    }
    kept = pruned(PODS, pod)
    assert requests(kept) == requests(pod)
    assert requests(kept).cores == 5.0
    (main,) = kept["spec"]["containers"]
    assert main.keys() == {"name", "resources"}
    assert "managedFields" not in kept["metadata"]
