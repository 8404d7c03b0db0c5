"""Devices that several pods share by time-slicing, MPS, or partitions that nobody models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from poolwise.plan.nodes.labels import AMD_PARTITION_KEY

GKE_STRATEGY_KEY = "cloud.google.com/gke-gpu-sharing-strategy"
NO_STRATEGY = "none"
"""Of devices that are not shared, where all labels are of one time."""
GKE_CLIENTS_KEY = "cloud.google.com/gke-max-shared-clients-per-gpu"


@dataclass(frozen=True, slots=True)
class Sharing:
    """How a device appears several times."""

    replicas: int
    """Times that one physical device is advertised."""
    words: str


def sharing(resource: str, labels: Mapping[str, str]) -> Sharing | None:
    """How the devices behind a resource are shared; None: each is one pod's alone."""
    return _by_nvidia(resource, labels) or _by_gke(labels) or _by_amd(labels)


def _by_nvidia(resource: str, labels: Mapping[str, str]) -> Sharing | None:
    prefix = resource.removesuffix(".shared")
    replicas = _count(labels.get(f"{prefix}.replicas", ""))
    is_renamed = resource.endswith(".shared")
    is_marked = labels.get(f"{prefix}.product", "").endswith("-SHARED")
    if replicas < 2 and not (is_renamed or is_marked):
        return None
    strategy = labels.get(f"{prefix}.sharing-strategy", "time-slicing")
    if strategy == NO_STRATEGY:
        by_label = f"{prefix}.product" if is_marked else f"{prefix}.replicas"
        told_by = f"the name {resource}" if is_renamed else f"label {by_label}"
        strategy = f"{told_by} says so, though {prefix}.sharing-strategy is {strategy}"
    return Sharing(replicas, _words(strategy, replicas))


def _by_gke(labels: Mapping[str, str]) -> Sharing | None:
    strategy = labels.get(GKE_STRATEGY_KEY)
    if not strategy:
        return None
    clients = _count(labels.get(GKE_CLIENTS_KEY, ""))
    return Sharing(clients, _words(strategy, clients))


def is_partitioned(labels: Mapping[str, str]) -> bool:
    """Whether AMD devices appear as several each."""
    mode = labels.get(AMD_PARTITION_KEY, "")
    return bool(mode) and not mode.lower().startswith("spx")


def _by_amd(labels: Mapping[str, str]) -> Sharing | None:
    if not is_partitioned(labels):
        return None
    mode = labels[AMD_PARTITION_KEY]
    parts = {"dpx": 2, "tpx": 3, "qpx": 4, "cpx": 8}.get(mode.lower().partition("_")[0], 1)
    return Sharing(parts, f"partitions of mode {mode}, {parts} of each device")


def _words(strategy: str, times: int) -> str:
    """How often a device is advertised is told where a label tells it."""
    return f"{strategy}, each device advertised {times} times" if times > 1 else strategy


def _count(digits: str) -> int:
    return max(1, int(digits)) if digits.isdecimal() else 1
