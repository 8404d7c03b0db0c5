"""How long devices take to talk, inside a domain and across.

:mod:`poolwise.model.links` has the law of one link; here are the links of a machine, with
constants fitted on measured tables (``bench/fit/collectives.py``).

A group that leaves its scale-up domain does reduce-scatter inside, all-reduce across on its share
of the node's network cards, and all-gather inside; NCCL pipelines these, so the slower transfer
counts and the latencies add.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Device, Interconnect, Machine
from poolwise.model.links import (
    LAUNCHED_BY_HOST,
    Fabric,
    Group,
    Implementation,
    Link,
    Operation,
    fabric,
    group,
    growth,
    sums_in_switch,
    wire_factor,
)
from poolwise.model.prediction import Interval

__all__ = [
    "PHASE",
    "Fabric",
    "Group",
    "Implementation",
    "Links",
    "Operation",
    "across_seconds",
    "collective_seconds",
    "fabric",
    "group",
    "inside_link",
    "kind_of",
    "low_confidence_reason",
    "network_share_bytes_per_second",
    "nominal_bytes_per_second",
    "predict_collective",
    "spread_kind",
    "wire_factor",
]  # fmt: skip

PHASE = "collectives"
SPREAD = "seconds"
"""Term whose spread is that of a collective's time; its value is 1."""


def low_confidence_reason(ranks: Group, interconnect: Interconnect) -> str | None:
    """Why a time that leans on this link deserves little trust, as a clause; None: it does not."""
    if ranks.inside > 1 and not interconnect.is_switched:
        return (
            "devices talk over PCIe, where measured rates differ up to 30-fold between hosts "
            "of equal specification"
        )
    return None


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
    return Links(machine, calibration, implementation).seconds(operation, size_bytes, ranks)


class Links:
    """Those of one machine, each made once for all collectives that it takes part in."""

    def __init__(
        self,
        machine: Machine,
        calibration: Calibration,
        implementation: Implementation = Implementation.NCCL,
    ) -> None:
        self.device, self.interconnect = machine.device, machine.interconnect
        self.calibration = calibration
        self._machine, self._implementation = machine, implementation
        self._inside: dict[tuple[Operation, int], Link] = {}
        self._network: Link | None = None

    def seconds(self, operation: Operation, size_bytes: float, ranks: Group) -> float:
        """As :func:`collective_seconds`."""
        if ranks.ranks <= 1:
            return 0.0
        inside = None
        if ranks.inside > 1:
            inside = self._inside_of(operation, ranks)
            if ranks.domains == 1:
                return inside.seconds(operation, size_bytes, ranks.inside)
        return across_seconds(operation, size_bytes, ranks, inside, self._across())

    def hop_seconds(self, size_bytes: float, stages: int, stride: int) -> float:
        """From one stage of a chain to the next, ``stride`` devices on; the mean of all its hops.

        A chain leaves its domain as often as it is longer, whatever most of its hops do.
        """
        hops = stages - 1
        leaving = group(stages, stride, self.interconnect).domains - 1
        across = self.seconds(Operation.SEND_RECEIVE, size_bytes, Group(2, 1)) if leaving else 0.0
        if leaving == hops:
            return across
        inside = self.seconds(Operation.SEND_RECEIVE, size_bytes, Group(2, 2))
        return (leaving * across + (hops - leaving) * inside) / hops

    def _inside_of(self, operation: Operation, ranks: Group) -> Link:
        known = self._inside.get((operation, ranks.inside))
        if known is None:
            given = ranks, self._machine, self.calibration, self._implementation
            known = self._inside[operation, ranks.inside] = inside_link(operation, *given)
        return known

    def _across(self) -> Link:
        if self._network is None:
            self._network = _across(self._machine, self.calibration)
        return self._network


def across_seconds(
    operation: Operation, size_bytes: float, ranks: Group, inside: Link | None, network: Link
) -> float:
    """A collective that leaves its domain."""
    hops = _network_steps(operation, ranks.domains)
    latency = network.launch_seconds + hops * network.hop_seconds
    transfer = network.transfer_seconds(size_bytes * _crossing_factor(operation, ranks))
    if inside is not None:
        latency += inside.latency_seconds(operation, ranks.inside)
        within = size_bytes * wire_factor(operation, ranks.inside)
        transfer = max(transfer, inside.transfer_seconds(within))
    return latency + transfer


def predict_collective(
    operation: Operation,
    size_bytes: float,
    ranks: Group,
    machine: Machine,
    calibration: Calibration,
    implementation: Implementation = Implementation.NCCL,
) -> Interval:
    """As :func:`collective_seconds`, with a range."""
    mid = collective_seconds(operation, size_bytes, ranks, machine, calibration, implementation)
    known = calibration.efficiency(
        PHASE, SPREAD, machine.device, spread_kind(ranks, machine.interconnect, implementation)
    )
    return Interval.around(mid, known.spread)


def spread_kind(ranks: Group, interconnect: Interconnect, implementation: Implementation) -> str:
    """Format of the row that has the spread."""
    if ranks.domains > 1:
        return Fabric.NETWORK
    return f"{_fitted_as(fabric(interconnect))}/{implementation}"


@cache
def kind_of(kind: Fabric, implementation: Implementation, operation: Operation) -> str:
    """Format of a link's constants: the library's differ by operation."""
    launched = LAUNCHED_BY_HOST.get(implementation, implementation)
    name = f"{_fitted_as(kind)}/{launched}"
    return f"{name}/{operation}" if launched is Implementation.NCCL else name


def _fitted_as(kind: Fabric) -> Fabric:
    """A mesh has the constants of a switch: that it is slower to one peer is in its bandwidth."""
    return Fabric.SWITCHED if kind is Fabric.MESH else kind


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


def nominal_bytes_per_second(ranks: int, interconnect: Interconnect) -> float:
    """Of one rank's links to the others; on a mesh those to its peers in the group."""
    peer, link = interconnect.peer_bytes_per_second, interconnect.intra_node_bytes_per_second
    return link if peer is None else min(link, (ranks - 1) * peer)


def network_share_bytes_per_second(interconnect: Interconnect) -> float:
    """Of a node's cards, shared by all its devices whatever group they talk in."""
    return interconnect.inter_node_bytes_per_second / max(interconnect.accelerators_per_node, 1)


def inside_link(
    operation: Operation,
    ranks: Group,
    machine: Machine,
    calibration: Calibration,
    implementation: Implementation = Implementation.NCCL,
) -> Link:
    """The link between the ranks of one domain."""
    links = machine.interconnect
    of_one = _fitted_link(
        operation, ranks.inside, fabric(links), implementation, machine.device, calibration
    )
    bandwidth = nominal_bytes_per_second(ranks.inside, links) * of_one.bytes_per_second
    return Link(
        of_one.launch_seconds,
        of_one.hop_seconds,
        of_one.ramp_seconds,
        bandwidth,
        of_one.shot_seconds,
        of_one.host_seconds,
    )


@lru_cache(maxsize=4096)
def _fitted_link(
    operation: Operation,
    ranks: int,
    where: Fabric,
    implementation: Implementation,
    device: Device,
    calibration: Calibration,
) -> Link:
    """With the share of its nominal bandwidth that it reaches in place of bytes per second."""
    kind = kind_of(where, implementation, operation)
    if calibration.find(PHASE, "launch_seconds", device, kind) is None:
        kind = kind_of(where, Implementation.NCCL, operation)

    def constant(term: str) -> float:
        return calibration.value(PHASE, term, device, kind)

    reached = constant("bandwidth_fraction") * growth(constant("growth_per_doubling"), ranks)
    if sums_in_switch(operation, ranks, where is Fabric.SWITCHED):
        reached *= constant("in_switch_gain")
    shot = calibration.find(PHASE, "shot_seconds", device, kind)
    return Link(
        constant("launch_seconds"),
        constant("hop_seconds"),
        constant("ramp_seconds"),
        reached,
        None if shot is None else shot.value,
        _host_seconds(where, implementation, device, calibration),
    )


def _host_seconds(
    where: Fabric, implementation: Implementation, device: Device, calibration: Calibration
) -> float:
    if implementation not in LAUNCHED_BY_HOST:
        return 0.0
    kind = f"{_fitted_as(where)}/{implementation}"
    return calibration.value(PHASE, "host_seconds", device, kind)


def _across(machine: Machine, calibration: Calibration) -> Link:
    def constant(term: str) -> float:
        return calibration.value(PHASE, term, machine.device, Fabric.NETWORK)

    share = network_share_bytes_per_second(machine.interconnect)
    return Link(
        constant("launch_seconds"),
        constant("hop_seconds"),
        constant("ramp_seconds"),
        share * constant("bandwidth_fraction"),
    )
