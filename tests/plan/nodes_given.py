"""Raw Nodes as short as a test can say them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from poolwise import tables
from poolwise.plan.pool import Pool
from poolwise.plan.pools.gathering import pools
from poolwise.plan.pools.selectors import Expression
from poolwise.settings import Settings

TABLES = tables.load()

H100 = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.family": "hopper",
    "nvidia.com/gpu.compute.major": "9",
    "nvidia.com/gpu.compute.minor": "0",
}


def node(
    name: str = "node",
    labels: Mapping[str, str] | None = None,
    gpus: int | None = None,
    resources: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A Ready Linux node with 64 cores, 256 GiB and what else it is given."""
    devices = {} if gpus is None else {"nvidia.com/gpu": str(gpus)}
    every = {"cpu": "64", "memory": "256Gi", "pods": "110", **devices, **(resources or {})}
    own = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**own, "kubernetes.io/arch": "amd64", **(labels or {})},
        },
        "spec": dict(spec or {}),
        "status": {
            "capacity": dict(every),
            "allocatable": dict(every),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def declared(name: str, created: str = "2026-01-01T00:00:00Z", **spec: Any) -> dict[str, Any]:
    """An AcceleratorPool that a person made."""
    return {
        "apiVersion": "poolwise.dev/v1alpha1",
        "kind": "AcceleratorPool",
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": spec,
    }


def all_pools(nodes: Any, given: Any = (), **settings: Any) -> tuple[Pool, ...]:
    """Pools by the shipped tables."""
    return pools(nodes, given, TABLES, Settings(**settings))


def only_pool(nodes: Any, given: Any = (), **settings: Any) -> Pool:
    """The one pool that there must be."""
    (pool,) = all_pools(nodes, given, **settings)
    return pool


def condition(pool: Pool, kind: str) -> tuple[bool | None, str, str]:
    """Status, reason and message of a condition that must be there."""
    (found,) = (each for each in pool.conditions if each.type == kind)
    return found.status, found.reason, found.message


def admits(expressions: Sequence[Expression], labels: Mapping[str, str]) -> bool:
    """Whether Kubernetes takes a node with these labels to match expressions of a pool."""
    return all(_matches(expression, labels) for expression in expressions)


def _matches(expression: Expression, labels: Mapping[str, str]) -> bool:
    key, values = str(expression["key"]), expression.get("values")
    if expression["operator"] == "DoesNotExist":
        return key not in labels
    return isinstance(values, list) and labels.get(key) in values
