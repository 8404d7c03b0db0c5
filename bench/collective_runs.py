"""Rows of ``collectives_measured`` as an operation among a group on a machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bench.tables import Row, number, whole
from bench.training_runs import PLENTY
from poolwise.model.collectives import Group, Implementation, Operation
from poolwise.model.hardware import Interconnect, Machine
from poolwise.plan.pools.machines import device
from poolwise.tables import AcceleratorRow, Tables

OPERATIONS = {
    "all_reduce": Operation.ALL_REDUCE,
    "all_gather": Operation.ALL_GATHER,
    "reduce_scatter": Operation.REDUCE_SCATTER,
    "alltoall": Operation.ALL_TO_ALL,
}
IMPLEMENTATIONS = {
    "vLLM_custom_graph": Implementation.GRAPH,
    "TRTLLM": Implementation.GRAPH,
    "vLLM_custom_eager": Implementation.EAGER,
}
NETWORK_BYTES_PER_SECOND = {
    "RoCE 4 NICs, 1 GPU per node used": 8 * 50e9,
    "4x ConnectX-7 RoCE per node": 200e9,
    "NVLink5 intra + IB/RoCE inter": 400e9,
}
"""Per node, where the source names the network. The first pins its one device to one card of
50 GB/s, which is the share that a device of eight has here."""


@dataclass(frozen=True, slots=True)
class Collective:
    """One measured collective."""

    row: Row
    operation: Operation
    size_bytes: float
    members: Group
    machine: Machine
    implementation: Implementation
    seconds: float

    @property
    def group(self) -> str:
        """Family of near-identical rows."""
        return self.row["group"]

    @property
    def is_fit_for_fitting(self) -> bool:
        """Left out: eager PyTorch timings, which add the host's; unstated networks; bridges."""
        return (
            self.row["mode"] != "torch"
            and "pairs" not in self.row["interconnect"]
            and (self.members.domains == 1 or self.row["interconnect"] in NETWORK_BYTES_PER_SECOND)
        )


def collectives(rows: Iterable[Row], tables: Tables) -> Iterator[Collective]:
    """Rows on a known accelerator."""
    for row in rows:
        accelerator = tables.accelerators.find(row["gpu"])
        ranks, nodes = whole(row, "n_gpus"), whole(row, "n_nodes") or 1
        size, microseconds = number(row, "size_bytes"), number(row, "time_us")
        if accelerator is None or ranks is None or size is None or microseconds is None:
            continue
        yield Collective(
            row=row,
            operation=OPERATIONS[row["collective"]],
            size_bytes=size,
            members=Group(ranks, max(1, ranks // nodes)),
            machine=_machine(row, accelerator),
            implementation=IMPLEMENTATIONS.get(row["mode"], Implementation.NCCL),
            seconds=microseconds / 1e6,
        )


def _machine(row: Row, accelerator: AcceleratorRow) -> Machine:
    per_node = whole(row, "gpus_per_node") or accelerator.accelerators_per_node
    return Machine(
        device(accelerator),
        Interconnect(
            accelerators_per_node=per_node,
            intra_node_bytes_per_second=accelerator.link_bytes_per_second,
            inter_node_bytes_per_second=NETWORK_BYTES_PER_SECOND.get(row["interconnect"], 100e9),
            domain_accelerators=accelerator.domain_accelerators or per_node,
            is_switched=accelerator.link_is_switched,
            peer_bytes_per_second=accelerator.peer_bytes_per_second,
        ),
        PLENTY,
    )
