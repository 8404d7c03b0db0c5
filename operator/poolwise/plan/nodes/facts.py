"""One raw Node object as facts: what it offers, where it stands, and whether it can take work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from poolwise.plan.amounts import PODS
from poolwise.plan.nodes import labels as nodes_labels
from poolwise.plan.nodes.hardware import DeviceOffer, offers
from poolwise.plan.nodes.reading import allocatable, capacity, most_pods, others, resources
from poolwise.plan.observed import Object
from poolwise.plan.reading import mapping, objects, texts
from poolwise.tables import MachineTypeRow, Tables

Taint = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one node."""

    name: str
    labels: Mapping[str, str]
    offers: tuple[DeviceOffer, ...]
    """At least one: its accelerators by kind, or its CPU cores."""
    vcpus: float
    """As the node has them; pods may take a little less."""
    cores: float
    """In Kubernetes' unit, what pods may take."""
    memory_bytes: float
    """What pods may take."""
    others: Mapping[str, float]
    """What pods may take of all else that is no accelerator."""
    most_pods: float
    taints: tuple[Taint, ...]
    resources: frozenset[str]
    machine_type: str | None
    machine: MachineTypeRow | None
    """The machine type's row; None: not in the table."""
    cloud_pool: str | None
    """``key=value`` of the group that the cloud puts it in."""
    capacity_type: str
    capacity_type_evidence: str | None
    """The label that says so; None: assumed."""
    unusable_reason: str | None
    """Why no pod can start on it now, whatever the pod tolerates; None: it can."""

    @property
    def unallocated(self) -> list[str]:
        """Of cores and memory, what pods can take none of: its kubelet has not told yet, say."""
        there = {"cpu": self.cores, "memory": self.memory_bytes}
        return [name for name, amount in there.items() if not amount]


def facts(node: Object, tables: Tables) -> Facts:
    """Facts of one node; nothing in it can make this fail."""
    labels = texts(node, "metadata", "labels")
    typed = nodes_labels.first(labels, nodes_labels.MACHINE_TYPE_KEYS)
    grouped = nodes_labels.first(labels, nodes_labels.CLOUD_POOL_KEYS)
    bought = nodes_labels.capacity_type(labels)
    offered = offers(node, tables)
    return Facts(
        name=str(mapping(node, "metadata").get("name") or ""),
        labels=labels,
        offers=offered,
        vcpus=capacity(node, "cpu"),
        cores=allocatable(node, "cpu"),
        memory_bytes=allocatable(node, "memory"),
        others=others(node, {PODS, *(each.resource for each in offered)}),
        most_pods=most_pods(node),
        taints=objects(node, "spec", "taints"),
        resources=resources(node),
        machine_type=typed[1] if typed else None,
        machine=tables.machine_type(typed[1]) if typed else None,
        cloud_pool="=".join(grouped) if grouped else None,
        capacity_type=bought[0] if bought else nodes_labels.DEFAULT_CAPACITY_TYPE,
        capacity_type_evidence=bought[1] if bought else None,
        unusable_reason=_unusable(node),
    )


def _unusable(node: Object) -> str | None:
    if mapping(node, "metadata").get("deletionTimestamp"):
        return "is being deleted"
    if mapping(node, "spec").get("unschedulable"):
        return "is cordoned"
    system = texts(node, "metadata", "labels").get("kubernetes.io/os", "linux")
    return f"runs {system}" if system != "linux" else _not_ready(node)


def _not_ready(node: Object) -> str | None:
    """A node that does not report is kept away by a taint of the control plane, not by this."""
    for condition in objects(node, "status", "conditions"):
        if condition.get("type") == "Ready" and condition.get("status") != "True":
            reason = str(condition.get("reason") or "")
            return f"is NotReady ({reason})" if reason else "is NotReady"
    return None
