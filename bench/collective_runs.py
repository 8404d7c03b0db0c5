"""Rows of ``collectives_measured`` as an operation among a group on a machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from bench.machines import machine, network_bytes_per_second
from bench.tables import Row, figure, number, whole
from poolwise.model.collectives import (
    Group,
    Implementation,
    Operation,
    collective_seconds,
    predict_collective,
)
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Interconnect, Machine
from poolwise.model.prediction import Interval
from poolwise.tables import AcceleratorRow, Tables
from poolwise.tables.reading import fold

OPERATIONS = {
    "allreduce": Operation.ALL_REDUCE,
    "allgather": Operation.ALL_GATHER,
    "reducescatter": Operation.REDUCE_SCATTER,
    "alltoall": Operation.ALL_TO_ALL,
    "a2a": Operation.ALL_TO_ALL,
    "sendrecv": Operation.SEND_RECEIVE,
    "p2p": Operation.SEND_RECEIVE,
}
"""By folded name."""
IMPLEMENTATIONS = {
    "eager": Implementation.EAGER,
    "graph": Implementation.GRAPH,
    "trtllm": Implementation.TRTLLM,
    "torch": Implementation.TORCH,
}
"""By a part of the mode's name; others are the library."""
ONE_CARD = "1 gpu per node used"
"""Pins its one device to one card."""
NDR_CARD = r"connectx-?7|\bndr\b"
CARD_BYTES_PER_SECOND = {
    r"connectx-?8|\bxdr\b": 100e9,
    NDR_CARD: 50e9,
    r"connectx-?6|\bhdr\b": 25e9,
    r"connectx-?5|\bedr\b": 12.5e9,
}
"""By what a card, or the generation of its InfiniBand, is called."""
_FABRIC = re.compile(r"\b(ib|infiniband|roce|efa)\b")
_CARDS = re.compile(r"(\d+) ?x ?[^|+]*$")
"""In what comes before a card's name."""
UNSTATED_NETWORK_BYTES_PER_SECOND = 12.5e9
"""One 100 Gb/s card per node, as cloud machines have unless their maker says more."""
BRIDGE_BYTES_PER_SECOND = 300e9
"""NVLink bridge between two PCIe cards, one way (A100 and H100: 600 GB/s both ways)."""


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


def collective(row: Row, tables: Tables) -> Collective | str:
    """One row, or why it cannot be predicted."""
    accelerator = tables.accelerators.find(row.get("gpu", ""))
    if accelerator is None:
        return "accelerator is not known"
    operation = OPERATIONS.get(fold(row.get("collective", "")).replace("-", ""))
    if operation is None:
        return "operation is not known"
    ranks, size = whole(row, "n_gpus"), number(row, "size_bytes")
    if ranks is None or not size:
        return "row has no ranks or size"
    members = Group(ranks, max(1, ranks // (whole(row, "n_nodes") or 1)))
    return Collective(
        row=row,
        operation=operation,
        size_bytes=size,
        members=members,
        machine=_machine(row, accelerator, members),
        implementation=_implementation(row.get("mode", "")),
        seconds=(figure(row, "time_us") or 0.0) / 1e6,
    )


def collectives(rows: Iterable[Row], tables: Tables) -> Iterator[Collective]:
    """Rows that can be predicted and were measured."""
    for row in rows:
        found = collective(row, tables)
        if not isinstance(found, str) and found.seconds > 0.0:
            yield found


def predicted_seconds(each: Collective, calibration: Calibration) -> float:
    """The model's answer for one row."""
    return collective_seconds(
        each.operation,
        each.size_bytes,
        each.members,
        each.machine,
        calibration,
        each.implementation,
    )


def predicted(each: Collective, calibration: Calibration) -> Interval:
    """The same with its range."""
    return predict_collective(
        each.operation,
        each.size_bytes,
        each.members,
        each.machine,
        calibration,
        each.implementation,
    )


def _implementation(mode: str) -> Implementation:
    told = (each for part, each in IMPLEMENTATIONS.items() if part in mode)
    return next(told, Implementation.NCCL)


def _machine(row: Row, accelerator: AcceleratorRow, members: Group) -> Machine:
    network = row.get("interconnect", "")
    found = machine(
        accelerator,
        _network_bytes_per_second(network, accelerator),
        per_node=whole(row, "gpus_per_node"),
    )
    links = found.interconnect
    if members.domains > 1:
        # Devices of a node that are not in the group are idle, and leave it all cards.
        links = replace(links, accelerators_per_node=members.inside)
    if "pairs" in network:
        links = _bridged(links, members.ranks)
    return replace(found, interconnect=links)


def _network_bytes_per_second(words: str, accelerator: AcceleratorRow) -> float:
    """Of a node: its cards where they are named, one for each accelerator unless they are counted;
    else the usual ones of its machine where a fabric is named."""
    if ONE_CARD in words:
        return CARD_BYTES_PER_SECOND[NDR_CARD]
    for name, bytes_per_second in CARD_BYTES_PER_SECOND.items():
        card = re.search(name, words)
        if card:
            told = _CARDS.search(words[: card.start()])
            cards = int(told[1]) if told else accelerator.accelerators_per_node
            return cards * bytes_per_second
    if _FABRIC.search(words):
        return network_bytes_per_second("", accelerator)
    return UNSTATED_NETWORK_BYTES_PER_SECOND


def _bridged(links: Interconnect, ranks: int) -> Interconnect:
    """PCIe cards with a bridge between each two: a ring over more crosses PCIe once each way."""
    slowest = BRIDGE_BYTES_PER_SECOND if ranks <= 2 else links.intra_node_bytes_per_second
    return replace(
        links,
        intra_node_bytes_per_second=slowest,
        is_switched=True,
        peer_bytes_per_second=slowest,
    )
