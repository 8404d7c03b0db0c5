"""Machines for tests: a device of the shipped table on an ordinary node."""

from poolwise import tables
from poolwise.model.calibration import shipped
from poolwise.model.hardware import Host, Interconnect, Machine
from poolwise.model.presets import model as preset_model
from poolwise.model.shapes import Model
from poolwise.plan.nodes.machines import device

TABLES = tables.load()
CALIBRATION = shipped(TABLES)


def model(name: str) -> Model:
    row = TABLES.model(name)
    assert row is not None
    return preset_model(row)


def machine(name, per_node=8, network_bytes_per_second=400e9, cores=96.0):
    row = TABLES.accelerator(name)
    assert row is not None
    link = Interconnect(
        accelerators_per_node=per_node,
        intra_node_bytes_per_second=row.link_bytes_per_second,
        inter_node_bytes_per_second=network_bytes_per_second,
        domain_accelerators=per_node,
        is_switched=row.link_is_switched,
    )
    host = Host(cores, 2e12, 10e9, 100e9, 5e9)
    return Machine(device(row), link, host)
