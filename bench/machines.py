"""Machines that measurements were made on, as far as their sources tell."""

from __future__ import annotations

import functools
import re

from poolwise.model.hardware import Host, Interconnect, Machine
from poolwise.plan.nodes.machines import device
from poolwise.tables import AcceleratorRow

PLENTY = Host(1e6, 1e15, 1e15, 1e15, 1e15)
"""Benchmarks feed synthetic or cached samples: input never limits them."""

NETWORK_BYTES_PER_SECOND = {
    "P100-SXM2-16GB": 50e9,
    "V100-SXM2-16GB": 50e9,
    "V100-SXM2-32GB": 50e9,
    "A100-SXM4-40GB": 200e9,
    "A100-SXM4-80GB": 200e9,
    "A800-SXM4-80GB": 200e9,
    "GH200-96GB": 100e9,
    "GH200-141GB": 100e9,
    "B300-SXM": 800e9,
    "GB200-NVL72": 200e9,
    "GB300-NVL72": 400e9,
    "MI250": 100e9,
    "MI250X": 100e9,
    "MI250X-GCD": 200e9,
    "MI300A": 100e9,
    "Gaudi2": 300e9,
    "Gaudi3": 600e9,
    "Inferentia2": 12.5e9,
    "Trainium1": 100e9,
    "TPU v5e": 50e9,
    "TPU v5p": 50e9,
    "TPU v6e": 50e9,
}
"""Per node of as many as the table of accelerators has, where the source does not say: the usual
reference design of that machine. DGX-1 has four cards of 100 Gb/s; a GH200 one of 400; Frontier one
of 200 for each MI250X, El Capitan for each MI300A; a Gaudi three of its 24 ports; the others are
their clouds'. All recalled."""
USUAL_NETWORK_BYTES_PER_SECOND = 400e9
SLOW_NETWORK_BYTES_PER_SECOND = 25e9
"""Machines without a switched fabric."""


def machine(
    accelerator: AcceleratorRow,
    network_bytes_per_second: float,
    host: Host = PLENTY,
    per_node: int | None = None,
) -> Machine:
    """The usual machine of an accelerator with this network of a node; ``per_node`` if stated."""
    inside = per_node or accelerator.accelerators_per_node
    return Machine(
        device(accelerator),
        Interconnect(
            accelerators_per_node=inside,
            intra_node_bytes_per_second=accelerator.link_bytes_per_second,
            inter_node_bytes_per_second=network_bytes_per_second,
            domain_accelerators=accelerator.domain_accelerators or inside,
            is_switched=accelerator.link_is_switched,
            peer_bytes_per_second=accelerator.peer_bytes_per_second,
        ),
        host,
    )


def network_bytes_per_second(words: str, accelerator: AcceleratorRow) -> float:
    """Of a node, from the source's words, else of the usual machine."""
    network = words.rpartition("|")[2]
    for pattern, factor in _RATES:
        match = re.search(pattern, network)
        if match:
            gigabits = functools.reduce(lambda a, b: a * float(b), match.groups(), 1.0)
            return (
                gigabits
                * 1e9
                / 8
                * (accelerator.accelerators_per_node if factor == "device" else 1)
            )
    if not accelerator.link_is_switched:
        return SLOW_NETWORK_BYTES_PER_SECOND
    return NETWORK_BYTES_PER_SECOND.get(accelerator.name, USUAL_NETWORK_BYTES_PER_SECOND)


_RATES = (
    (r"(\d+) Gb/s/GPU", "device"),
    (r"(\d+) Gb(?:ps|/s).* node", "node"),
    (r"(\d+)x [^|]*?(\d+) ?Gb/s", "node"),
)
"""``8x ConnectX-7 IB NDR 400 Gb/s`` and the like, as a node's or a device's rate."""
