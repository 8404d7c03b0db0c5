"""Pools that nodes come to, and pools that none come to: on a real API server and scheduler, with
the test as the autoscaler."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime

import pytest

from e2e.controlplane.client import Object
from tests.apiserver.autoscaler import Autoscaler, Group
from tests.apiserver.operated import (
    API,
    Operated,
    chat_service,
    condition,
    h100_node,
    training_job,
)

pytestmark = pytest.mark.apiserver

PAUSE_SECONDS = 6.0
SETTINGS = {"POOLWISE_START_RETRY_SECONDS": f"{PAUSE_SECONDS:g}"}
SPOT_TAINT = {"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NoSchedule"}
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
Cloud = Callable[..., Autoscaler]


@pytest.fixture
def cloud(operator: Operated) -> Iterator[Cloud]:
    """Makes groups of nodes with their pools; all of it goes with the test."""
    made: list[Autoscaler] = []
    pools: list[Object] = []

    def create(*groups: Group, **spec: object) -> Autoscaler:
        made.append(Autoscaler(operator.client, groups))
        pools.extend(operator.client.create(group.pool(**spec)) for group in groups)
        for pool in pools:
            operator.wait(pool, lambda each: bool(each.get("status", {}).get("conditions")))
        return made[-1]

    yield create
    operator.client.delete_all(pools)
    for autoscaler in made:
        autoscaler.remove()


@pytest.fixture
def namespace(namespace: str, cloud: Cloud) -> str:
    """Goes before the nodes."""
    return namespace


def scaled_until(autoscaler: Autoscaler, operator: Operated, holds: Callable[[], object]) -> None:
    """Let nodes come until it holds."""

    def scaled() -> bool:
        autoscaler.scale()
        return bool(holds())

    operator.until(scaled, "it does not hold")


def is_ready(operator: Operated, workload: Object) -> Callable[[], bool]:
    return lambda: condition(operator.look(workload) or {}, "PodsReady").get("status") == "True"


def pool_status(operator: Operated, name: str) -> Object:
    found = operator.client.get(API, "AcceleratorPool", name)
    assert found is not None
    status: Object = found["status"]
    return status


def test_a_job_on_a_pool_of_size_zero_gets_its_nodes(
    operator: Operated, namespace: str, cloud: Cloud
) -> None:
    autoscaler = cloud(Group("zero", 4, taints=(TAINT,)))
    job = operator.client.create(training_job(namespace, "train", 16))
    placed = operator.wait_condition(job, "Placed", "True")
    assert "nodes start in about 4 min" in condition(placed, "Placed")["message"]
    assert placed["status"]["plan"]["startupSeconds"] == 240
    operator.until(lambda: len(operator.pods_of(job)) == 2, "no 2 pods")
    operator.until(lambda: pool_status(operator, "zero").get("awaitedNodes") == 2, "none awaited")
    assert pool_status(operator, "zero")["nodes"] == 0
    scaled_until(autoscaler, operator, is_ready(operator, job))
    assert len(autoscaler.groups["zero"].nodes) == 2
    operator.until(lambda: pool_status(operator, "zero").get("awaitedNodes") == 0, "some awaited")
    after = pool_status(operator, "zero")
    assert (after["nodes"], after["free"]) == (2, 0)
    annotations = operator.pods_of(job)[0]["metadata"]["annotations"]
    assert annotations["karpenter.sh/do-not-disrupt"] == "true"
    assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
    assert operator.wait(job, lambda each: "start" in each["status"])["status"]["start"].keys() == {
        "startedTime"
    }


def test_jobs_that_arrive_meanwhile_share_what_comes(
    operator: Operated, namespace: str, cloud: Cloud
) -> None:
    """Three of two nodes each fit on five nodes twice: the third waits, and no node is promised
    twice."""
    autoscaler = cloud(Group("five", 5))
    jobs = [operator.client.create(training_job(namespace, f"j{n}", 16)) for n in range(3)]
    operator.until(
        lambda: sum(_is_placed(operator, each) for each in jobs) == 2, "not two of three placed"
    )
    placed = [each for each in jobs if _is_placed(operator, each)]
    scaled_until(autoscaler, operator, lambda: all(is_ready(operator, each)() for each in placed))
    operator.settle()
    assert len(autoscaler.groups["five"].nodes) == 4
    assert [each for each in jobs if _is_placed(operator, each)] == placed


def test_a_service_starts_on_a_spot_pool_of_size_zero(
    operator: Operated, namespace: str, cloud: Cloud
) -> None:
    group = Group("zero-spot", 2, taints=(TAINT, SPOT_TAINT))
    autoscaler = cloud(group, capacityType="Spot")
    service = operator.client.create(chat_service(namespace, "chat"))
    operator.wait_condition(service, "Placed", "True")
    scaled_until(autoscaler, operator, is_ready(operator, service))
    assert len(group.nodes) == 1
    pod = operator.pods_of(service)[0]
    assert "karpenter.sh/do-not-disrupt" not in pod["metadata"].get("annotations", {})


def test_what_does_not_start_in_time_goes_to_the_next_pool(
    operator: Operated, namespace: str, cloud: Cloud
) -> None:
    spot = Group("a-spot", 2, is_in_stock=False, price_per_hour="20")
    autoscaler = cloud(spot, Group("b-reserved", 2))
    job = operator.client.create(
        training_job(namespace, "train", 16, startTimeout="6s", objective={"goal": "Cost"})
    )
    first = operator.wait_condition(job, "Placed", "True")
    assert first["status"]["plan"]["pool"] == "a-spot"
    autoscaler.scale()
    operator.wait(job, lambda each: each["status"].get("plan", {}).get("pool") == "b-reserved")
    operator.client.patch(job, {"spec": {"startTimeout": "30m"}})  # there it may take its time
    scaled_until(autoscaler, operator, is_ready(operator, job))
    seen = operator.look(job) or {}
    [given_up] = seen["status"]["start"]["givenUp"]
    assert (given_up["pool"], given_up["startedPods"], given_up["pods"]) == ("a-spot", 0, 2)
    told = [event for event in operator.events_of(job) if event["reason"] == "StartTimeout"]
    assert told[0]["note"] == "0 of 2 pods started within 6 s on a-spot; next: b-reserved"
    operator.until(lambda: len(operator.pods_of(job)) == 2, "pods of the first place stay")
    grows = condition({"status": pool_status(operator, "a-spot")}, "CanGrow")
    assert grows["reason"] in ("NodesDidNotCome", "RoomToGrow")  # by now it may be tried again


def test_a_restart_forgets_neither_what_waits_nor_what_failed(
    operator: Operated, namespace: str, cloud: Cloud
) -> None:
    group = Group("late", 2, is_in_stock=False)
    autoscaler = cloud(group)
    job = operator.client.create(training_job(namespace, "train", 16, startTimeout="8s"))
    operator.wait_condition(job, "Placed", "True")
    first = operator.job_of(job)
    mark = operator.mark()
    operator.process.kill()
    operator.resume()
    told = operator.wait_condition(job, "Placed", "False", "StartTimeout")
    assert {each.verb for each in operator.writes(mark) if each.resource == "jobs"} <= {"delete"}
    operator.process.kill()
    operator.resume()
    until = _time(told["status"]["start"]["givenUp"][0]["time"]) + PAUSE_SECONDS
    second = operator.wait(
        first, lambda each: bool(each["metadata"]["uid"] != first["metadata"]["uid"])
    )
    assert _time(second["metadata"]["creationTimestamp"]) >= until - 1
    group.is_in_stock = True
    scaled_until(autoscaler, operator, is_ready(operator, job))
    seen = operator.wait(job, lambda each: "startedTime" in each["status"].get("start", {}))
    assert "givenUp" not in seen["status"]["start"]


def test_a_gang_that_ran_keeps_its_place_when_it_loses_a_node(
    operator: Operated, namespace: str, cloud: Cloud
) -> None:
    group = Group("once", 2)
    autoscaler = cloud(group)
    job = operator.client.create(training_job(namespace, "train", 16, startTimeout="10s"))
    scaled_until(autoscaler, operator, is_ready(operator, job))
    operator.wait(job, lambda each: "startedTime" in each["status"].get("start", {}))
    first = operator.job_of(job)
    node = group.nodes[0]
    operator.client.patch(node, {"spec": {"unschedulable": True}})
    name = node["metadata"]["name"]
    [lost] = [pod for pod in operator.pods_of(job) if pod["spec"]["nodeName"] == name]
    operator.client.delete(lost)
    operator.wait_condition(job, "PodsReady", "False")
    time.sleep(12)
    seen = operator.look(job) or {}
    assert condition(seen, "Placed")["status"] == "True"
    assert operator.job_of(job)["metadata"]["uid"] == first["metadata"]["uid"]


def test_nodes_that_are_there_come_first(operator: Operated, namespace: str, cloud: Cloud) -> None:
    group = Group("mixed", 3)
    autoscaler = cloud(group)
    group.nodes += operator.client.create_all([h100_node(labels=group.labels, name="mixed-there")])
    operator.until(lambda: pool_status(operator, "mixed").get("nodes") == 1, "the node is unknown")
    small = operator.client.create(training_job(namespace, "small", 8))
    operator.wait_condition(small, "PodsReady", "True")
    large = operator.client.create(training_job(namespace, "large", 16))
    operator.wait_condition(large, "Placed", "True")
    scaled_until(autoscaler, operator, is_ready(operator, large))
    assert len(group.nodes) == 3


def _is_placed(operator: Operated, workload: Object) -> bool:
    return condition(operator.look(workload) or {}, "Placed").get("status") == "True"


def _time(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
