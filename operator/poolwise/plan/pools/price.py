"""What a node of a pool costs: as its spec says, else as the shipped tables do, with their date."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from poolwise.plan.conditions import Reason, Type, condition
from poolwise.plan.nodes.facts import Facts
from poolwise.plan.nodes.hardware import DeviceOffer
from poolwise.plan.nodes.labels import DEFAULT_CAPACITY_TYPE
from poolwise.plan.nodes.machines import mig_shares
from poolwise.plan.pool import Condition, Price
from poolwise.plan.pools.members import Draft, capacity_type, is_same_hardware
from poolwise.plan.wording import money
from poolwise.settings import Settings
from poolwise.tables import MachineTypeRow

SHIPPED_CURRENCY = "USD"
SPEC = "spec.price"


def price(draft: Draft, per_node: int, settings: Settings) -> Price | None:
    """Price of one node in the currency of the settings; None where nobody knows one."""
    found = known_price(draft, per_node)
    return found if found and found.currency == settings.currency else None


def price_conditions(draft: Draft, per_node: int, settings: Settings) -> Iterator[Condition]:
    """What is to be known of a price: that there is none, that it cannot be compared, or that it is
    not what is paid."""
    found = known_price(draft, per_node)
    if found is None:
        if draft.offer.problem is None:
            text = "no price of its nodes is known, so that it is taken last where cost decides"
            yield condition(Type.PRICE_KNOWN, False, Reason.NO_PRICE, f"{text}: {_advice(draft)}")
        return
    if found.currency != settings.currency:
        told = f"{money(found.per_node_hour, found.currency)} per node and hour ({found.source})"
        text = f"{told} is not compared: costs are in {settings.currency}, the setting currency"
        yield condition(Type.PRICE_KNOWN, False, Reason.OTHER_CURRENCY, text)
    elif found.source != SPEC and capacity_type(draft) != DEFAULT_CAPACITY_TYPE:
        text = f"its nodes are {capacity_type(draft)}, and only an on-demand price is known"
        told = f"{text} ({money(found.per_node_hour, found.currency)} per node and hour)"
        told += f": {_advice(draft)}"
        yield condition(Type.PRICE_ESTIMATED, True, Reason.ON_DEMAND_PRICE, told)


def _advice(draft: Draft) -> str:
    """The spec of a discovered pool is not read."""
    return "set spec.price" + (" in an AcceleratorPool of yours" if draft.is_discovered else "")


def known_price(draft: Draft, per_node: int) -> Price | None:
    """Price of one node in any currency; None where nobody knows (as of unknown hardware).

    Shipped prices are for on-demand capacity, also where nodes are bought otherwise. Where a node
    is cut into offers of several pools (MIG strategy ``mixed``), each pool bears its share. Where
    nodes cost differently, all are taken at the dearest (:mod:`poolwise.plan.pools.alike`).
    """
    given = draft.spec.price
    if given is not None:
        return Price(given.per_node_hour, given.currency, SPEC)
    if draft.offer.problem is not None:
        return None
    dearest = max(unit_prices(draft), key=lambda each: each.amount, default=None)
    if dearest is None:
        return _promised(draft, per_node)
    vcpus = max(member.node.vcpus for member in draft.members)
    return _shipped(draft, dearest.amount * (vcpus if draft.is_cpu else per_node), dearest.source)


@dataclass(frozen=True, slots=True)
class UnitPrice:
    """What one node takes for one of its accelerators (slices, or vCPUs)."""

    amount: float
    """US dollars per hour."""
    source: str


def unit_prices(draft: Draft) -> Iterator[UnitPrice]:
    """Of each node that the pool uses and the shipped tables know a price for."""
    for member in draft.members:
        node, offer = member.node, member.offer
        is_used = draft.is_cpu or is_same_hardware(offer, draft.offer)
        units = node.vcpus if draft.is_cpu else float(offer.nominal_count)
        whole = _devices_of(node, offer)
        found = _of_node(node.machine, offer, draft, node.vcpus, whole) if is_used else None
        if found is not None and units:
            yield UnitPrice(found[0] * _share_of(node, offer) / units, found[1])


def _promised(draft: Draft, per_node: int) -> Price | None:
    """Of a pool without nodes, by the machine type that its selector names, or its devices."""
    machine = draft.promised_machine
    vcpus = (machine.vcpus or 0.0) if machine else 0.0
    found = _of_node(machine, draft.offer, draft, vcpus, float(per_node))
    return _shipped(draft, *found) if found else None


def _shipped(draft: Draft, amount: float, source: str) -> Price:
    if capacity_type(draft) != DEFAULT_CAPACITY_TYPE:
        source += f" (the on-demand price: {capacity_type(draft)} costs less)"
    return Price(amount, SHIPPED_CURRENCY, source)


def _of_node(
    machine: MachineTypeRow | None, offer: DeviceOffer, draft: Draft, vcpus: float, devices: float
) -> tuple[float, str] | None:
    """Price of a whole node and where it is from: its machine type's, else its devices' or cores'.

    A machine type that has another accelerator than the pool says nothing of it.
    """
    row, cpu = draft.offer.accelerator, offer.cpu
    is_own = machine is not None and (row is None or machine.accelerator == row.name)
    if machine is not None and is_own and (amount := machine.price_of(vcpus)):
        return amount, f"machine type {machine.name}: {machine.price_source}"
    if row is not None and row.price_per_hour_usd is not None:
        return row.price_per_hour_usd * devices, f"{row.name}: {row.price_source}"
    if cpu is not None and cpu.price_per_vcpu_hour_usd is not None and vcpus:
        return cpu.price_per_vcpu_hour_usd * vcpus, f"{cpu.name}: {cpu.price_source}"
    return None


def _devices_of(node: Facts, offer: DeviceOffer) -> float:
    """Whole devices behind all that a node offers. Slices that leave some of a device over, such
    as three of a ``3g.40gb``'s seven compute slices, take the device all the same."""
    if len(node.offers) == 1:
        return math.ceil(round(offer.nominal_count * max(_alone(offer)), 6))
    shares = [(each.nominal_count, *_shares(each)) for each in node.offers]
    compute = sum(count * share for count, share, _ in shares)
    memory = sum(count * share for count, _, share in shares)
    return math.ceil(round(max(compute, memory), 6))


def _share_of(node: Facts, offer: DeviceOffer) -> float:
    if len(node.offers) == 1:
        return 1.0
    every = sum(each.nominal_count * max(_shares(each)) for each in node.offers)
    return offer.nominal_count * max(_shares(offer)) / every if every else 1.0


def _alone(offer: DeviceOffer) -> tuple[float, float]:
    """What a slice takes of its device where all slices are like it: a whole part of it."""
    compute, memory = _shares(offer)
    return 1.0 / math.floor(round(1.0 / compute, 6)), 1.0 / math.floor(round(1.0 / memory, 6))


def _shares(offer: DeviceOffer) -> tuple[float, float]:
    """Of a device's compute and memory; a whole device has all of both."""
    if offer.profile and offer.accelerator:
        return mig_shares(offer.accelerator, offer.profile)
    return 1.0, 1.0
