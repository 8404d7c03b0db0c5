"""Replicas that span nodes: LeaderWorkerSet's real controller, and engines that really meet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.controlplane.client import Client, Object
from e2e.kind.integrations import LEADER_WORKER_SET, Kubectl
from e2e.kind.nodes import HardwareKeeper, workers
from e2e.suite.doubles import client_pod, service
from e2e.suite.fleet import H100, nodes_of, places
from e2e.suite.integrated import integrated
from e2e.suite.operator import Operator
from e2e.workloads import Observer, child, condition

pytestmark = pytest.mark.stage(63)

API = "leaderworkerset.x-k8s.io/v1"
LARGE = {
    "preset": "llama-3.1-405b",
    "uri": "hf://meta-llama/Llama-3.1-405B-Instruct",
    "maxModelLength": 8192,
    "quantization": "None",
}
"""810 GB of weights; eight H100 have 640 GB."""
SLO = [
    {"metric": "TTFT", "percentile": 99, "target": "10s"},
    {"metric": "ITL", "percentile": 99, "target": "250ms"},
]
TRAFFIC = {
    "requestsPerSecond": "1",
    "inputTokens": {"p50": 300, "p95": 1200},
    "outputTokens": {"p50": 200, "p95": 600},
}


@pytest.fixture(scope="module")
def large_nodes(client: Client, hardware: HardwareKeeper) -> Iterator[None]:
    """All workers are H100 machines while these tests run: two replicas of two nodes fit."""
    names = workers(client.list("v1", "Node"))
    before = {name: hardware.of(name) for name in names}
    for name in names:
        hardware.give(name, before[sorted(nodes_of(client, H100))[0]])
    yield
    for name, given in before.items():
        hardware.give(name, given)


@pytest.fixture(scope="module")
def leader_worker_set(request: pytest.FixtureRequest, kubectl: Kubectl) -> Iterator[None]:
    """It comes after the operator, which finds it without a restart."""
    with integrated(request, kubectl, LEADER_WORKER_SET):
        yield


def large(namespace: str, name: str, **spec: Any) -> Object:
    """A service whose model no node holds."""
    return service(namespace, name, **{"model": LARGE, "slo": SLO, "traffic": TRAFFIC, **spec})


def group_set_of(observer: Observer, workload: Object) -> Object:
    """The LeaderWorkerSet of a service, once it is there."""
    return observer.wait(child(workload, API, "LeaderWorkerSet", "-replica"), lambda _: True)


def by_group(pods: list[Object]) -> dict[str, set[str]]:
    """Nodes of each group."""
    found: dict[str, set[str]] = {}
    for pod in pods:
        index = pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/group-index"]
        found.setdefault(index, set()).add(pod["spec"].get("nodeName", ""))
    return found


def test_without_it_the_reason_says_what_it_would_make_possible(
    client: Client, observer: Observer, namespace: str
) -> None:
    chat = client.create(large(namespace, "early"))
    told = observer.wait_condition(chat, "Planned", "False", "NoFeasiblePool")
    assert (
        "2 nodes together would hold a replica, but LeaderWorkerSet, which starts such replicas,"
        " is not installed"
    ) in condition(told, "Planned")["message"]


def test_it_serves_from_two_nodes_and_grows_to_two_replicas(
    client: Client,
    observer: Observer,
    operator: Operator,
    namespace: str,
    leader_worker_set: None,
    large_nodes: None,
) -> None:
    chat = client.create(large(namespace, "large", scaling={"mode": "Off"}, replicas=1))
    observer.wait_condition(chat, "Ready", "True", "Running")
    ready = observer.wait(chat, lambda seen: seen["status"].get("readyReplicas") == 1)
    assert ready["status"]["observed"]["pods"] == {"desired": 2, "ready": 2, "existing": 2}
    assert ready["status"]["replicas"] == 1
    pods = observer.pods_of(chat)
    assert len(set(places(pods))) == 2
    assert asked(client, observer, operator, namespace) == "large"

    client.patch(chat, {"spec": {"replicas": 2}}, "scale")
    grown = observer.wait(chat, lambda seen: seen["status"].get("readyReplicas") == 2)
    assert grown["status"]["observed"]["pods"]["desired"] == 4
    groups = by_group(observer.pods_of(chat))
    assert {index: len(nodes) for index, nodes in groups.items()} == {"0": 2, "1": 2}
    assert len(set().union(*groups.values())) == 4
    assert uids(pods) <= uids(observer.pods_of(chat)), "scaling restarts"

    group_set = group_set_of(observer, chat)
    client.delete(chat)
    observer.wait_gone(group_set)
    observer.until(lambda: not observer.pods_of(chat), "its pods are still there")


def test_a_group_that_lost_a_worker_starts_anew(
    client: Client,
    observer: Observer,
    namespace: str,
    leader_worker_set: None,
    large_nodes: None,
) -> None:
    chat = client.create(large(namespace, "large", scaling={"mode": "Off"}, replicas=1))
    observer.wait_condition(chat, "Ready", "True", "Running")
    before = uids(observer.pods_of(chat))
    worker = next(p for p in observer.pods_of(chat) if p["metadata"]["name"].endswith("-0-1"))
    client.delete(worker)
    observer.until(
        lambda: len(uids(observer.pods_of(chat)) - before) == 2,
        "the broken group has no new pods",
    )
    assert not uids(observer.pods_of(chat)) & before
    observer.wait_condition(chat, "Ready", "True", "Running")


def uids(pods: list[Object]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def test_a_group_without_room_waits_whole(
    client: Client,
    observer: Observer,
    namespace: str,
    leader_worker_set: None,
    large_nodes: None,
) -> None:
    """All four nodes are taken by two groups: a third waits whole, and makes no pod."""
    first = client.create(large(namespace, "first", scaling={"mode": "Off"}, replicas=2))
    observer.wait_condition(first, "PodsReady", "True")
    second = client.create(large(namespace, "second", scaling={"mode": "Off"}, replicas=1))
    told = observer.wait_condition(second, "Placed", "False", "InsufficientCapacity")
    assert f"{namespace}/first" in condition(told, "Placed")["message"]
    assert observer.pods_of(second) == []


def asked(client: Client, observer: Observer, operator: Operator, namespace: str) -> str:
    """The model that answers behind the Service."""
    asking = client_pod(namespace)
    asking["spec"]["tolerations"] = [{"operator": "Exists"}]  # all workers seem to have H100 now
    pod = client.create(asking)
    observer.wait_condition(pod, "Ready", "True")
    get = (
        "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=30).read().decode())"
    )
    words = ["exec", f"--namespace={namespace}", "client", "--", "python3", "-c", get]
    models = json.loads(operator.command(*words, "http://large/v1/models"))
    return str(models["data"][0]["id"])
