"""Machines, work and layouts that the tests of training share."""

from __future__ import annotations

from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Host, Interconnect, Machine
from poolwise.model.work import TrainingWork
from poolwise.plan.nodes.machines import cpu_device, device
from poolwise.tables import load
from tests.model.shapes import preset

TABLES = load()
CALIBRATION = Calibration(TABLES.efficiencies)
HOST = Host(
    cores=96,
    memory_bytes=1e12,
    storage_read_bytes_per_second=10e9,
    shared_read_bytes_per_second=100e9,
    model_load_bytes_per_second=5e9,
)


def machine(name: str, network_bytes_per_second: float = 400e9) -> Machine:
    """Nodes of a shipped accelerator as they are usually sold."""
    row = TABLES.accelerator(name)
    assert row is not None, name
    link = Interconnect(
        accelerators_per_node=row.accelerators_per_node,
        intra_node_bytes_per_second=row.link_bytes_per_second,
        inter_node_bytes_per_second=network_bytes_per_second,
        domain_accelerators=row.domain_accelerators or row.accelerators_per_node,
        is_switched=row.link_is_switched,
        peer_bytes_per_second=row.peer_bytes_per_second,
    )
    return Machine(device(row), link, HOST)


def cpu_machine(name: str = "EPYC-9R14", cores: float = 96) -> Machine:
    """Nodes without accelerators."""
    row = TABLES.cpu(name)
    assert row is not None, name
    link = Interconnect(0, 0.0, 10e9, 0, False)
    return Machine(cpu_device(row, cores, 384e9), link, HOST)


def pretraining(model: str, batch: int = 1024, sequence: int = 8192) -> TrainingWork:
    """A run in bf16 with AdamW."""
    return TrainingWork(preset(model), batch, sequence, "bf16")
