"""The operator on a real API server: what drains of nodes leave of a service."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from e2e.controlplane.client import Object
from tests.apiserver.conftest import Kubectl, NodeFactory
from tests.apiserver.operated import Operated, chat_service, child, h100_node

pytestmark = pytest.mark.apiserver


def pods_of(operator: Operated, service: Object) -> list[Object]:
    """Those that stay, in the order of their names."""
    namespace, name = service["metadata"]["namespace"], service["metadata"]["name"]
    found = operator.client.list("v1", "Pod", namespace)
    ours = [
        each
        for each in found
        if each["metadata"]["labels"].get("poolwise.dev/owner") == name
        and "deletionTimestamp" not in each["metadata"]
    ]
    return sorted(ours, key=lambda each: str(each["metadata"]["name"]))


def cordon(operator: Operated, nodes: Iterable[Object], *, is_over: bool = False) -> None:
    """As ``kubectl drain`` begins: a pod made anew waits for a node, however soon it would run."""
    for node in nodes:
        operator.client.patch(node, {"spec": {"unschedulable": None if is_over else True}})


def evict(kubectl: Kubectl, pod: Object) -> str:
    """As ``kubectl drain`` does it; what the API server answers."""
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    named = {"name": name, "namespace": namespace}
    wish = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": named}
    done = kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(wish))
    return done.stdout + done.stderr


@pytest.mark.parametrize("redundancy", [0, 2])
def test_a_drain_never_takes_all_replicas(
    operator: Operated,
    namespace: str,
    nodes: NodeFactory,
    kubectl: Kubectl,
    redundancy: int,
) -> None:
    added = nodes([h100_node(), h100_node()])
    service = chat_service(namespace, "chat")
    service["spec"]["replicas"] = 2
    service["spec"]["scaling"] = {"mode": "External", "redundancy": redundancy}
    service = operator.client.create(service)
    operator.wait_condition(service, "Ready", "True")
    budget = child(service, "policy/v1", "PodDisruptionBudget")
    operator.client.wait_for(budget, lambda seen: seen["status"].get("currentHealthy") == 2, 20)
    first, second = pods_of(operator, service)
    are_together = first["spec"]["nodeName"] == second["spec"]["nodeName"]
    assert are_together == (not redundancy)
    cordon(operator, added)
    assert "Success" in evict(kubectl, first)
    assert "disruption budget" in evict(kubectl, second)
    cordon(operator, added, is_over=True)
    operator.wait_condition(service, "Ready", "True")
