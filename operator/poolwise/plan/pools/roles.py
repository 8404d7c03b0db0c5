"""What a pool is best at, from its numbers and never from its name.

Two questions decide. *Can a gang compute here without waiting for its links?* Inside a node,
tensor parallelism of degree t over layers of width h takes as long on links as on arithmetic when
an accelerator gets ``(2/9)(t-1)/h`` bytes per FLOP: 1.9e-4 for t = 8 and h = 8192, a 70B model
(Megatron's four all-reduces of two bytes per activation against 72 h^2 FLOP per token and layer).
Between nodes, gradients and weights in two bytes move 4 bytes per parameter and step against
6 FLOP per parameter and token: 1.0e-5 at 65536 tokens per accelerator and step. *Is memory
bandwidth cheap here?* Token generation buys bandwidth: bytes per second and dollar, or per FLOP
where the pool has no price, against the median of the cluster's accelerator pools.

A pool whose links pass inside a node and between nodes is for gangs (``Interconnect``), also where
its bandwidth is cheap, since gangs can run nowhere else. One whose links do not pass inside a node
serves single accelerators: ``MemoryBandwidth`` where its bandwidth is no dearer than the others'.
The rest lead in neither, or carry gangs inside a node only: ``Balanced``. The role informs people;
no placement depends on it.
"""

from __future__ import annotations

import enum
import statistics
from collections.abc import Sequence
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

AS_CHEAP = 0.1
"""Bandwidth that costs so little more than the median is as cheap: less than prices move."""


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
    return tuple(_with_role(pool, pools) for pool in pools)


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


def bandwidth_per_flop(pool: Pool) -> float | None:
    """Bytes of accelerator memory per FLOP of dense 16-bit arithmetic; None while unknown."""
    if pool.machine is None or pool.is_cpu:
        return None
    device = pool.machine.device
    return device.memory_bandwidth_bytes_per_second / _flops_per_second(device)


def _with_role(pool: Pool, pools: Sequence[Pool]) -> Pool:
    if pool.machine is None:
        return pool
    if pool.is_cpu:
        return replace(pool, role=Role.CPU, role_reason=_cpu_reason(pool.machine.device))
    found = Links(0.0, 0.0) if pool.is_mig else links(pool.machine)
    told = "MIG slices have no link to each other" if pool.is_mig else _link_reason(found)
    bandwidth = _bandwidth(pool, pools)
    reason = f"{told}; {_bandwidth_reason(bandwidth)}"
    return replace(pool, role=_role(found, bandwidth), role_reason=reason)


@dataclass(frozen=True, slots=True)
class _Bandwidth:
    """What memory bandwidth costs in a pool, and in the median pool of its cluster."""

    rate: float
    median: float
    is_alone: bool
    currency: str | None
    """Of the money that buys it; None: counted per FLOP, for want of a price."""

    @property
    def is_cheap(self) -> bool:
        return self.rate >= self.median * (1 - AS_CHEAP)


def _bandwidth(pool: Pool, pools: Sequence[Pool]) -> _Bandwidth:
    measure = bandwidth_per_flop if bandwidth_per_dollar(pool) is None else bandwidth_per_dollar
    rates = [rate for each in pools if (rate := measure(each)) is not None]
    own = measure(pool)
    assert own is not None, "an accelerator that is known has a bandwidth and a rate"
    currency = pool.price.currency if pool.price and measure is bandwidth_per_dollar else None
    return _Bandwidth(own, statistics.median(rates), len(rates) == 1, currency)


def _role(found: Links, bandwidth: _Bandwidth) -> Role:
    if found.carry_tensor_parallelism:
        return Role.INTERCONNECT if found.carry_data_parallelism else Role.BALANCED
    return Role.MEMORY_BANDWIDTH if bandwidth.is_cheap else Role.BALANCED


def _link_reason(found: Links) -> str:
    return (
        f"links give {_small(found.intra)} bytes per FLOP inside a node (tensor parallelism of a "
        f"70B model needs {_small(INTRA_BYTES_PER_FLOP)}) and {_small(found.inter)} between nodes "
        f"(exchanging gradients needs {_small(INTER_BYTES_PER_FLOP)})"
    )


def _bandwidth_reason(found: _Bandwidth) -> str:
    if found.currency is None:
        told, median = f"{_small(found.rate)} bytes of memory per FLOP", _small(found.median)
    else:
        hour = f"{money(1, found.currency)}/h"
        told = f"{three_digits(found.rate / 1e9)} GB/s of memory for {hour}"
        median = three_digits(found.median / 1e9)
    return told if found.is_alone else f"{told}, median of the pools {median}"


def _cpu_reason(device: Device) -> str:
    rate = device.memory_bandwidth_bytes_per_second / 1e9
    teraflops = _flops_per_second(device) / 1e12
    return f"CPU cores only: {three_digits(rate)} GB/s, {three_digits(teraflops)} TFLOP/s a node"


def _flops_per_second(device: Device) -> float:
    peaks = device.peak_flops_per_second
    return next(peaks[name] for name in ("bf16", "fp16", "fp32") if name in peaks)


def _small(value: float) -> str:
    return f"{value:.1e}"
