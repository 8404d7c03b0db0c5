"""What a node of a pool costs: as its spec says, else as the shipped tables do, with their date."""

from __future__ import annotations

from collections.abc import Iterator

from poolwise.plan.nodes.facts import Facts
from poolwise.plan.nodes.hardware import Offer
from poolwise.plan.nodes.labels import DEFAULT_CAPACITY_TYPE
from poolwise.plan.pool import Condition, Price
from poolwise.plan.pools.members import Draft, capacity_type
from poolwise.plan.wording import money, sentence
from poolwise.settings import Settings

SHIPPED_CURRENCY = "USD"
SPEC = "spec.price"


def price(draft: Draft, per_node: int, settings: Settings) -> Price | None:
    """Price of one node in the currency of the settings; None where nobody knows one."""
    found = known_price(draft, per_node)
    return found if found and found.currency == settings.currency else None


def price_conditions(draft: Draft, per_node: int, settings: Settings) -> Iterator[Condition]:
    """What is to be known of a price: that it cannot be compared, or is not what is paid."""
    found = known_price(draft, per_node)
    if found is None:
        return
    if found.currency != settings.currency:
        told = f"{money(found.per_node_hour, found.currency)} per node and hour ({found.source})"
        text = f"{told} is not compared: costs are in {settings.currency}, the setting currency"
        yield Condition("PriceKnown", False, "OtherCurrency", sentence(text))
    elif found.source != SPEC and capacity_type(draft) != DEFAULT_CAPACITY_TYPE:
        text = f"its nodes are {capacity_type(draft)}, and only an on-demand price is known"
        told = f"{text} ({money(found.per_node_hour, found.currency)} per node and hour)"
        yield Condition("PriceEstimated", True, "OnDemandPrice", f"{told}: set spec.price")


def known_price(draft: Draft, per_node: int) -> Price | None:
    """Price of one node in any currency; None where nobody knows (as of unknown hardware).

    Shipped prices are for on-demand capacity, also where nodes are bought otherwise. Where a node
    is cut into offers of several pools (MIG strategy ``mixed``), each pool bears its share.
    """
    given = draft.spec.price
    if given is not None:
        return Price(given.per_node_hour, given.currency, SPEC)
    if draft.offer.problem is not None:
        return None
    found = _of_machine(draft) or _of_accelerators(draft, per_node) or _of_cores(draft)
    if found is None:
        return None
    amount, source = found
    if capacity_type(draft) != DEFAULT_CAPACITY_TYPE:
        source += f" (the on-demand price: {capacity_type(draft)} costs less)"
    return Price(amount * _share(draft), SHIPPED_CURRENCY, source)


def _of_machine(draft: Draft) -> tuple[float, str] | None:
    machine = draft.machine
    if machine is None or machine.price_source is None:
        return None
    vcpus = max((member.node.vcpus for member in draft.members), default=machine.vcpus or 0.0)
    amount = machine.price_of(vcpus)
    return (amount, f"machine type {machine.name}: {machine.price_source}") if amount else None


def _of_accelerators(draft: Draft, per_node: int) -> tuple[float, str] | None:
    row = draft.offer.accelerator
    if row is None or row.price_per_hour_usd is None:
        return None
    whole = (sum(map(_devices, member.node.offers)) for member in draft.members)
    amount = row.price_per_hour_usd * max(whole, default=float(per_node))
    return amount, f"{row.name}: {row.price_source}"


def _of_cores(draft: Draft) -> tuple[float, str] | None:
    cpu = draft.offer.cpu
    if cpu is None or cpu.price_per_vcpu_hour_usd is None or not draft.members:
        return None
    vcpus = max(member.node.vcpus for member in draft.members)
    return cpu.price_per_vcpu_hour_usd * vcpus, f"{cpu.name}: {cpu.price_source}"


def _share(draft: Draft) -> float:
    """The pool's part of its nodes, where they offer devices to several pools."""
    shares = [_share_of(member.node, member.offer) for member in draft.members]
    return max(shares, default=1.0)


def _share_of(node: Facts, offer: Offer) -> float:
    if len(node.offers) == 1:
        return 1.0
    every = sum(_devices(each) for each in node.offers)
    return _devices(offer) / every if every else 1.0


def _devices(offer: Offer) -> float:
    """Whole devices behind an offer; a slice is its compute slices' share of one."""
    row = offer.accelerator
    if offer.profile and row and row.mig_compute_slices:
        return offer.nominal_count * int(offer.profile.partition("g")[0]) / row.mig_compute_slices
    return float(offer.nominal_count)
