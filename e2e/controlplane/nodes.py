"""Give a cluster fake nodes, and take them away."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime

from e2e.controlplane.client import POLL_SECONDS, Client, Object

READY_TIMEOUT_SECONDS = 60.0
READY = "e2e.poolwise.dev/ready"
"""The annotation that makes a node NotReady when it says ``"false"``: see ``stages/node.yaml``."""


def add(client: Client, nodes: Iterable[Object]) -> list[Object]:
    """Create nodes as a kubelet does, status included, and return when all are schedulable.

    They are Ready from the start unless their status says otherwise, which saves a write each.

    Raises :class:`TimeoutError` that names those which are not.
    """
    created = client.create_all([_ready(node) for node in nodes])
    names = {node["metadata"]["name"] for node in created}
    deadline = time.monotonic() + READY_TIMEOUT_SECONDS
    while pending := names - {each["metadata"]["name"] for each in _settled(client)}:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(pending)} nodes are not ready, as {min(pending)}")
        time.sleep(POLL_SECONDS)
    return created


def remove(client: Client, nodes: Iterable[Object]) -> None:
    """Delete these nodes; the pods on them go with them."""
    client.delete_all(nodes)


def _ready(node: Object) -> Object:
    """The node as its kubelet would register it, marked as one that has none."""
    metadata = node["metadata"]
    annotations = {"kwok.x-k8s.io/node": "fake", **metadata.get("annotations", {})}
    if any(_is_lost(condition) for condition in node.get("status", {}).get("conditions", [])):
        annotations[READY] = "false"  # else kwok would heal it
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    return {
        **node,
        "metadata": {**metadata, "annotations": annotations},
        "status": {"conditions": [condition | times], **node.get("status", {})},
    }


def _settled(client: Client) -> list[Object]:
    """Nodes whose kubelet has answered and that carry no taint of the node controller any more."""
    return [node for node in client.list("v1", "Node") if _answered(node) and not _tainted(node)]


def _answered(node: Object) -> bool:
    conditions = node["status"].get("conditions", [])
    return any(condition["type"] == "Ready" for condition in conditions)


def _is_lost(condition: Object) -> bool:
    return bool(condition["type"] == "Ready" and condition["status"] != "True")


def _tainted(node: Object) -> bool:
    not_ready = node["metadata"].get("annotations", {}).get(READY) == "false"
    taints = (taint["key"] for taint in node["spec"].get("taints", []))
    return not not_ready and "node.kubernetes.io/not-ready" in taints
