"""Pools that people declared: which nodes they get, and what their spec or their nodes say."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

from poolwise.api.acceleratorpool import AcceleratorPool, AcceleratorPoolSpec
from poolwise.errors import InvalidInput
from poolwise.plan.conditions import Reason, Type, condition
from poolwise.plan.names import DISCOVERED
from poolwise.plan.nodes.claims import HardwareProblem, HardwareReason
from poolwise.plan.nodes.devices import vendor_resource
from poolwise.plan.nodes.facts import Facts, facts
from poolwise.plan.nodes.hardware import DeviceOffer
from poolwise.plan.nodes.machines import mig_slice
from poolwise.plan.observed import Object
from poolwise.plan.pool import CPU, Condition
from poolwise.plan.pools.members import Draft, Member, is_same_hardware, usual_count, weakest_cpu
from poolwise.plan.pools.selectors import selects
from poolwise.plan.reading import mapping, texts
from poolwise.plan.wording import first_of, plural, sentence
from poolwise.tables import AcceleratorRow, CpuRow, Tables

NAMED_AT_MOST = 5
"""Nodes that one sentence names."""
WHICH_CPU = "leave it out where the nodes have no accelerator, or name their CPU, as Xeon-8488C"
WHERE_NAMES_ARE = "it has names such as H100-SXM5-80GB, L40S and MI300X"


@dataclass(frozen=True, slots=True)
class Declaration:
    """One AcceleratorPool that a person made."""

    name: str
    spec: AcceleratorPoolSpec
    problem: Condition | None = None
    """Why the spec cannot be used at all."""


def declarations(resources: Iterable[Object]) -> tuple[Declaration, ...]:
    """Pools of people, the oldest first; what Poolwise discovered itself is left out."""
    mine = [each for each in resources if DISCOVERED not in texts(each, "metadata", "labels")]
    return tuple(_declaration(resource) for resource in sorted(mine, key=_age))


def declared(
    pools: Sequence[Declaration], nodes: Sequence[Facts], tables: Tables
) -> tuple[Draft, ...]:
    """A draft for each declaration; a node that several select goes to the oldest.

    What a pool without nodes will offer is told by those that older pools have of its own, by the
    labels that it selects by, and its spec.
    """
    owners: dict[str, str] = {}
    drafts = []
    for pool in pools:
        selected = [node for node in nodes if _selects(pool, node)]
        drafts.append(_draft(pool, selected, owners, tables))
        owners |= {node.name: pool.name for node in selected if node.name not in owners}
    return tuple(drafts)


def _draft(
    pool: Declaration, selected: Sequence[Facts], owners: Mapping[str, str], tables: Tables
) -> Draft:
    every = [Member(node, _offer_of(node, pool.spec, tables)) for node in selected]
    members = [each for each in every if each.node.name not in owners]
    promised = facts({"metadata": {"labels": pool.spec.node_selector}}, tables)
    alike = members or every
    offers = [each.offer for each in alike] or [_promised(promised, pool.spec, tables)]
    machines = (each.node.machine for each in every if each.node.machine)
    found = (pool.problem, _taken(selected, owners))
    return Draft(
        name=pool.name,
        is_discovered=False,
        spec=pool.spec,
        members=tuple(members),
        offer=_common(offers, alike),
        conditions=tuple(condition for condition in found if condition),
        promised_machine=None if members else next(machines, promised.machine),
    )


def _offer_of(node: Facts, spec: AcceleratorPoolSpec, tables: Tables) -> DeviceOffer:
    """What of a node belongs to the pool: as the spec names it, else whole devices before slices,
    and of slices the most."""
    best = max(node.offers, key=lambda each: (each.profile is None, each.count, each.product))
    if not spec.accelerator:
        return best
    row, profile = _named(spec.accelerator, tables)
    if isinstance(row, HardwareProblem):
        return replace(best, problem=row, accelerator=None, cpu=None)
    if isinstance(row, CpuRow):
        return _as_cpu(best, row, tables)
    fitting = [each for each in node.offers if each.resource and each.profile == profile]
    chosen = max(fitting, key=lambda each: each.count, default=best)
    stated = vendor_resource(chosen.resource, tables) if chosen.resource else None
    if stated not in (None, row.resource):
        return _contradicted(chosen, row.name)
    return _as_accelerator(chosen, row, profile)


def _promised(node: Facts, spec: AcceleratorPoolSpec, tables: Tables) -> DeviceOffer:
    offer = _offer_of(node, spec, tables)
    if offer.problem is not None or not offer.is_estimated:
        return offer
    text = "it has no node yet, and neither its nodeSelector nor spec.accelerator tells what it is"
    return DeviceOffer(
        resource=None, product="", problem=HardwareProblem(HardwareReason.UNKNOWN_HARDWARE, text)
    )


def _as_accelerator(offer: DeviceOffer, row: AcceleratorRow, profile: str | None) -> DeviceOffer:
    """The offer as the spec names it. A node without any device of the kind offers none of it."""
    nominal = offer.nominal_count if offer.resource or offer.accelerator else 0
    return replace(
        offer,
        resource=offer.resource or row.resource,
        product=f"{row.name}-MIG-{profile}" if profile else row.name,
        nominal_count=nominal or row.accelerators_per_node,
        accelerator=row,
        profile=profile,
        cpu=None,
        is_estimated=False,
        problem=None,
        evidence="spec.accelerator",
    )


def _as_cpu(offer: DeviceOffer, row: CpuRow, tables: Tables) -> DeviceOffer:
    """The cores beside an accelerator that no table lists may be used by a person's word."""
    if offer.resource is not None and vendor_resource(offer.resource, tables):
        return _contradicted(offer, f"the CPU {row.name}")
    return DeviceOffer(resource=None, product=row.name, cpu=row, evidence="spec.accelerator")


def _contradicted(offer: DeviceOffer, named: str) -> DeviceOffer:
    """No word of a person's makes one maker's device another's."""
    text = f"spec.accelerator is {named}, but the node offers {offer.resource}"
    problem = HardwareProblem(HardwareReason.CONFLICTING_LABELS, text)
    return replace(offer, accelerator=None, cpu=None, problem=problem)


def _named(
    name: str, tables: Tables
) -> tuple[AcceleratorRow | CpuRow | HardwareProblem, str | None]:
    """What ``spec.accelerator`` means, with the profile of a MIG slice."""
    whole, mark, profile = name.partition("-MIG-")
    meant = tables.accelerators.labelled(whole)
    if len(meant) == 1:
        return _whole_or_slice(meant[0], profile), profile or None
    cpu = None if mark else tables.cpu(name)
    if cpu is not None:
        return cpu, None
    text = f"spec.accelerator: {sentence(name, 63)!r} is not in the shipped table"
    if name.upper() == CPU:
        return HardwareProblem(HardwareReason.UNKNOWN_ACCELERATOR, f"{text}: {WHICH_CPU}"), None
    near = [row.name for row in meant] or _near(whole, tables)
    hint = f"; did you mean {' or '.join(near)}?" if near else f": {WHERE_NAMES_ARE}"
    return HardwareProblem(HardwareReason.UNKNOWN_ACCELERATOR, text + hint), None


def _near(name: str, tables: Tables) -> list[str]:
    """Names that begin almost like it: people leave the memory off."""
    known: dict[str, str] = {}
    for row in (*tables.accelerators, *tables.cpus):
        known.setdefault(row.name.lower()[: len(name)], row.name)
    return [known[near] for near in difflib.get_close_matches(name.lower(), known, n=2)]


def _whole_or_slice(row: AcceleratorRow, profile: str) -> AcceleratorRow | HardwareProblem:
    try:
        mig_slice(row, profile) if profile else None
    except InvalidInput as error:
        return HardwareProblem(HardwareReason.UNKNOWN_ACCELERATOR, f"spec.accelerator: {error}")
    return row


def _common(offers: Sequence[DeviceOffer], members: Sequence[Member]) -> DeviceOffer:
    """What a pool's nodes have in common. Nodes that do not know what they are, or contradict
    themselves, do not stop the others, nor do those without any accelerator, as a node is before
    its device plugin and its labels have come; CPUs may differ, and the weakest counts."""
    known = [offer for offer in offers if offer.problem is None]
    if not known:
        return offers[0]
    known = [offer for offer in known if offer.cpu is None] or known
    if known[0].cpu is not None:
        return weakest_cpu(known) or known[0]
    head, *tail = sorted(known, key=lambda offer: offer.product)
    if all(is_same_hardware(head, other) for other in tail):
        return replace(head, nominal_count=usual_count(known))
    return replace(head, problem=_differing(members), accelerator=None, cpu=None)


def _differing(members: Sequence[Member]) -> HardwareProblem:
    """Of one product, as a person named it, they differ in the resource that pods ask for."""
    members = [member for member in members if member.offer.cpu is None]
    is_one_product = len({member.offer.product for member in members}) == 1
    by_kind: dict[str, list[str]] = {}
    for member in members:
        kind = member.offer.resource if is_one_product else None
        by_kind.setdefault(kind or member.offer.product, []).append(member.node.name)
    told = [f"{kind} ({first_of(names, NAMED_AT_MOST)})" for kind, names in sorted(by_kind.items())]
    hint = "" if is_one_product else ", or name spec.accelerator"
    text = f"its nodes differ: {', '.join(told)}; select them apart{hint}"
    return HardwareProblem(HardwareReason.CONFLICTING_LABELS, text)


def _taken(selected: Iterable[Facts], owners: Mapping[str, str]) -> Condition | None:
    lost = sorted(node.name for node in selected if node.name in owners)
    if not lost:
        return None
    older = ", ".join(sorted({owners[name] for name in lost}))
    verb = "belongs" if len(lost) == 1 else "belong"
    text = f"{plural(len(lost), 'node')} that it selects {verb} to the older {older}"
    told = f"{text}: {first_of(lost, NAMED_AT_MOST)}"
    return condition(Type.NODES_EXCLUSIVE, False, Reason.NODES_TAKEN, told)


def _selects(pool: Declaration, node: Facts) -> bool:
    return bool(pool.spec.node_selector) and selects(pool.spec.node_selector, node.labels)


def _age(resource: Object) -> tuple[str, str]:
    """Time stamps of Kubernetes are all in UTC and sort as text; none is the youngest."""
    metadata = mapping(resource, "metadata")
    return str(metadata.get("creationTimestamp") or "9"), str(metadata.get("name") or "")


def _declaration(resource: Object) -> Declaration:
    name = str(mapping(resource, "metadata").get("name") or "")
    try:
        return Declaration(name, AcceleratorPool.model_validate(resource).spec)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        text = sentence(f"{field}: {first['msg']}")
    except (ArithmeticError, LookupError, TypeError, RecursionError) as error:
        text = sentence(f"spec cannot be read: {error}")
    empty = AcceleratorPoolSpec.model_construct(node_selector={})
    return Declaration(name, empty, condition(Type.ACCEPTED, False, Reason.INVALID_SPEC, text))
