"""Allocation of a production cluster under pressure: Alibaba's openb nodes and whole-GPU pods.

The inflation of the FGD paper (Weng et al., USENIX ATC 2023, section 6): pods are drawn from the
trace until together they ask for 130 % of the cluster's accelerators, come one after another and
stay; a pod that finds no node is lost. What counts is the share of the accelerators that is
allocated in the end.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bench.files import BadInput
from bench.placement.openb_nodes import Machine, Pod
from bench.placement.openb_ours import Ours
from bench.placement.traces import Row, read, text, whole

PRESSURE = 1.3
VARIANTS = ("default", "multigpu50")
"""Of the trace: as it was, and with half of the demand by pods of several accelerators."""
POLICIES = ("ours", "B7")
WHOLE_MILLI = "1000"
NODES = {"sn": text, "model": text, "cpu_milli": whole, "memory_mib": whole, "gpu": whole}
PODS = {"cpu_milli": whole, "memory_mib": whole, "num_gpu": whole, "gpu_milli": text}
Array = npt.NDArray[Any]


class Placer(Protocol):
    """Puts pods on nodes, and keeps count."""

    def place(self, pod: Pod) -> bool:
        """Whether the pod found a node."""
        ...


def machines(folder: Path) -> tuple[Machine, ...]:
    """The nodes with accelerators."""
    rows = read(folder, "alibaba2023_openb_node_list", NODES)
    found = tuple(
        Machine(
            row["sn"],
            row["model"],
            int(row["cpu_milli"]),
            int(row["memory_mib"]),
            int(row["gpu"]),
        )
        for row in rows
        if int(row["gpu"])
    )
    if not found:
        raise BadInput(f"{folder}: no node of alibaba2023_openb_node_list* has an accelerator")
    return found


def pods(folder: Path, variant: str = "default") -> tuple[Pod, ...]:
    """Those of a trace that ask for whole accelerators."""
    prefix = f"alibaba2023_openb_pod_list_{variant}"
    found = tuple(
        Pod(int(row["cpu_milli"]), int(row["memory_mib"]), int(row["num_gpu"]))
        for row in read(folder, prefix, PODS)
        if _is_whole(row)
    )
    if not found:
        raise BadInput(f"{folder}: no pod of {prefix}* asks for whole accelerators")
    return found


def _is_whole(row: Row) -> bool:
    return int(row["num_gpu"]) > 0 and row["gpu_milli"] == WHOLE_MILLI


def stream(found: Sequence[Pod], capacity: int, seed: int) -> list[Pod]:
    """Pods drawn until they ask for 130 % of ``capacity``."""
    draw, wanted, drawn = random.Random(seed), 0, []
    while wanted < PRESSURE * capacity:
        drawn.append(draw.choice(found))
        wanted += drawn[-1].accelerators
    return drawn


def replayed(folder: Path, policy: str, variant: str, seed: int) -> float:
    """Percent of the accelerators that ``ours`` or ``B7`` allocates."""
    nodes, mix = machines(folder), pods(folder, variant)
    capacity = sum(node.accelerators for node in nodes)
    placer = Ours(nodes) if policy == "ours" else Fgd(nodes, mix)
    return allocated_percent(placer, stream(mix, capacity, seed), capacity)


def allocated_percent(placer: Placer, arriving: Sequence[Pod], capacity: int) -> float:
    """Of the cluster's accelerators, once all pods have come."""
    return 100.0 * sum(pod.accelerators for pod in arriving if placer.place(pod)) / capacity


class Fgd:
    """Fragmentation gradient descent, cores and memory included.

    F(node) = free accelerators * share of the pods of the mix that the node cannot take; a pod goes
    where F grows least. Growths are kept for every (kind of pod, node), and only the node that
    changed is worked out again.
    """

    def __init__(self, nodes: Sequence[Machine], mix: Sequence[Pod]) -> None:
        counts = Counter(mix)
        self._kinds = list(counts)
        self._at = {kind: at for at, kind in enumerate(self._kinds)}
        self._needs = np.array([_amounts(kind) for kind in self._kinds])
        self._shares = np.array([counts[kind] for kind in self._kinds]) / len(mix)
        self._left = np.array([_amounts(node) for node in nodes])
        self._growth = np.empty((len(self._kinds), len(nodes)))
        for node in range(len(nodes)):
            self._look_at(node)

    def place(self, pod: Pod) -> bool:
        """On the node whose fragments grow least."""
        kind = self._at[pod]
        node = int(self._growth[kind].argmin())
        if not np.isfinite(self._growth[kind, node]):
            return False
        self._left[node] -= self._needs[kind]
        self._look_at(node)
        return True

    def _look_at(self, node: int) -> None:
        after = self._left[node] - self._needs
        now = self._fragments(self._left[node : node + 1])[0]
        fits = np.all(after >= 0, axis=1)
        self._growth[:, node] = np.where(fits, self._fragments(after) - now, np.inf)

    def _fragments(self, left: Array) -> Array:
        cannot = np.any(self._needs[None, :, :] > left[:, None, :], axis=2)
        return np.asarray(left[:, 2] * (cannot @ self._shares))


def _amounts(each: Pod | Machine) -> tuple[int, int, int]:
    return each.cores_milli, each.memory_mib, each.accelerators
