"""The operator on a real API server: a service goes on in the next pool where its own is full."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from e2e.controlplane.client import Object
from poolwise.plan.names import OVERFLOW
from tests.apiserver.conftest import NodeFactory
from tests.apiserver.engines import Engines, engines
from tests.apiserver.operated import API, Operated, h100_node
from tests.apiserver.test_operator_scaling import (
    as_known_for_an_hour,
    chat,
    reasons,
    replicas,
    scaling,
)

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(1500)]

SETTINGS = {"POOLWISE_SCALING_INTERVAL_SECONDS": "1"}
WAIT_SECONDS = 480.0
LABEL = "tests.poolwise.dev/pool"
H200 = {"nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/gpu.memory": "143771"}
PRICES = {"near": "6", "far": "60"}
"""Of a node's hour: of 2 accelerators, and of 8."""


@pytest.fixture
def fleet() -> Iterator[Engines]:
    with engines() as found:
        yield found


@pytest.fixture
def pools(operator: Operated) -> Iterator[None]:
    """Two pools with prices: the service belongs on the cheap one."""
    made = [
        operator.client.create(
            {
                "apiVersion": API,
                "kind": "AcceleratorPool",
                "metadata": {"name": name},
                "spec": {
                    "nodeSelector": {LABEL: name},
                    "price": {"perNodeHour": price, "currency": "USD"},
                },
            }
        )
        for name, price in PRICES.items()
    ]
    yield
    for each in made:
        operator.client.delete(each)


def further(operator: Operated, service: Object) -> list[Object]:
    """Deployments beyond the first."""
    found = operator.client.list("apps/v1", "Deployment", service["metadata"]["namespace"])
    return [
        each
        for each in found
        if OVERFLOW in each["metadata"].get("labels", {})
        and "deletionTimestamp" not in each["metadata"]
    ]


def numbers(operator: Operated, service: Object) -> tuple[int, list[int]]:
    """Replicas of the first pool, and of each further one."""
    there = [each["spec"]["replicas"] for each in further(operator, service)]
    return replicas(operator, service), there


def pods(operator: Operated, service: Object) -> list[Object]:
    found = operator.client.list("v1", "Pod", service["metadata"]["namespace"])
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def ready_on(operator: Operated, service: Object) -> list[str]:
    """Pools of the replicas that are ready."""
    return sorted(
        pod["spec"]["nodeSelector"][LABEL]
        for pod in pods(operator, service)
        if any(
            each["type"] == "Ready" and each["status"] == "True"
            for each in pod["status"].get("conditions") or []
        )
    )


def in_service(operator: Operated, service: Object) -> int:
    """Ready replicas whose labels the one Service selects."""
    metadata = service["metadata"]
    found = operator.client.get("v1", "Service", metadata["name"], metadata["namespace"])
    assert found is not None
    selector = found["spec"]["selector"].items()
    return sum(selector <= pod["metadata"]["labels"].items() for pod in pods(operator, service))


def told(operator: Operated, service: Object) -> list[tuple[str, int]]:
    """Pools of the status."""
    listed = scaling(operator, service).get("pools", [])
    return [(each["pool"], each["replicas"]) for each in listed]


def test_a_full_pool_overflows_into_the_next_and_the_dear_ones_go_first(
    operator: Operated, namespace: str, nodes: NodeFactory, fleet: Engines, pools: None
) -> None:
    patient = replace(operator, timeout_seconds=WAIT_SECONDS)
    nodes([h100_node(2, {LABEL: "near"}), h100_node(8, {LABEL: "far", **H200})])
    operator.await_idle(2)
    fleet.requests_per_second = 1.0
    wanted = chat(namespace, fleet, maxReplicas=4)
    wanted["spec"]["placement"] = {"pools": ["near", "far"]}
    wanted["spec"]["accelerators"] = {"perReplica": 1}
    service = operator.client.create(wanted)
    before = operator.wait_condition(service, "MetricsAvailable", "True")
    assert before["status"]["plan"]["pool"] == "near"
    rate = scaling(operator, before)["requestsPerSecondPerReplica"]
    template = operator.deployment_of(service)["spec"]["template"]

    fleet.requests_per_second = 4.5 * rate
    patient.until(lambda: numbers(operator, service) == (2, [2]), "never two on each pool")
    [other] = further(operator, service)
    assert operator.deployment_of(service)["spec"]["template"] == template
    both = ["far", "far", "near", "near"]
    patient.until(lambda: ready_on(operator, service) == both, "never two ready on each pool")
    assert in_service(operator, service) == 4
    patient.until(
        lambda: told(operator, service) == [("near", 2), ("far", 2)], "the status tells no pools"
    )

    operator.process.stop()
    as_known_for_an_hour(operator, service)
    operator.process.start()
    operator.settle()
    assert numbers(operator, service) == (2, [2])
    fleet.requests_per_second = 1.0
    patient.until(lambda: not further(operator, service), "the dear ones never go")
    assert replicas(operator, service) >= 1
    patient.until(
        lambda: set(ready_on(operator, service)) == {"near"}, "pods of the dear pool stay"
    )
    assert operator.look(other) is None
    patient.until(lambda: "ScaledDown" in reasons(operator, service), "it was not told")

    operator.client.delete(service)
    patient.until(lambda: not pods(operator, service), "pods outlive their service")


def test_a_number_that_others_set_is_spread_over_pools(
    operator: Operated, namespace: str, nodes: NodeFactory, fleet: Engines, pools: None
) -> None:
    patient = replace(operator, timeout_seconds=WAIT_SECONDS)
    nodes([h100_node(2, {LABEL: "near"}), h100_node(8, {LABEL: "far", **H200})])
    operator.await_idle(2)
    wanted = chat(namespace, fleet, mode="External")
    wanted["spec"] |= {
        "placement": {"pools": ["near", "far"]},
        "accelerators": {"perReplica": 1},
        "replicas": 1,
    }
    service = operator.client.create(wanted)
    operator.wait_condition(service, "Placed", "True")
    patient.until(lambda: ready_on(operator, service) == ["near"], "the first never runs")
    before = pods(operator, service)[0]["metadata"]["uid"]
    operator.client.patch(service, {"spec": {"replicas": 4}})
    both = ["far", "far", "near", "near"]
    patient.until(lambda: ready_on(operator, service) == both, "never two ready on each pool")
    assert before in {each["metadata"]["uid"] for each in pods(operator, service)}
    patient.until(
        lambda: (operator.look(service) or {})["status"]["replicas"] == 4,
        "the scale subresource does not tell all of them",
    )
    operator.client.patch(service, {"spec": {"replicas": 1}})
    patient.until(lambda: ready_on(operator, service) == ["near"], "the others never go")
    assert further(operator, service) == []
