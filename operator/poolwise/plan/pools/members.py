"""Which nodes make up which pool, and what hardware the pool is taken to have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from poolwise.api.acceleratorpool import AcceleratorPoolSpec
from poolwise.model.hardware import Device
from poolwise.plan.nodes.facts import Facts
from poolwise.plan.nodes.hardware import DeviceOffer
from poolwise.plan.nodes.labels import DEFAULT_CAPACITY_TYPE, LEAST_ASSURED
from poolwise.plan.nodes.machines import cpu_device, device, mig_slice
from poolwise.plan.pool import Condition
from poolwise.tables import AcceleratorRow, MachineTypeRow

THREADS_PER_CORE = {"amd64": 2, "arm64": 1}
"""Hardware threads, which Kubernetes counts, per physical core where the machine type is unknown:
x86 servers run two almost everywhere, Arm servers have one."""


@dataclass(frozen=True, slots=True)
class Member:
    """One node of a pool with what it offers there."""

    node: Facts
    offer: DeviceOffer


@dataclass(frozen=True, slots=True)
class Draft:
    """A pool before its figures are computed."""

    name: str
    is_discovered: bool
    spec: AcceleratorPoolSpec
    """What a person declared; of a discovered pool only the selector."""
    members: tuple[Member, ...]
    """By name of the node."""
    offer: DeviceOffer
    """What every usable member offers; ``problem`` says why that is not known."""
    node_expressions: tuple[Mapping[str, object], ...] = ()
    conditions: tuple[Condition, ...] = ()
    promised_machine: MachineTypeRow | None = None
    """Machine type that the selector of a pool without nodes names."""

    @property
    def is_cpu(self) -> bool:
        """Whether its work runs on CPU cores."""
        return self.offer.cpu is not None

    @property
    def machine(self) -> MachineTypeRow | None:
        """The slowest network among the machine types of its nodes, where the table has them.

        A machine type that has another accelerator than the pool says nothing of it.
        """
        seen = [self.promised_machine, *(member.node.machine for member in self.members)]
        rows = {machine.name: machine for machine in seen if machine}
        own = self.offer.accelerator
        fitting = [row for row in rows.values() if own is None or row.accelerator == own.name]
        return min(fitting, key=lambda row: (row.network_bytes_per_second, row.name), default=None)


def is_same_hardware(one: DeviceOffer, other: DeviceOffer) -> bool:
    """Whether two offers are devices of one kind that pods ask for by one name."""
    is_known = one.problem is None and other.problem is None
    return is_known and (one.product, one.resource) == (other.product, other.resource)


def usual_count(offers: Sequence[DeviceOffer]) -> int:
    """Devices of most nodes when all work; of two counts equally common the smaller."""
    counts = [offer.nominal_count for offer in offers]
    return min(set(counts), key=lambda count: (-counts.count(count), count), default=0)


def capacity_type(draft: Draft) -> str:
    """Reserved, OnDemand or Spot: the spec's, else the least assured of its nodes' terms, since a
    gang stops with its first node, and a workload may land on any."""
    bought = {member.node.capacity_type for member in draft.members}
    least = next((each for each in LEAST_ASSURED if each in bought), DEFAULT_CAPACITY_TYPE)
    return draft.spec.capacity_type or least


def usual_capacity_type(draft: Draft) -> str:
    """The spec's, else what most nodes are bought as: one node more must not make pods anew."""
    bought = [member.node.capacity_type for member in draft.members]
    most = max(sorted(set(bought)), key=bought.count, default=DEFAULT_CAPACITY_TYPE)
    return draft.spec.capacity_type or most


def pool_device(draft: Draft) -> Device | None:
    """The device behind a pool's offer; None while it is not known."""
    offer = draft.offer
    if offer.problem is not None:
        return None
    if offer.accelerator is not None:
        return _accelerator(offer, offer.accelerator)
    return _cpu(draft) if offer.cpu is not None else None


def physical_cores(node: Facts, architecture: str) -> float:
    """Cores of a node behind the hardware threads that Kubernetes counts."""
    by_machine = node.machine.threads_per_core if node.machine else None
    return node.vcpus / (by_machine or THREADS_PER_CORE[architecture])


def weakest_cpu(offers: Iterable[DeviceOffer]) -> DeviceOffer | None:
    """The slowest CPU, core for core, of those offered; None: no offer has a known one."""
    known = [offer for offer in offers if offer.cpu is not None and offer.problem is None]
    return min(known, key=_strength, default=None)


def _strength(offer: DeviceOffer) -> tuple[float, float, str]:
    cpu = offer.cpu
    assert cpu is not None, "only offers with a CPU are compared"
    per_core = cpu.bf16_flops_per_second / cpu.cores_per_socket
    return per_core, cpu.memory_bandwidth_per_core, cpu.name


def _accelerator(offer: DeviceOffer, row: AcceleratorRow) -> Device:
    if offer.profile:
        return mig_slice(row, offer.profile, offer.slice_memory_bytes)
    return device(row)


def _cpu(draft: Draft) -> Device | None:
    row = draft.offer.cpu
    if row is None:
        return None
    sizes = [(physical_cores(m.node, row.architecture), m.node.memory_bytes) for m in draft.members]
    told = [(cores, memory) for cores, memory in sizes if cores and memory]
    if not told:
        return None
    cores, memory = map(min, zip(*told, strict=True))
    return cpu_device(row, cores, memory)
