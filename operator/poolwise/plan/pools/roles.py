"""What a pool is best at, from its numbers and never from its name.

Two questions decide. *Can a gang compute here without waiting for its links?* Inside a node,
tensor parallelism of degree t over layers of width h takes as long on links as on arithmetic when
an accelerator gets ``(2/9)(t-1)/h`` bytes per FLOP: 1.9e-4 for t = 8 and h = 8192, a 70B model
(Megatron's four all-reduces of two bytes per activation against 72 h^2 FLOP per token and layer).
Between nodes, gradients and weights in two bytes move 4 bytes per parameter and step against
6 FLOP per parameter and token: 1.0e-5 at 65536 tokens per accelerator and step. *What does memory
bandwidth cost?* Token generation buys bandwidth, so its price is told beside, against the others'.

A pool whose links pass both is for gangs (``Interconnect``); one that passes inside a node but not
between nodes is ``Balanced``; one that passes neither serves single accelerators, where only its
memory bandwidth counts (``MemoryBandwidth``). The role informs people; no placement depends on it.
"""

from __future__ import annotations

import enum
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from poolwise.model.hardware import Device, Machine
from poolwise.plan.pool import Pool
from poolwise.plan.wording import money, three_digits

REFERENCE_HIDDEN = 8192
REFERENCE_TENSOR = 8
REFERENCE_TOKENS = 65_536
"""Per accelerator and optimizer step: 4M tokens on 64 accelerators."""
INTRA_BYTES_PER_FLOP = 2 / 9 * (REFERENCE_TENSOR - 1) / REFERENCE_HIDDEN
INTER_BYTES_PER_FLOP = 4 / (6 * REFERENCE_TOKENS)


class Role(enum.StrEnum):
    """Values of ``status.role``."""

    INTERCONNECT = "Interconnect"
    MEMORY_BANDWIDTH = "MemoryBandwidth"
    BALANCED = "Balanced"
    CPU = "Cpu"


@dataclass(frozen=True, slots=True)
class Links:
    """Bytes per FLOP that one accelerator gets from its links."""

    intra: float
    inter: float

    @property
    def carry_tensor_parallelism(self) -> bool:
        """Whether a 70B model split over 8 accelerators waits no longer than it computes."""
        return self.intra >= INTRA_BYTES_PER_FLOP

    @property
    def carry_data_parallelism(self) -> bool:
        """Whether exchanging gradients takes no longer than computing them."""
        return self.inter >= INTER_BYTES_PER_FLOP


def with_roles(pools: Sequence[Pool]) -> tuple[Pool, ...]:
    """The same pools, each with its role among the others."""
    rates = [rate for pool in pools if (rate := bandwidth_per_dollar(pool)) is not None]
    return tuple(_with_role(pool, rates) for pool in pools)


def links(machine: Machine) -> Links:
    """Bytes per FLOP of dense 16-bit arithmetic, inside a node and between nodes.

    Accelerators without a switch share the host's PCIe when all of them talk: each gets its link
    divided by their number, which is what eight L40S measure (1.4 to 5 GB/s of 32). Where the
    scale-up domain reaches beyond the node, its link also carries the traffic between nodes.
    """
    link, flops = machine.interconnect, _flops_per_second(machine.device)
    sharers = 1 if link.is_switched else max(1, link.accelerators_per_node)
    intra = link.intra_node_bytes_per_second / sharers
    inter = link.inter_node_bytes_per_second / max(1, link.accelerators_per_node)
    if link.domain_accelerators > link.accelerators_per_node:
        inter = max(inter, intra)
    if link.accelerators_per_node < 2:
        intra = inter
    return Links(intra / flops, inter / flops)


def bandwidth_per_dollar(pool: Pool) -> float | None:
    """Bytes per second of accelerator memory per money and hour; None where either is unknown."""
    if pool.machine is None or pool.price is None or pool.is_cpu or not pool.accelerators_per_node:
        return None
    each = pool.machine.device.memory_bandwidth_bytes_per_second
    hourly = pool.price.per_node_hour
    return each * pool.accelerators_per_node / hourly if hourly else None


def _with_role(pool: Pool, rates: Sequence[float]) -> Pool:
    if pool.machine is None:
        return pool
    if pool.is_cpu:
        return replace(pool, role=Role.CPU, role_reason=_cpu_reason(pool.machine.device))
    if pool.is_mig:
        told = ("MIG slices have no link to each other", *_bandwidth_reason(pool, rates))
        return replace(pool, role=Role.MEMORY_BANDWIDTH, role_reason="; ".join(told))
    found = links(pool.machine)
    told = (_link_reason(found), *_bandwidth_reason(pool, rates))
    return replace(pool, role=_role(found), role_reason="; ".join(told))


def _role(found: Links) -> Role:
    if not found.carry_tensor_parallelism:
        return Role.MEMORY_BANDWIDTH
    return Role.INTERCONNECT if found.carry_data_parallelism else Role.BALANCED


def _link_reason(found: Links) -> str:
    return (
        f"links give {_small(found.intra)} bytes per FLOP inside a node (tensor parallelism of a "
        f"70B model needs {_small(INTRA_BYTES_PER_FLOP)}) and {_small(found.inter)} between nodes "
        f"(exchanging gradients needs {_small(INTER_BYTES_PER_FLOP)})"
    )


def _bandwidth_reason(pool: Pool, rates: Sequence[float]) -> Iterable[str]:
    rate = bandwidth_per_dollar(pool)
    if rate is None or pool.price is None:
        return
    hour = f"{money(1, pool.price.currency)}/h"
    others = f", median of the pools {three_digits(statistics.median(rates) / 1e9)}"
    yield f"{three_digits(rate / 1e9)} GB/s of memory for {hour}{others if len(rates) > 1 else ''}"


def _cpu_reason(device: Device) -> str:
    rate = device.memory_bandwidth_bytes_per_second / 1e9
    teraflops = _flops_per_second(device) / 1e12
    return f"CPU cores only: {three_digits(rate)} GB/s, {three_digits(teraflops)} TFLOP/s a node"


def _flops_per_second(device: Device) -> float:
    peaks = device.peak_flops_per_second
    return next(peaks[name] for name in ("bf16", "fp16", "fp32") if name in peaks)


def _small(value: float) -> str:
    return f"{value:.1e}"
