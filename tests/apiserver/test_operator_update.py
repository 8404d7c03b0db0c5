"""The operator on a real API server: an update of a service that goes on, and one that cannot."""

from __future__ import annotations

import pytest

from tests.apiserver.conftest import NodeFactory
from tests.apiserver.operated import Operated, chat_service, condition, h100_node

pytestmark = pytest.mark.apiserver


def test_an_update_that_cannot_be_pulled_is_told_while_the_old_pods_serve(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    service = operator.client.create(chat_service(namespace, "chat"))
    operator.wait_condition(service, "Ready", "True")
    broken = [{"name": "FAKE_WAITING", "value": "ImagePullBackOff"}]
    operator.client.patch(service, {"spec": {"run": {"env": broken}}})
    operator.wait_condition(service, "Stalled", "True", "ImagePullFailed")
    seen = operator.wait_message(service, "PodsReady", "still of the spec before: 1 of 2 pods")
    assert seen["status"]["readyReplicas"] == 1
    assert condition(seen, "Ready")["reason"] == "ImagePullFailed"
    operator.settle()
    operator.client.patch(service, {"spec": {"run": {"env": []}}})
    operator.wait_condition(service, "Ready", "True", "Running")
    seen = operator.wait_condition(service, "Reconciling", "False")
    assert condition(seen, "Stalled")["status"] == "False"
