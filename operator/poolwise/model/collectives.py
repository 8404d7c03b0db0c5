"""How long devices take to talk: an alpha-beta model with a ramp, inside a domain and across.

One stage over n ranks moves ``x`` bytes through each rank's link of bandwidth B::

    T = launch + steps * hop + y + sqrt(y * ramp),    y = x / B

``x`` follows from the buffer by the convention of nccl-tests: ``2(n-1)/n`` for all-reduce,
``(n-1)/n`` for all-gather, reduce-scatter and all-to-all, 1 for send/receive. The square root is
what makes a plain alpha-beta fit miss by a third between 1 and 64 MB: bandwidth rises slowly with
size. All constants are fitted on measured tables (``bench/fit/collectives.py``).

A group that leaves its scale-up domain does reduce-scatter inside, all-reduce across on its share
of the node's network cards, and all-gather inside; NCCL pipelines these, so the slower transfer
counts and the latencies add.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Interconnect, Machine

PHASE = "collectives"
FULL_SPEED_RANKS = 8
"""Beyond this many ranks the measured tables end, and the bandwidth fraction stays."""


class Operation(enum.StrEnum):
    """Collectives that training and serving use."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"
    SEND_RECEIVE = "send_receive"


class Implementation(enum.StrEnum):
    """Who moves the bytes."""

    NCCL = "nccl"
    GRAPH = "graph"
    """One-shot kernels captured in a graph, as serving engines have for small all-reduces."""
    EAGER = "eager"
    """The same kernels, launched one by one by the host."""


class Fabric(enum.StrEnum):
    """Kinds of link that behave alike."""

    SWITCHED = "switched"
    MESH = "mesh"
    PCIE = "pcie"
    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Group:
    """Ranks that talk to each other."""

    ranks: int
    inside: int
    """Of these, how many share one scale-up domain."""

    @property
    def domains(self) -> int:
        """Scale-up domains that the group spans."""
        return math.ceil(self.ranks / self.inside)


@dataclass(frozen=True, slots=True)
class _Link:
    """Constants of one fabric under one implementation, for a given number of ranks."""

    launch_seconds: float
    hop_seconds: float
    ramp_seconds: float
    bytes_per_second: float

    def transfer_seconds(self, wire_bytes: float) -> float:
        wire_seconds = wire_bytes / self.bytes_per_second
        return wire_seconds + math.sqrt(wire_seconds * self.ramp_seconds)


def group(ranks: int, stride: int, interconnect: Interconnect) -> Group:
    """A group whose neighbours are ``stride`` devices apart (1: neighbours share a domain)."""
    domain = max(interconnect.domain_accelerators, 1)
    return Group(ranks, max(1, min(ranks, domain // stride)))


def fabric(interconnect: Interconnect) -> Fabric:
    """The kind of link inside a domain."""
    if not interconnect.is_switched:
        return Fabric.PCIE
    return Fabric.SWITCHED if interconnect.peer_bytes_per_second is None else Fabric.MESH


def collective_seconds(
    operation: Operation,
    size_bytes: float,
    ranks: Group,
    machine: Machine,
    calibration: Calibration,
    implementation: Implementation = Implementation.NCCL,
) -> float:
    """Time of one collective on a buffer of ``size_bytes``; 0 for a group of one.

    The buffer is a rank's whole input (all-reduce, reduce-scatter, all-to-all) or whole output
    (all-gather), as nccl-tests counts it.
    """
    if ranks.ranks <= 1:
        return 0.0
    latency, transfer = 0.0, 0.0
    if ranks.inside > 1:
        link = _inside(ranks.inside, machine, calibration, implementation)
        steps = _steps(operation, ranks.inside)
        latency = link.launch_seconds + steps * link.hop_seconds
        transfer = link.transfer_seconds(size_bytes * wire_factor(operation, ranks.inside))
    if ranks.domains > 1:
        link = _across(ranks, machine, calibration)
        hops = _network_steps(operation, ranks.domains)
        latency += link.launch_seconds + hops * link.hop_seconds
        crossing = size_bytes * _crossing_factor(operation, ranks)
        transfer = max(transfer, link.transfer_seconds(crossing))
    return latency + transfer


def wire_factor(operation: Operation, ranks: int) -> float:
    """Bytes through each rank's link per byte of buffer (nccl-tests' busbw convention)."""
    if operation is Operation.SEND_RECEIVE:
        return 1.0
    return (2.0 if operation is Operation.ALL_REDUCE else 1.0) * (ranks - 1) / ranks


def _steps(operation: Operation, ranks: int) -> float:
    """Hops of a ring; an all-to-all sends to everybody at once."""
    if operation is Operation.ALL_REDUCE:
        return 2.0 * (ranks - 1)
    return 1.0 if operation in (Operation.ALL_TO_ALL, Operation.SEND_RECEIVE) else ranks - 1.0


def _network_steps(operation: Operation, domains: int) -> float:
    """Hops of a tree, which libraries take across many nodes."""
    if operation is Operation.SEND_RECEIVE:
        return 1.0
    return (2.0 if operation is Operation.ALL_REDUCE else 1.0) * math.log2(domains)


def _crossing_factor(operation: Operation, ranks: Group) -> float:
    """Bytes through one rank's share of the network cards per byte of buffer."""
    if operation is Operation.SEND_RECEIVE:
        return 1.0
    if operation is Operation.ALL_TO_ALL:
        return (ranks.ranks - ranks.inside) / ranks.ranks
    return wire_factor(operation, ranks.domains) / ranks.inside


def _inside(
    ranks: int, machine: Machine, calibration: Calibration, implementation: Implementation
) -> _Link:
    interconnect = machine.interconnect
    peer = interconnect.peer_bytes_per_second
    nominal = interconnect.intra_node_bytes_per_second
    if peer is not None:
        nominal = min(nominal, (ranks - 1) * peer)
    kind = _kind(implementation, machine, calibration)
    link = _link(kind, nominal, machine, calibration)
    doublings = math.log2(min(ranks, FULL_SPEED_RANKS) / 2)
    growth = calibration.value(PHASE, "growth_per_doubling", machine.device, kind)
    return _Link(
        link.launch_seconds,
        link.hop_seconds,
        link.ramp_seconds,
        link.bytes_per_second * growth**doublings,
    )


def _kind(implementation: Implementation, machine: Machine, calibration: Calibration) -> str:
    """Name of the constants; where nobody measured the implementation, the library's."""
    kind = fabric(machine.interconnect)
    wanted = f"{kind}/{implementation}"
    measured = calibration.find(PHASE, "launch_seconds", machine.device, wanted)
    return wanted if measured else f"{kind}/{Implementation.NCCL}"


def _across(ranks: Group, machine: Machine, calibration: Calibration) -> _Link:
    """The network, shared by all devices of a node whatever group they talk in."""
    interconnect = machine.interconnect
    sharing = max(interconnect.accelerators_per_node, 1)
    share = interconnect.inter_node_bytes_per_second / sharing
    return _link(Fabric.NETWORK, share, machine, calibration)


def _link(kind: str, nominal: float, machine: Machine, calibration: Calibration) -> _Link:
    def constant(term: str) -> float:
        return calibration.value(PHASE, term, machine.device, kind)

    return _Link(
        launch_seconds=constant("launch_seconds"),
        hop_seconds=constant("hop_seconds"),
        ramp_seconds=constant("ramp_seconds"),
        bytes_per_second=nominal * constant("bandwidth_fraction"),
    )
