"""Services and machines that the serving tests share, from the shipped tables."""

from __future__ import annotations

from poolwise import tables
from poolwise.model import presets
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Host, Interconnect, Machine
from poolwise.model.serving.capacity import capacity
from poolwise.model.serving.replica import replica
from poolwise.model.shapes import Model
from poolwise.model.work import Metric, ServingLayout, ServingWork, Target, Tokens
from poolwise.plan.nodes.machines import cpu_device, device

TABLES = tables.load()
CALIBRATION = Calibration(TABLES.efficiencies)

CHAT = (Target(Metric.TTFT, 99, 0.5), Target(Metric.ITL, 99, 0.05))


def model(name: str) -> Model:
    """A shipped model."""
    row = TABLES.model(name)
    assert row is not None, name
    return presets.model(row)


def machine(name: str) -> Machine:
    """A node of a shipped accelerator, with 400 GB/s of network."""
    row = TABLES.accelerator(name)
    assert row is not None, name
    link = Interconnect(
        accelerators_per_node=row.accelerators_per_node,
        intra_node_bytes_per_second=row.link_bytes_per_second,
        inter_node_bytes_per_second=400e9,
        domain_accelerators=row.domain_accelerators or row.accelerators_per_node,
        is_switched=row.link_is_switched,
        peer_bytes_per_second=row.peer_bytes_per_second,
    )
    return Machine(device(row), link, Host(96, 1e12, 10e9, 100e9, 5e9))


def cpu_node(name: str, cores: float, memory_bytes: float) -> Machine:
    """A node of a shipped CPU, two allocatable cores (threads) for each physical one."""
    row = TABLES.cpu(name)
    assert row is not None, name
    return Machine(
        cpu_device(row, cores, memory_bytes),
        Interconnect(0, 0.0, 10e9, 0, False),
        Host(2 * cores, memory_bytes, 1e9, 10e9, 1e9),
    )


def service(
    name: str | Model,
    prompt: tuple[float, float],
    output: tuple[float, float],
    targets: tuple[Target, ...] = (),
    arrival_dispersion: float = 1.5,
) -> ServingWork:
    """A service by the median and 95th percentile of its lengths."""
    return ServingWork(
        model=model(name) if isinstance(name, str) else name,
        requests_per_second=None,
        input_tokens=Tokens(*prompt),
        output_tokens=Tokens(*output),
        prefix_hit_fraction=0.0,
        max_model_tokens=None,
        targets=targets,
        arrival_dispersion=arrival_dispersion,
    )


def capacity_requests_per_second(work: ServingWork, layout: ServingLayout, where: Machine) -> float:
    """The highest rate of one replica at which every target holds."""
    return capacity(replica(work, layout, where, CALIBRATION), work.targets).requests_per_second
