"""The operator on a real API server: what others do to what it keeps, a number or a status."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.controlplane.client import Object
from tests.apiserver.conftest import NodeFactory
from tests.apiserver.operated import (
    API,
    FREQUENT_LOOKS,
    TIMEOUT_SECONDS,
    Operated,
    chat_service,
    child,
    condition,
    h100_node,
    training_job,
)

pytestmark = pytest.mark.apiserver

SETTINGS = FREQUENT_LOOKS

LABEL = "app.kubernetes.io/managed-by"


def hpa(namespace: str) -> Object:
    """On the Deployment; without metrics it leaves the number alone."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "theirs", "namespace": namespace},
        "spec": {"scaleTargetRef": target, "maxReplicas": 8},
    }


def plan_of(resource: Object) -> dict[str, Any]:
    found: dict[str, Any] = resource.get("status", {}).get("plan", {})
    return found


def free(operator: Operated) -> list[int]:
    pools = operator.client.list(API, "AcceleratorPool")
    return [pool["status"]["free"] for pool in pools if pool.get("status", {}).get("nodes")]


def _is_followed(operator: Operated, service: Object, count: int, price: float) -> None:
    operator.client.patch(operator.deployment_of(service), {"spec": {"replicas": count}})
    seen = operator.client.wait_for(
        service, lambda seen: plan_of(seen).get("replicas") == count, TIMEOUT_SECONDS
    )
    assert plan_of(seen)["costPerHour"] == pytest.approx(count * price)
    operator.until(lambda: free(operator) == [8 - count], "others are told another room")
    operator.settle()
    assert operator.deployment_of(service)["spec"]["replicas"] == count


def test_what_another_autoscaler_sets_is_held_and_paid(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    service = operator.client.create(chat_service(namespace, "chat"))
    before = operator.wait_condition(service, "Ready", "True")
    price = plan_of(before)["costPerHour"]
    operator.await_told(service)
    operator.client.create(hpa(namespace))
    for count in (5, 2):
        _is_followed(operator, service, count, price)
    assert operator.writes_for(3) == []


@pytest.mark.parametrize("label", [LABEL, "poolwise.dev/owner", "poolwise.dev/pool"])
def test_a_job_without_our_label_is_labelled_again_and_runs_on(
    operator: Operated, namespace: str, nodes: NodeFactory, label: str
) -> None:
    """Without the one that it is watched by, its watch tells of the Job as of one that is gone, and
    its pods hold all there is."""
    nodes([h100_node()])
    run = operator.client.create(training_job(namespace, "run", 8))
    operator.wait_condition(run, "PodsReady", "True")
    operator.await_told(run)
    operator.settle()
    before = operator.look(child(run, "batch/v1", "Job")) or {}
    operator.client.patch(before, {"metadata": {"labels": {label: None}}})
    job = operator.client.wait_for(
        before, lambda seen: label in seen["metadata"]["labels"], TIMEOUT_SECONDS
    )
    assert job["metadata"]["uid"] == before["metadata"]["uid"]
    operator.settle()
    assert condition(operator.look(run) or {}, "Placed")["status"] == "True"
    # The first look at its metrics comes when it comes, and is told in the status.
    assert [each for each in operator.writes_for(3) if each.resource == "jobs"] == []


def test_a_status_that_was_wiped_is_whole_again(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    service = operator.client.create(chat_service(namespace, "chat"))
    operator.wait_condition(service, "Ready", "True")
    operator.await_told(service)
    operator.settle()
    before = operator.look(service) or {}
    empty = dict.fromkeys(before["status"])
    operator.client.patch(service, {"status": empty}, "status")
    seen = operator.client.wait_for(
        service, lambda seen: "predicted" in plan_of(seen), TIMEOUT_SECONDS
    )
    for name in ("predicted", "costPerHour", "bottleneck", "replicas", "pool", "shape"):
        assert plan_of(seen)[name] == plan_of(before)[name]
    seen = operator.wait_condition(service, "Ready", "True")
    assert condition(seen, "Planned")["message"] == condition(before, "Planned")["message"]
    assert operator.deployment_of(service)["metadata"]["generation"] == 1
    operator.await_told(service)
    operator.settle()
    assert operator.writes_for(3) == []
