"""What the suite asks of pools, nodes and pods."""

from __future__ import annotations

from e2e.controlplane.client import Client, Object
from e2e.workloads import API

H100 = "H100-SXM5-80GB"
L40S = "L40S"
CPU = "CPU"


def pool_of(client: Client, accelerator: str) -> Object:
    """The pool of that accelerator that takes work (the control plane's node is a pool that takes
    none); raises :class:`LookupError` with those that there are."""
    pools = client.list(API, "AcceleratorPool")
    for pool in pools:
        status = pool.get("status", {})
        if status.get("accelerator") == accelerator and status.get("nodes"):
            return pool
    names = ", ".join(pool["metadata"]["name"] for pool in pools)
    raise LookupError(f"no pool of {accelerator}; there are {names or 'none'}")


def nodes_of(client: Client, accelerator: str) -> set[str]:
    """The names of the nodes whose labels say that they have it."""
    product = {H100: "NVIDIA-H100-80GB-HBM3", L40S: "NVIDIA-L40S"}[accelerator]
    nodes = client.list("v1", "Node", label_selector=f"nvidia.com/gpu.product={product}")
    return {node["metadata"]["name"] for node in nodes}


def places(pods: list[Object]) -> list[str]:
    """Where pods run, sorted; one name for each."""
    return sorted(pod["spec"].get("nodeName", "") for pod in pods)


def restarts(pods: list[Object]) -> dict[str, int]:
    """How often the containers of each pod were restarted, by the pod's uid."""
    return {
        pod["metadata"]["uid"]: sum(
            each["restartCount"] for each in pod["status"].get("containerStatuses", [])
        )
        for pod in pods
    }
