"""Values: a node as Poolwise sees it, and the pool it belongs to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from poolwise.model.hardware import Machine
from poolwise.plan.amounts import Told

CPU = "CPU"
"""The ``accelerator`` of a pool without any."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a pool, with what its pods may take (not: what is free)."""

    name: str
    labels: Mapping[str, str]
    accelerators: int
    """Physical devices (or MIG slices of the pool's profile) that the node allocates."""
    cores: float
    memory_bytes: float
    unusable_reason: str | None = None
    """cordoned, NotReady, being deleted, or a taint that nobody tolerates; None: usable."""
    is_to_come: bool = False
    """It stands for a node that an autoscaler may add; see :mod:`poolwise.plan.provisioning`."""
    others: Told = field(default_factory=dict)
    """All else that it allocates."""
    most_pods: float = math.inf
    """That it takes at a time, whoever they are of."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A metav1.Condition without its time: that is the shell's to keep."""

    type: str
    status: bool | None
    """None is ``Unknown``."""
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Price:
    """What one node costs."""

    per_node_hour: float
    currency: str
    source: str
    """``spec.price`` or the shipped table with its date."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes that are alike, and what is known of them."""

    name: str
    is_discovered: bool
    """False when a person declared it."""
    accelerator: str | None
    """Name in the shipped table, ``CPU``, or None while unknown."""
    resource: str | None
    """Extended resource that pods ask for, e.g. ``nvidia.com/gpu``; None for CPU pools."""
    machine: Machine | None
    """None while the hardware is unknown: such a pool gets no work."""
    nodes: tuple[Node, ...]
    accelerators_per_node: int
    node_selector: Mapping[str, str]
    """Labels that select exactly this pool's nodes, together with ``node_expressions``."""
    tolerations: tuple[Mapping[str, Any], ...]
    price: Price | None
    capacity_type: str
    """Reserved | OnDemand | Spot"""
    role: str | None
    """Interconnect | MemoryBandwidth | Balanced | Cpu"""
    role_reason: str = ""
    ridge_points: Mapping[str, float] = field(default_factory=dict)
    """FLOP per byte by format."""
    topology_keys: tuple[str, ...] = ()
    """Node labels of the fabric's levels, nearest first."""
    link_level: str = ""
    """The level whose domains the accelerators' own link joins beyond the node (multi-node NVLink,
    NeuronLink, ICI); empty: the link ends at the node, or no label tells."""
    hosts_per_slice: int = 1
    """Nodes that run together or not at all, as the hosts of a TPU slice do."""
    allowed_namespaces: tuple[str, ...] = ()
    max_nodes: int | None = None
    node_startup_seconds: float | None = None
    is_mig: bool = False
    """Slices are accelerators of their own, for one-accelerator services only."""
    node_expressions: tuple[Mapping[str, Any], ...] = ()
    """matchExpressions of a required node affinity where labels alone let other nodes in."""
    unusable_reason: str | None = None
    """Why the pool gets no work at all (shared devices, unknown hardware); None: it may."""
    price_problem: str | None = None
    """Why a price that is known cannot be compared (another currency); None: nothing is amiss."""
    conditions: tuple[Condition, ...] = ()
    discovered: Mapping[str, Any] = field(default_factory=dict)
    """What the labels said, for ``status.discovered``."""
    growth_problem: str | None = None
    """Why no node comes that work could be placed on; None: nothing is known against it."""
    awaited_nodes: int = 0
    """Nodes that are not there yet and that placed work waits for."""
    taken_over_by: str = ""
    """Of a pool that is gone (:mod:`poolwise.plan.history.succession`): who has its nodes now."""

    @property
    def usable_nodes(self) -> tuple[Node, ...]:
        """Nodes that can take new pods."""
        return tuple(node for node in self.nodes if node.unusable_reason is None)

    @property
    def slice_accelerators(self) -> int:
        """That run together or not at all: those of a slice of several hosts; else 1."""
        per_node = max(self.accelerators_per_node, 1)
        return self.hosts_per_slice * per_node if self.hosts_per_slice > 1 else 1

    def nodes_of(self, accelerators: int) -> int:
        """That a replica with so many takes; one where the pool has none left that would tell."""
        per_node = self.accelerators_per_node
        return math.ceil(accelerators / per_node) if 0 < per_node < accelerators else 1

    def in_whole_slices(self, accelerators: int) -> int:
        """The least that runs of at least so many."""
        return math.ceil(accelerators / self.slice_accelerators) * self.slice_accelerators

    def startup_seconds(self, usual_seconds: float) -> float:
        """Until a new node is there; the usual time where nobody told this pool's."""
        told = self.node_startup_seconds
        return usual_seconds if told is None else told

    @property
    def tells_devices(self) -> bool:
        """Whether it is known what pods ask for here: no longer where a person's pool names no
        accelerator and its last node went."""
        return self.resource is not None or self.is_cpu

    @property
    def is_cpu(self) -> bool:
        """Whether replicas here run on CPU cores."""
        return self.accelerator == CPU
