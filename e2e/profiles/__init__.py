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
_HEALTHY = ("MemoryPressure", "DiskPressure", "PIDPressure")

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
    labels = {key: _nth(value, index) for key, value in group.get("labels", {}).items()}
    own = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    spec = {
        "providerID": group.get("providerID", "kwok://{index}").format(index=name),
        "taints": group.get("taints", []),
        "unschedulable": group.get("unschedulable", False),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": KWOK_ANNOTATION,
            "labels": dict(sorted({**own, "kubernetes.io/arch": "amd64", **labels}.items())),
        },
        "spec": {key: value for key, value in spec.items() if value},
        "status": _status(group, name, labels),
    }


def _nth(value: Any, index: int) -> str:
    chosen = value[index % len(value)] if isinstance(value, list) else value
    return str(chosen).format(index=index)


def _status(group: Document, name: str, labels: Document) -> Document:
    capacity = {"pods": "110", "ephemeral-storage": "1Ti", **group["capacity"]}
    return {
        "capacity": capacity,
        "allocatable": {**capacity, **group.get("allocatable", {})},
        "addresses": [{"type": "Hostname", "address": name}],
        "conditions": [
            *(_condition(kind, "False", f"KubeletHas{kind}No") for kind in _HEALTHY),
            _condition(
                "Ready",
                *(
                    ("True", "KubeletReady")
                    if group.get("ready", True)
                    else ("Unknown", "NodeStatusUnknown")
                ),
            ),
        ],
        "nodeInfo": {
            "architecture": labels.get("kubernetes.io/arch", "amd64"),
            "operatingSystem": "linux",
            "kubeletVersion": "v1.36.3",
            "containerRuntimeVersion": "containerd://2.2.0",
            **dict.fromkeys(
                (
                    "bootID",
                    "kernelVersion",
                    "kubeProxyVersion",
                    "machineID",
                    "osImage",
                    "systemUUID",
                ),
                "",
            ),
        },
    }


def _condition(kind: str, status: str, reason: str) -> Document:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "lastHeartbeatTime": BOOT_TIME,
        "lastTransitionTime": BOOT_TIME,
    }
