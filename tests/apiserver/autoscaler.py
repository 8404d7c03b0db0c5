"""An autoscaler as tests play it: nodes of a group come when pods wait that they would take.

It decides by what Cluster Autoscaler decides by: pods that the scheduler has called unschedulable,
against the group's template (labels, taints, allocatable), and ranks that keep apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from e2e.controlplane import nodes as fake_nodes
from e2e.controlplane.client import Client, Object
from tests.apiserver.operated import API, h100_node

GPU = "nvidia.com/gpu"


@dataclass
class Group:
    """One group of the cloud: H100 nodes by its label, as many as it may have."""

    name: str
    most: int
    is_in_stock: bool = True
    """Whether the cloud has machines for it."""
    price_per_hour: str = "50"
    nodes: list[Object] = field(default_factory=list)
    taints: tuple[Object, ...] = ()

    @property
    def labels(self) -> dict[str, str]:
        """Of every node, known before there is one."""
        return {"cloud.google.com/gke-nodepool": self.name}

    def pool(self, **spec: object) -> Object:
        """The AcceleratorPool that a person declares for it."""
        return {
            "apiVersion": API,
            "kind": "AcceleratorPool",
            "metadata": {"name": self.name},
            "spec": {
                "nodeSelector": self.labels,
                "accelerator": "H100-SXM5-80GB",
                "maxNodes": self.most,
                "nodeStartup": "4m",
                "price": {"perNodeHour": self.price_per_hour},
                **spec,
            },
        }


class Autoscaler:
    """Adds nodes to groups; removes them all in the end."""

    def __init__(self, client: Client, groups: Iterable[Group]) -> None:
        self._client = client
        self.groups = {group.name: group for group in groups}

    def scale(self) -> int:
        """One round: how many nodes came."""
        nodes, pods = self._client.list("v1", "Node"), self._client.list("v1", "Pod")
        return sum(self._scale(group, nodes, pods) for group in self.groups.values())

    def _scale(self, group: Group, nodes: list[Object], pods: list[Object]) -> int:
        labels = group.labels.items()
        there = {n["metadata"]["name"] for n in nodes if labels <= n["metadata"]["labels"].items()}
        idle = there - {pod["spec"].get("nodeName") for pod in pods}  # for pods not bound yet
        waiting = [pod for pod in pods if _is_unschedulable(pod) and _would_run(pod, group)]
        missing = min(_nodes_for(waiting) - len(idle), group.most - len(there))
        count = max(0, missing) if group.is_in_stock else 0
        made = [self._node(group, len(group.nodes) + index) for index in range(count)]
        group.nodes += fake_nodes.add(self._client, made)
        return count

    def _node(self, group: Group, index: int) -> Object:
        node = h100_node(labels=group.labels, name=f"{group.name}-{index}")
        return {**node, "spec": {"taints": list(group.taints)}}

    def remove(self) -> None:
        """All nodes that it made."""
        fake_nodes.remove(self._client, [n for g in self.groups.values() for n in g.nodes])


def _is_unschedulable(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(
        each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable"
        for each in conditions
    )


def _would_run(pod: Object, group: Group) -> bool:
    """On a node of the template."""
    selector = pod["spec"].get("nodeSelector", {})
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    is_selected = selector.items() <= group.labels.items()
    is_pinned = "requiredDuringSchedulingIgnoredDuringExecution" in affinity
    tolerated = {each.get("key") for each in pod["spec"].get("tolerations", [])}
    return is_selected and not is_pinned and {t["key"] for t in group.taints} <= tolerated


def _nodes_for(pods: list[Object]) -> int:
    """Ranks that must keep apart need one each, others are packed."""
    apart = [pod for pod in pods if _must_be_apart(pod)]
    gpus = sum(_gpus(pod) for pod in pods if pod not in apart)
    return len(apart) + -(-gpus // 8)


def _must_be_apart(pod: Object) -> bool:
    apart = pod["spec"].get("affinity", {}).get("podAntiAffinity", {})
    return "requiredDuringSchedulingIgnoredDuringExecution" in apart


def _gpus(pod: Object) -> int:
    return sum(
        int(each.get("resources", {}).get("limits", {}).get(GPU, 0))
        for each in pod["spec"]["containers"]
    )
