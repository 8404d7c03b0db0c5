"""A machine as the formulas see it: one device, the links between devices, and the host.

The values are built by :mod:`poolwise.plan` from node labels, the shipped tables and what a
person declared in an AcceleratorPool; the formulas never ask where a figure came from.
Units: bytes, bytes per second, FLOP/s (dense), seconds, watts. Links are one way.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace


class Resource(enum.StrEnum):
    """What can hold a workload back; also the labels of ``bottleneck`` (api.md)."""

    COMPUTE = "Compute"
    MEMORY_BANDWIDTH = "MemoryBandwidth"
    MEMORY_CAPACITY = "MemoryCapacity"
    INTERCONNECT = "Interconnect"
    INPUT = "Input"
    HOST = "Host"
    LATENCY = "Latency"
    """Fixed costs that no resource above shortens; the label when none of them gains 0.5 %."""


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator, one MIG slice, or all CPU cores of one node taken together."""

    name: str
    """The accelerator's name in the shipped table, or the CPU's."""
    is_cpu: bool
    family: str
    """Calibration family, e.g. ``hopper``, ``ada``, ``cdna3``, ``cpu``."""
    memory_bytes: float
    """What the driver exposes (less than the label on the box)."""
    memory_bandwidth_bytes_per_second: float
    peak_flops_per_second: Mapping[str, float] = field(hash=False)
    """Dense peak by format of the arithmetic: fp32 tf32 bf16 fp16 fp8 int8 fp4. Absent: no unit."""
    power_watts: float
    matmul_flops_per_second: Mapping[str, float] = field(hash=False)
    """Measured ceiling of a large matrix product by format, where anybody measured one."""
    cores: float = 0.0
    """CPU devices only: physical cores behind the figures above."""
    inference_only_reason: str | None = None
    """Why nothing is trained on it, as a clause after its name; None: training runs on it."""
    released_year: float | None = None
    """When the first machines could be had, e.g. 2022.8; None: not known."""


@dataclass(frozen=True, slots=True)
class Interconnect:
    """Links between the devices of one pool."""

    accelerators_per_node: int
    intra_node_bytes_per_second: float
    """Per accelerator, one way, inside the scale-up domain."""
    inter_node_bytes_per_second: float
    """Per node, one way, all network cards together."""
    domain_accelerators: int
    """Accelerators joined by the intra link: a node's, or 72 on an NVL72 rack."""
    is_switched: bool
    """NVLink, xGMI or ICI (true) against PCIe through the host (false)."""
    peer_bytes_per_second: float | None = None
    """To one peer, where the fabric is a mesh or torus and that is less; None: the whole link."""


@dataclass(frozen=True, slots=True)
class Host:
    """What feeds the devices of one node."""

    cores: float
    memory_bytes: float
    storage_read_bytes_per_second: float
    """Per node."""
    shared_read_bytes_per_second: float
    """All nodes of the pool together."""
    model_load_bytes_per_second: float
    """Per node, weights from their store into the devices."""
    dispatch_speed: float = 1.0
    """Speed of the host's own work per step (launches, scheduling, sampling); 1 is as fitted."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Everything the formulas know of a pool: device, links, host."""

    device: Device
    interconnect: Interconnect
    host: Host

    def with_more(self, resource: Resource, factor: float) -> Machine:
        """The same machine with ``factor`` times as much of one resource (for elasticities).

        ``INPUT`` scales what feeds samples: storage and CPU decode. ``LATENCY`` is what remains
        and cannot be bought.
        """
        device, link, host = self.device, self.interconnect, self.host
        match resource:
            case Resource.COMPUTE:
                device = replace(
                    device,
                    peak_flops_per_second=_scaled(device.peak_flops_per_second, factor),
                    matmul_flops_per_second=_scaled(device.matmul_flops_per_second, factor),
                    # Else the clock would be capped for want of power, and nothing gained.
                    power_watts=device.power_watts * factor,
                )
            case Resource.MEMORY_BANDWIDTH:
                faster = device.memory_bandwidth_bytes_per_second * factor
                device = replace(device, memory_bandwidth_bytes_per_second=faster)
            case Resource.MEMORY_CAPACITY:
                device = replace(device, memory_bytes=device.memory_bytes * factor)
            case Resource.INTERCONNECT:
                link = _faster(link, factor)
            case Resource.INPUT:
                host = replace(
                    host,
                    # The cores of a CPU device compute: more of them is COMPUTE.
                    cores=host.cores * (1.0 if device.is_cpu else factor),
                    storage_read_bytes_per_second=host.storage_read_bytes_per_second * factor,
                    shared_read_bytes_per_second=host.shared_read_bytes_per_second * factor,
                )
            case Resource.HOST:
                host = replace(host, dispatch_speed=host.dispatch_speed * factor)
            case Resource.LATENCY:
                pass
        return Machine(device, link, host)


def _faster(link: Interconnect, factor: float) -> Interconnect:
    peer = link.peer_bytes_per_second
    return replace(
        link,
        intra_node_bytes_per_second=link.intra_node_bytes_per_second * factor,
        inter_node_bytes_per_second=link.inter_node_bytes_per_second * factor,
        peer_bytes_per_second=None if peer is None else peer * factor,
    )


def _scaled(figures: Mapping[str, float], factor: float) -> dict[str, float]:
    return {name: value * factor for name, value in figures.items()}
