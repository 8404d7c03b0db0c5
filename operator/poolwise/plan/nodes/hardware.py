"""What a node offers to pods: whole accelerators, MIG slices, shared devices, or CPU cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from poolwise.errors import InvalidInput
from poolwise.plan.nodes import labels as nodes_labels
from poolwise.plan.nodes.claims import (
    HardwareProblem,
    HardwareReason,
    LabelClaim,
    memory_bytes,
    mig_profile,
    narrow,
    product_claims,
    property_claims,
)
from poolwise.plan.nodes.devices import (
    MIG_RESOURCE_PREFIX,
    devices,
    unlisted_device,
    vendor_resource,
)
from poolwise.plan.nodes.machines import mig_slice
from poolwise.plan.nodes.reading import allocatable, capacity
from poolwise.plan.nodes.sharing import is_partitioned, sharing
from poolwise.plan.observed import Object
from poolwise.plan.reading import texts
from poolwise.plan.wording import MIB
from poolwise.tables import AcceleratorRow, CpuRow, Tables

MOST_DEVICES = 4096
"""Of one node, slices and shares of devices included."""


@dataclass(frozen=True, slots=True)
class DeviceOffer:
    """Devices of one kind on one node."""

    resource: str | None
    """Extended resource that pods ask for; None: CPU cores."""
    product: str
    """Name in the table, ``<name>-MIG-<profile>``, a CPU's name, or what a label says instead."""
    count: int = 0
    """Physical devices or slices that can be allocated now."""
    nominal_count: int = 0
    """The same when all of them work and their plugin runs."""
    accelerator: AcceleratorRow | None = None
    profile: str | None = None
    """MIG profile of a slice."""
    slice_memory_bytes: float | None = None
    """As its label says; None: not labelled."""
    cpu: CpuRow | None = None
    is_estimated: bool = False
    """The CPU is not known, and the weakest of its architecture stands in."""
    sharing: str | None = None
    """How several pods share one device, in words; None: they do not."""
    problem: HardwareProblem | None = None
    """Why the hardware is not known."""
    evidence: str = ""
    """The label or machine type that named the hardware."""


def offers(node: Object, tables: Tables) -> tuple[DeviceOffer, ...]:
    """Everything that a node offers; CPU cores only where it has no accelerator at all."""
    return tuple(map(_believed, _told(node, tables)))


def _believed(offer: DeviceOffer) -> DeviceOffer:
    """A kubelet tells of its own node whatever it likes, and counts are gone through one by one."""
    told = max(offer.count, offer.nominal_count)
    if told <= MOST_DEVICES or offer.problem is not None:
        return offer
    text = f"the node tells of {told:g} {offer.resource}, and none has more than {MOST_DEVICES}"
    problem = HardwareProblem(HardwareReason.UNKNOWN_HARDWARE, text)
    return replace(offer, count=0, nominal_count=0, accelerator=None, problem=problem)


def _told(node: Object, tables: Tables) -> tuple[DeviceOffer, ...]:
    labels = texts(node, "metadata", "labels")
    known = devices(node, tables)
    if known:
        return tuple(_offer(node, name, known, labels, tables) for name in known)
    claims = list(product_claims(labels, tables))
    if any(claim.is_of_a_device for claim in claims):
        return (_unplugged(claims, labels, tables),)
    unlisted = unlisted_device(node, tables)
    if unlisted:
        return (_unlisted(node, unlisted),)
    return (cpu_offer(node, labels, tables),)


def stated_count(labels: Mapping[str, str], tables: Tables) -> int:
    """Physical devices of the node as labels or its machine type say; 0 where nothing does."""
    digits = [labels.get(key, "") for key in nodes_labels.COUNT_KEYS]
    typed = nodes_labels.first(labels, nodes_labels.MACHINE_TYPE_KEYS)
    machine = tables.machine_type(typed[1]) if typed else None
    by_machine = (machine.accelerators or 0) if machine else 0
    return max([by_machine, *(int(each) for each in digits if each.isdecimal())])


def cpu_offer(node: Object, labels: Mapping[str, str], tables: Tables) -> DeviceOffer:
    """The cores of a node: as Feature Discovery read them, as its machine type has them, or else
    the weakest known CPU of the architecture."""
    architecture = _architecture(node, labels)
    row, evidence = _known_cpu(labels, tables)
    if row is None:
        weakest = tables.cpus.weakest(architecture)
        unknown = HardwareProblem(
            HardwareReason.UNKNOWN_HARDWARE, f"no CPU of architecture {architecture!r} is known"
        )
        return DeviceOffer(
            resource=None,
            product=architecture or "cpu",
            cpu=weakest,
            is_estimated=weakest is not None,
            problem=None if weakest else unknown,
        )
    conflict = f"{evidence} means {row.name} ({row.architecture}), but label kubernetes.io/arch"
    return DeviceOffer(
        resource=None,
        product=row.name,
        cpu=row,
        problem=None
        if architecture in ("", row.architecture)
        else HardwareProblem(HardwareReason.CONFLICTING_LABELS, f"{conflict} is {architecture}"),
        evidence=evidence,
    )


def _offer(
    node: Object, resource: str, beside: list[str], labels: Mapping[str, str], tables: Tables
) -> DeviceOffer:
    profile, shared = _profile(resource, labels), sharing(resource, labels)
    claims = _claims(resource, beside, labels, tables, is_cut=_is_cut(labels))
    device = narrow(claims, tables) if claims else _unnamed(resource, labels)
    replicas = shared.replicas if shared else 1
    total = int(capacity(node, resource)) // replicas
    is_whole = profile is None and len(beside) == 1
    offer = DeviceOffer(
        resource=resource,
        product=_product(device, profile, labels),
        count=int(allocatable(node, resource)) // replicas,
        nominal_count=max(total, stated_count(labels, tables)) if is_whole else total,
        profile=profile,
        slice_memory_bytes=_slice_memory_bytes(resource, labels) if profile else None,
        sharing=shared.words if shared else None,
        evidence=claims[0].text if claims else "",
    )
    return _identified(offer, device)


def _unplugged(claims: list[LabelClaim], labels: Mapping[str, str], tables: Tables) -> DeviceOffer:
    """Devices that labels promise and no plugin advertises."""
    device = narrow([*claims, *property_claims(labels, tables, _is_cut(labels))], tables)
    is_known = isinstance(device, AcceleratorRow)
    offer = DeviceOffer(
        resource=device.resource if isinstance(device, AcceleratorRow) else None,
        product=_product(device, None, labels),
        nominal_count=max(1, stated_count(labels, tables)) if is_known else 0,
        evidence=claims[0].text,
    )
    return _identified(offer, device)


def _unlisted(node: Object, resource: str) -> DeviceOffer:
    """An accelerator that no table lists: its node is no CPU node, and nothing is known of it."""
    text = f"the node advertises {resource}, an accelerator that the shipped table does not list"
    return DeviceOffer(
        resource=resource,
        product=resource,
        count=int(allocatable(node, resource)),
        nominal_count=int(capacity(node, resource)),
        problem=HardwareProblem(HardwareReason.UNKNOWN_HARDWARE, text),
    )


def _identified(offer: DeviceOffer, device: AcceleratorRow | HardwareProblem) -> DeviceOffer:
    if isinstance(device, HardwareProblem):
        return replace(offer, problem=device)
    if offer.profile:
        try:
            mig_slice(device, offer.profile)
        except InvalidInput as error:
            return replace(
                offer, problem=HardwareProblem(HardwareReason.UNKNOWN_HARDWARE, str(error))
            )
    return replace(offer, accelerator=device)


def _claims(
    resource: str, beside: list[str], labels: Mapping[str, str], tables: Tables, is_cut: bool
) -> list[LabelClaim]:
    """All claims about the devices behind one resource; none where nothing names them."""
    vendor = vendor_resource(resource, tables)
    own = frozenset(row.name for row in tables.accelerators if row.resource == vendor)
    named = list(product_claims(labels, tables))
    if len({vendor_resource(name, tables) for name in beside}) > 1:
        named = [claim for claim in named if claim.allows & own]
    if not named:
        return []
    advertised = LabelClaim(f"the node advertises {resource}", own)
    return [*named, advertised, *property_claims(labels, tables, is_cut)]


def _unnamed(resource: str, labels: Mapping[str, str]) -> HardwareProblem:
    typed = nodes_labels.first(labels, nodes_labels.MACHINE_TYPE_KEYS)
    told = f"the node advertises {resource}, but no label names"
    message = (
        f"{told} the device, and machine type {typed[1]} is not in the shipped table"
        if typed
        else f"{told} the device or the machine type"
    )
    return HardwareProblem(HardwareReason.UNKNOWN_HARDWARE, message)


def _product(
    device: AcceleratorRow | HardwareProblem, profile: str | None, labels: Mapping[str, str]
) -> str:
    if isinstance(device, AcceleratorRow):
        return f"{device.name}-MIG-{profile}" if profile else device.name
    said = nodes_labels.first(labels, nodes_labels.PRODUCT_KEYS)
    return said[1] if said else "unknown"


def _profile(resource: str, labels: Mapping[str, str]) -> str | None:
    if resource.startswith(MIG_RESOURCE_PREFIX):
        return resource.removeprefix(MIG_RESOURCE_PREFIX)
    if vendor_partition := labels.get(nodes_labels.PARTITION_KEY):
        return vendor_partition
    return mig_profile(labels.get("nvidia.com/gpu.product", ""))


def _is_cut(labels: Mapping[str, str]) -> bool:
    """Whether the labels of the whole device speak of its slices (MIG strategy ``single``) or of
    its partitions (AMD)."""
    is_sliced = mig_profile(labels.get("nvidia.com/gpu.product", "")) is not None
    return is_sliced or is_partitioned(labels)


def _slice_memory_bytes(resource: str, labels: Mapping[str, str]) -> float | None:
    digits = labels.get(f"{resource}.memory", "")
    if digits.isdecimal():
        return int(digits) * MIB
    stated = memory_bytes(labels) if _is_cut(labels) else None
    return stated[1] if stated else None


def _known_cpu(labels: Mapping[str, str], tables: Tables) -> tuple[CpuRow | None, str]:
    model = "/".join(labels.get(key, "") for key in nodes_labels.CPU_MODEL_KEYS)
    if row := tables.cpus.detected(model):
        return row, f"CPU {model} of Node Feature Discovery"
    typed = nodes_labels.first(labels, nodes_labels.MACHINE_TYPE_KEYS)
    machine = tables.machine_type(typed[1]) if typed else None
    if typed and machine and machine.cpu:
        return tables.cpu(machine.cpu), f"machine type {typed[1]}"
    return None, ""


def _architecture(node: Object, labels: Mapping[str, str]) -> str:
    said = nodes_labels.first(labels, nodes_labels.ARCHITECTURE_KEYS)
    return said[1] if said else texts(node, "status", "nodeInfo").get("architecture", "")
