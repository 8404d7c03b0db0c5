"""What is told of pools as metrics: their statuses, and the hardware as the planner knows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from poolwise.cluster import metric_table as table
from poolwise.handlers.samples import Sample, conditions, present
from poolwise.model.hardware import Device
from poolwise.plan.observed import Object
from poolwise.plan.pool import Pool
from poolwise.plan.reading import Told, mapping, number


def pool_samples(objects: Iterable[Object], pools: Iterable[Pool]) -> Iterator[Sample]:
    """All samples of all pools that have a status."""
    devices = {pool.name: pool.machine.device for pool in pools if pool.machine}
    for document in objects:
        name, status = str(document["metadata"]["name"]), mapping(document, "status")
        if status:
            yield from _of_status(name, status)
            yield from _of_device(name, devices.get(name))


def _of_status(name: str, status: Told) -> Iterator[Sample]:
    told = str(status.get("accelerator") or ""), str(status.get("role") or "")
    yield table.POOL_INFO, (name, *told), 1
    for condition, value in conditions(status).items():
        yield table.POOL_CONDITION, (name, condition), value
    states = (("usable", "nodes"), ("unusable", "unusableNodes"))
    for state, field in states:
        yield from present(table.POOL_NODES, (name, state), number(status, field))
    for state, field in (("all", "capacity"), ("free", "free")):
        yield from present(table.POOL_ACCELERATORS, (name, state), number(status, field))
    ridges = mapping(status, "ridgePoints")
    for precision in ridges:
        yield from present(table.POOL_RIDGE, (name, precision), number(ridges, precision))
    price = mapping(status, "price")
    where = name, str(price.get("currency") or "")
    yield from present(table.POOL_PRICE, where, number(price, "perNodeHour"))
    yield from present(table.POOL_IDLE_NODES, (name,), number(status, "idleNodeCount"))
    yield from present(table.POOL_IDLE_COST, where, number(status, "idleCostPerHour"))


def _of_device(name: str, device: Device | None) -> Iterator[Sample]:
    if device is None:
        return
    peaks: Mapping[str, float] = device.peak_flops_per_second
    for precision, peak in peaks.items():
        yield table.POOL_PEAK, (name, precision), peak
    yield table.POOL_BANDWIDTH, (name,), device.memory_bandwidth_bytes_per_second
    yield table.POOL_MEMORY, (name,), device.memory_bytes
