"""Cluster profiles: what nodes of real platforms carry, one YAML file each, rendered to Nodes.

Belongs here: labels, taints and resources as each platform sets them, for tests, the demo and
``poolwise plan --nodes``. A group in a file stands for ``count`` nodes; ``{index}`` counts them
from 0, and a list instead of a value gives each node its own, in turn. ``python -m e2e.profiles
NAME`` prints a profile as ``kubectl get nodes -o yaml`` does.

The nodes carry kwok's annotation, so that a kwok controller runs them in a real control plane.
"""

from __future__ import annotations

from importlib import resources
from typing import Any, cast

import yaml

BOOT_TIME = "2026-01-01T00:00:00Z"
KWOK_ANNOTATION = {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"}
_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
)
_READY = ("Ready", "True", "KubeletReady")
_LOST = ("Ready", "Unknown", "NodeStatusUnknown")
_NODE_INFO = {
    "operatingSystem": "linux",
    "kubeletVersion": "v1.36.3",
    "containerRuntimeVersion": "containerd://2.2.0",
    "bootID": "",
    "kernelVersion": "",
    "kubeProxyVersion": "",
    "machineID": "",
    "osImage": "",
    "systemUUID": "",
}

Document = dict[str, Any]


def names() -> list[str]:
    """All profiles, sorted."""
    files = resources.files(__name__).iterdir()
    return sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml"))


def about(name: str) -> str:
    """What a profile shows, in one sentence."""
    return str(_source(name)["about"])


def render(name: str) -> list[Document]:
    """The profile's Nodes, complete and ready to apply."""
    groups = _source(name)["nodes"]
    return [_node(group, index) for group in groups for index in range(group["count"])]


def pools(name: str) -> list[Document]:
    """AcceleratorPools that belong to the profile; most have none."""
    return cast(list[Document], _source(name).get("pools", []))


def _source(name: str) -> Document:
    if name not in names():
        raise KeyError(f"no profile {name!r}; there are {', '.join(names())}")
    text = (resources.files(__name__) / f"{name}.yaml").read_text(encoding="utf-8")
    return cast(Document, yaml.safe_load(text))


def _node(group: Document, index: int) -> Document:
    name = group["name"].format(index=index)
    labels = _labels(group, name, index)
    spec = {
        "providerID": group.get("providerID", "kwok://{name}").format(name=name),
        "taints": group.get("taints", []),
        "unschedulable": group.get("unschedulable", False),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": KWOK_ANNOTATION, "labels": labels},
        "spec": {key: value for key, value in spec.items() if value},
        "status": _status(group, name, labels),
    }


def _labels(group: Document, name: str, index: int) -> dict[str, str]:
    """The group's labels and those that every kubelet sets, sorted."""
    own = {key: _nth(value, index) for key, value in group.get("labels", {}).items()}
    architecture = own.get("kubernetes.io/arch", "amd64")
    common = {
        "beta.kubernetes.io/arch": architecture,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
    }
    return dict(sorted({**common, **own}.items()))


def _nth(value: Any, index: int) -> str:
    chosen = value[index % len(value)] if isinstance(value, list) else value
    return str(chosen).format(index=index)


def _status(group: Document, name: str, labels: Document) -> Document:
    capacity = {"pods": "110", "ephemeral-storage": "1Ti", **group["capacity"]}
    ready = _READY if group.get("ready", True) else _LOST
    return {
        "capacity": capacity,
        "allocatable": {**capacity, **group.get("allocatable", {})},
        "addresses": [{"type": "Hostname", "address": name}],
        "conditions": [_condition(*each) for each in (*_HEALTHY, ready)],
        "nodeInfo": {**_NODE_INFO, "architecture": labels["kubernetes.io/arch"]},
    }


def _condition(kind: str, status: str, reason: str) -> Document:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "lastHeartbeatTime": BOOT_TIME,
        "lastTransitionTime": BOOT_TIME,
    }
