"""Nodes are drained, lost, restarted and added under running work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e import profiles
from e2e.controlplane.client import Client, Object
from e2e.kind.containers import pause, restart_kubelet, resume
from e2e.kind.nodes import Hardware, HardwareKeeper, hardware_of, workers
from e2e.suite.doubles import service, training, tuning
from e2e.suite.fleet import H100, L40S, nodes_of, places, pool_of, restarts
from e2e.suite.operator import Operator
from e2e.workloads import API, Observer, condition

pytestmark = pytest.mark.stage(70)

H100_ONLY = {"products": [H100]}
NO_DEVICES = {"nvidia.com/gpu": "0"}
RESET = {"status": {"capacity": NO_DEVICES, "allocatable": NO_DEVICES}}
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"


@pytest.fixture
def lost(operator: Operator) -> Iterator[list[str]]:
    """Names of nodes that a test paused, tainted or cordoned: they work again after it."""
    names: list[str] = []
    yield names
    for name in names:
        resume(name)
        operator.command("uncordon", name)
        operator.kubectl("taint", "node", name, f"{OUT_OF_SERVICE}-")
        operator.command("wait", "--for=condition=Ready", f"node/{name}", "--timeout=180s")


@pytest.mark.usefixtures("in_containers")
def test_a_drained_node_is_left_by_a_job_and_by_a_service(
    client: Client, observer: Observer, operator: Operator, namespace: str, lost: list[str]
) -> None:
    job = client.create(tuning(namespace, "job", 4, 60, accelerators=H100_ONLY | {"count": 4}))
    chat = client.create(service(namespace, "chat", accelerators=H100_ONLY))
    observer.wait_condition(chat, "Ready", "True", "Running")
    observer.wait_condition(job, "PodsReady", "True")
    [node] = set(places(observer.pods_of(job)))
    [other] = nodes_of(client, H100) - {node}
    lost.append(node)

    operator.command("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=3m")
    for workload in (job, chat):
        moved(observer, workload, other)
    observer.wait(pool_of(client, H100), lambda pool: pool["status"]["unusableNodes"] == 1)
    observer.wait_condition(job, "Complete", "True")
    observer.wait_condition(chat, "Ready", "True", "Running")


@pytest.mark.usefixtures("in_containers")
def test_a_lost_node_is_told_and_replaced_once_it_is_given_up(
    client: Client, observer: Observer, operator: Operator, namespace: str, lost: list[str]
) -> None:
    job = client.create(training(namespace, "job", 8, 20))
    observer.wait_condition(job, "PodsReady", "True")
    [node] = places(observer.pods_of(job))
    [other] = nodes_of(client, H100) - {node}
    lost.append(node)

    pause(node)
    observer.wait(pool_of(client, H100), lambda pool: pool["status"]["unusableNodes"] == 1)
    told = observer.wait_condition(job, "PodsReady", "False")
    assert condition(told, "Ready")["status"] == "False"

    operator.command("taint", "node", node, OUT_OF_SERVICE)
    moved(observer, job, other)
    observer.wait_condition(job, "Complete", "True")
    resume(node)
    operator.command("taint", "node", node, f"{OUT_OF_SERVICE}-")
    observer.wait(pool_of(client, H100), lambda pool: pool["status"]["nodes"] == 2)


@pytest.mark.usefixtures("in_containers")
def test_a_gang_goes_on_when_its_lost_node_returns(
    client: Client, observer: Observer, namespace: str, lost: list[str]
) -> None:
    gang = client.create(training(namespace, "gang", 16, 30))
    observer.wait_condition(gang, "PodsReady", "True")
    node = places(observer.pods_of(gang))[0]
    lost.append(node)
    pause(node)
    observer.wait_condition(gang, "PodsReady", "False")
    resume(node)
    observer.wait(pool_of(client, H100), lambda pool: pool["status"]["nodes"] == 2)
    # Its ranks lost each other, so each node's pod fails and is made again; then they meet.
    observer.wait_condition(gang, "Complete", "True")


@pytest.mark.usefixtures("in_containers")
def test_a_restarted_kubelet_loses_nothing(
    client: Client, observer: Observer, namespace: str, hardware: HardwareKeeper
) -> None:
    chat = client.create(service(namespace, "chat"))
    observer.wait_condition(chat, "Ready", "True", "Running")
    pods, [node] = restarts(observer.pods_of(chat)), set(places(observer.pods_of(chat)))
    placed, repairs = where(observer, chat), hardware.repairs

    restart_kubelet(node)
    client.patch(node_named(node), RESET, "status")  # as some kubelets do when they start
    observer.until(lambda: hardware.repairs > repairs, "nobody has given the devices back")
    l40s = {"count": 2, "products": [L40S]}
    late = client.create(tuning(namespace, "late", 2, accelerators=l40s))
    observer.wait_condition(late, "Complete", "True")
    observer.wait_condition(chat, "Ready", "True", "Running")
    assert restarts(observer.pods_of(chat)) == pods
    assert where(observer, chat) == placed


def test_work_that_waits_goes_to_a_pool_that_appears(
    client: Client, observer: Observer, namespace: str, hardware: HardwareKeeper
) -> None:
    a10gs = {"count": 4, "products": ["A10G"]}
    job = client.create(tuning(namespace, "waits", 4, accelerators=a10gs))
    observer.wait_condition(job, "Planned", "False", "NoFeasiblePool")
    node = workers(client.list("v1", "Node"))[-1]
    before = hardware.of(node)
    try:
        hardware.give(node, a10g())
        observer.wait_condition(job, "Complete", "True")
        assert places(observer.pods_of(job)) == [node]
    finally:
        hardware.give(node, before)
    observer.until(lambda: "A10G" not in accelerators(client), "the pool has not gone")


def moved(observer: Observer, workload: Object, node: str) -> None:
    """Return once its one pod runs on that node."""
    name = workload["metadata"]["name"]
    observer.until(
        lambda: places(running(observer.pods_of(workload))) == [node], f"{name} runs not on {node}"
    )


def node_named(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def running(pods: list[Object]) -> list[Object]:
    """Without those that have ended or are being deleted."""
    return [
        pod
        for pod in pods
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]


def where(observer: Observer, workload: Object) -> tuple[str, int]:
    seen = observer.look(workload) or {}
    return seen["status"]["plan"]["pool"], seen["status"]["plan"]["replicas"]


def accelerators(client: Client) -> set[str]:
    pools = client.list(API, "AcceleratorPool")
    return {pool.get("status", {}).get("accelerator", "") for pool in pools}


def a10g() -> Hardware:
    """The A10G node of the demo's profile, without its taints: the operator runs here too."""
    nodes = {node["metadata"]["name"]: node for node in profiles.render("demo")}
    return hardware_of(nodes["a10g-0"])
