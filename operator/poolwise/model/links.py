"""Links between devices as a few constants each, and how long one collective takes over them.

One stage over n ranks moves ``x`` bytes through each rank's link of bandwidth B::

    T = launch + steps * hop + y + sqrt(y * ramp),    y = x / B

``x`` follows from the buffer by the convention of nccl-tests: ``2(n-1)/n`` for all-reduce,
``(n-1)/n`` for all-gather, reduce-scatter and all-to-all, 1 for send/receive. The square root is
what makes a plain alpha-beta fit miss by a third between 1 and 64 MB: bandwidth rises slowly with
size. Kernels of serving engines may also reduce in one shot, each rank reading all others; the
faster of both counts. A host that launches one by one hides what is shorter than its own time.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from poolwise.model.hardware import Interconnect

LARGEST_MEASURED_RANKS = 8
"""Beyond this many ranks the measured tables end, and the bandwidth fraction stays."""
CHOICE_SHARPNESS = 3.0
"""How sharply the faster of two algorithms is taken: both are near each other where they cross."""
HOST_SHARPNESS = 4.0


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
    TORCH = "torch"
    """The same, launched one by one by PyTorch."""
    GRAPH = "graph"
    """Kernels of a serving engine (vLLM's) for small all-reduces, captured in a graph."""
    TRTLLM = "trtllm"
    """Those of TensorRT-LLM."""
    EAGER = "eager"
    """As ``graph``, launched one by one by the host."""


LAUNCHED_BY_HOST = {
    Implementation.TORCH: Implementation.NCCL,
    Implementation.EAGER: Implementation.GRAPH,
}
"""What these launch."""


class Fabric(enum.StrEnum):
    """Kinds of link that behave alike."""

    SWITCHED = "switched"
    MESH = "mesh"
    PCIE = "pcie"
    NETWORK = "network"


@dataclass(slots=True)  # not frozen: searches make thousands, and freezing takes longer
class Group:
    """Ranks that talk to each other."""

    ranks: int
    inside: int
    """Of these, how many share one scale-up domain."""

    @property
    def domains(self) -> int:
        """Scale-up domains that the group spans."""
        return math.ceil(self.ranks / self.inside)


def group(ranks: int, stride: int, interconnect: Interconnect) -> Group:
    """A group whose neighbours are ``stride`` devices apart (1: neighbours share a domain)."""
    domain = max(interconnect.domain_accelerators, 1)
    return Group(ranks, max(1, min(ranks, domain // stride)))


def fabric(interconnect: Interconnect) -> Fabric:
    """The kind of link inside a domain."""
    if not interconnect.is_switched:
        return Fabric.PCIE
    return Fabric.SWITCHED if interconnect.peer_bytes_per_second is None else Fabric.MESH


@dataclass(slots=True)
class Link:
    """Constants of one fabric under one implementation, for a given number of ranks."""

    launch_seconds: float
    hop_seconds: float
    ramp_seconds: float
    bytes_per_second: float
    shot_seconds: float | None = None
    """Latency per peer of a one-shot reduction; None: there is none."""
    host_seconds: float = 0.0
    """What the host needs to launch it."""

    def latency_seconds(self, operation: Operation, ranks: int) -> float:
        """Before and between the bytes."""
        return self.launch_seconds + steps(operation, ranks) * self.hop_seconds

    def transfer_seconds(self, wire_bytes: float) -> float:
        """The bytes."""
        wire_seconds = wire_bytes / self.bytes_per_second
        return wire_seconds + math.sqrt(wire_seconds * self.ramp_seconds)

    def seconds(self, operation: Operation, size_bytes: float, ranks: int) -> float:
        """One collective among ranks that all share the link."""
        busy = steps(operation, ranks) * self.hop_seconds
        busy += self.transfer_seconds(size_bytes * wire_factor(operation, ranks))
        if self.shot_seconds is not None and operation is Operation.ALL_REDUCE:
            busy = _faster(busy, self._one_shot_seconds(size_bytes, ranks))
        return self._with_host(self.launch_seconds + busy)

    def _one_shot_seconds(self, size_bytes: float, ranks: int) -> float:
        peers = ranks - 1
        return peers * ((self.shot_seconds or 0.0) + size_bytes / self.bytes_per_second)

    def _with_host(self, device_seconds: float) -> float:
        if not self.host_seconds:
            return device_seconds
        power = HOST_SHARPNESS
        return math.pow(device_seconds**power + self.host_seconds**power, 1.0 / power)


def wire_factor(operation: Operation, ranks: int) -> float:
    """Bytes through each rank's link per byte of buffer (nccl-tests' busbw convention)."""
    if operation is Operation.SEND_RECEIVE:
        return 1.0
    return (2.0 if operation is Operation.ALL_REDUCE else 1.0) * (ranks - 1) / ranks


def steps(operation: Operation, ranks: int) -> float:
    """Hops of a ring; an all-to-all sends to everybody at once."""
    if operation is Operation.ALL_REDUCE:
        return 2.0 * (ranks - 1)
    return 1.0 if operation in (Operation.ALL_TO_ALL, Operation.SEND_RECEIVE) else ranks - 1.0


def growth(per_doubling: float, ranks: int) -> float:
    """Bandwidth of a rank among ``ranks`` over that of one of a pair."""
    return math.pow(per_doubling, math.log2(min(ranks, LARGEST_MEASURED_RANKS) / 2))


def sums_in_switch(operation: Operation, ranks: int, is_switched: bool) -> bool:
    """Whether a switch that can add (NVLS) would: among two there is nothing to gain."""
    return is_switched and operation is Operation.ALL_REDUCE and ranks > 2


def _faster(first: float, second: float) -> float:
    power = -CHOICE_SHARPNESS
    return math.pow(math.pow(first, power) + math.pow(second, power), 1.0 / power)
