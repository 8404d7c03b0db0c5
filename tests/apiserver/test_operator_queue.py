"""What waits is decided together, and what runs may move: on a real API server and scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from e2e.controlplane.client import Client, Object
from e2e.controlplane.cluster import ControlPlane
from tests.apiserver.conftest import NodeFactory
from tests.apiserver.operated import (
    CHECKPOINT,
    Operated,
    checkpoint_volume,
    condition,
    h100_node,
    operated,
    training_job,
)

pytestmark = pytest.mark.apiserver

L40S = {
    "nvidia.com/gpu.product": "NVIDIA-L40S",
    "nvidia.com/gpu.memory": "46068",
    "nvidia.com/gpu.compute.major": "8",
    "nvidia.com/gpu.compute.minor": "9",
}
INPUT_BOUND: dict[str, Any] = {
    "model": {
        "custom": {
            "parameters": "25M",
            "forwardFlopsPerSample": "4100M",
            "activationBytesPerSample": "90M",
        }
    },
    "training": {"globalBatchSize": 256, "samples": "20M"},
    "data": {"bytesPerSample": "110Ki", "cpuTimePerSample": "30ms"},
}
HCA = "rdma/hca_shared_devices_a"
Start = Callable[..., Operated]


@pytest.fixture
def start(
    control_plane: ControlPlane,
    client: Client,
    crds: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Start]:
    """Starts an operator with these settings, once the test has set the scene."""
    with ExitStack() as stack:

        def begin(**settings: str) -> Operated:
            log = tmp_path_factory.mktemp("queue") / "operator.log"
            environment = {f"POOLWISE_{name.upper()}": value for name, value in settings.items()}
            return stack.enter_context(operated(control_plane, client, log, environment))

        yield begin


def l40s_node() -> Object:
    return h100_node(labels=L40S)


def test_who_loses_least_leaves_the_contended_pool(
    start: Start, client: Client, nodes: NodeFactory, namespace: str
) -> None:
    """Both would be fastest on the one H100 node; it goes to the one that needs it."""
    fast, slow = nodes([h100_node(), l40s_node()])
    loose = training_job(namespace, "loose", 8)
    loose["spec"] |= INPUT_BOUND
    loose = client.create(loose)
    tight = client.create(training_job(namespace, "tight", 8))
    operator = start()
    for job, node in ((tight, fast), (loose, slow)):
        operator.wait_condition(job, "PodsReady", "True")
        assert [pod["spec"]["nodeName"] for pod in operator.pods_of(job)] == [
            node["metadata"]["name"]
        ]
    told = condition(operator.look(loose) or {}, "Placed")["message"]
    assert f"{namespace}/tight would lose" in told and "is scarce" in told
    operator.settle()


def test_a_device_beside_accelerators_is_looked_for_and_waited_for(
    start: Start, client: Client, nodes: NodeFactory, namespace: str
) -> None:
    """The faster pool has no RDMA device, and of the other's two nodes each has one."""
    with_hca = [l40s_node(), l40s_node()]
    for node in with_hca:
        for told in (node["status"]["capacity"], node["status"]["allocatable"]):
            told[HCA] = "1"
    _, *slow = nodes([h100_node(), *with_hca])
    first = training_job(namespace, "first", 8)
    first["spec"]["run"]["resources"] = {"limits": {HCA: "1"}}
    both = training_job(namespace, "both", 4)
    both["spec"]["run"]["resources"] = {"limits": {HCA: "2"}}
    first, both = client.create(first), client.create(both)
    operator = start()
    operator.wait_condition(first, "PodsReady", "True")
    assert [pod["spec"]["nodeName"] for pod in operator.pods_of(first)] in (
        [[node["metadata"]["name"]] for node in slow]
    )
    candidates = (operator.look(first) or {})["status"]["plan"]["candidates"]
    (h100,) = [each["reason"] for each in candidates if each["pool"].startswith("h100")]
    assert h100 == f"has no {HCA} on its 1 node, each pod asks for 1 {HCA}"
    operator.wait_condition(both, "Placed", "False")
    assert f"2 {HCA}" in condition(operator.look(both) or {}, "Placed")["message"]


def test_a_run_moves_from_its_checkpoint_to_a_pool_that_comes_free(
    start: Start, client: Client, nodes: NodeFactory, namespace: str
) -> None:
    """It stops, and starts in the better pool; once there it stays, and nothing more is written."""
    (slow,) = nodes([l40s_node()])
    for document in checkpoint_volume(namespace):
        client.create(document)
    job = training_job(namespace, "mover", 8)
    job["spec"]["checkpoint"] = CHECKPOINT
    job = client.create(job)
    operator = start(may_move="true", settle_seconds="2", restart_seconds="1")
    operator.wait_condition(job, "PodsReady", "True")
    first = operator.job_of(job)["metadata"]["uid"]
    assert [pod["spec"]["nodeName"] for pod in operator.pods_of(job)] == [slow["metadata"]["name"]]
    (fast,) = nodes([h100_node()])
    operator.until(
        lambda: any(event["reason"] == "Moves" for event in operator.events_of(job)), "no move"
    )
    name = fast["metadata"]["name"]
    operator.until(
        lambda: [pod["spec"].get("nodeName") for pod in operator.pods_of(job)] == [name],
        "its pods are not on the H100 node",
    )
    operator.wait_condition(job, "PodsReady", "True")
    assert operator.job_of(job)["metadata"]["uid"] != first
    operator.settle()


def test_a_higher_priority_gets_the_accelerators_of_a_run_that_keeps_checkpoints(
    start: Start, client: Client, nodes: NodeFactory, namespace: str
) -> None:
    nodes([h100_node()])
    for document in checkpoint_volume(namespace):
        client.create(document)
    high = client.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": f"high-{namespace}"},
            "value": 1000,
        }
    )
    low = training_job(namespace, "low", 8)
    low["spec"]["checkpoint"] = CHECKPOINT
    low = client.create(low)
    operator = start(may_preempt="true", settle_seconds="2", restart_seconds="1")
    operator.wait_condition(low, "PodsReady", "True")
    operator.settle()
    urgent = training_job(namespace, "urgent", 8)
    urgent["spec"]["priorityClassName"] = high["metadata"]["name"]
    urgent = client.create(urgent)
    operator.wait_condition(urgent, "PodsReady", "True")
    operator.wait_condition(low, "Placed", "False")
    operator.wait_message(low, "Placed", "waits for 8 free H100-SXM5-80GB")
    [stopped] = [each for each in operator.events_of(low) if each["reason"] == "Preempted"]
    assert f"stopped for {namespace}/urgent" in stopped["note"]
    client.delete_all([high])
