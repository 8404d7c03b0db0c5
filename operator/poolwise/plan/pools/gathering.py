"""All pools of a cluster: declared by people, and discovered from the nodes that remain.

Everything follows from the nodes, the declarations and the shipped tables; the order in which
they are given changes nothing. What labels cannot tell becomes a condition, never a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from poolwise.model.hardware import Device, Machine
from poolwise.plan.conditions import Reason
from poolwise.plan.memo import Memo
from poolwise.plan.nodes.facts import Facts, facts
from poolwise.plan.observed import Object
from poolwise.plan.pool import CPU, Node, Pool
from poolwise.plan.pools.conditions import conditions, unusable_reason
from poolwise.plan.pools.declared import declarations, declared
from poolwise.plan.pools.discovered import discovered
from poolwise.plan.pools.links import Sources, host, interconnect, link_level, topology_keys
from poolwise.plan.pools.members import (
    Draft,
    Member,
    capacity_type,
    is_same_hardware,
    pool_device,
    usual_count,
)
from poolwise.plan.pools.price import price, price_conditions
from poolwise.plan.pools.roles import with_roles
from poolwise.plan.pools.slices import hosts_per_slice, with_whole_slices
from poolwise.plan.pools.taints import tolerations, untolerated
from poolwise.settings import Settings
from poolwise.tables import Tables


def pools(
    nodes: Iterable[Object],
    declared_pools: Iterable[Object],
    tables: Tables,
    settings: Settings,
    memo: Memo | None = None,
) -> tuple[Pool, ...]:
    """Declared pools by age, then discovered ones by name.

    ``memo`` makes later calls with the same tables faster and changes no answer.
    """
    memo = Memo() if memo is None else memo  # an empty one is false, and is to be filled
    given = tuple(declared_pools)
    read = memo.facts.each(nodes, lambda node: facts(node, tables))
    known = sorted(read, key=lambda node: node.name)
    subjects = (*known, *given, tables, settings)
    return memo.pools.of(subjects, lambda: _pools(known, given, tables, settings))


def _pools(
    known: Sequence[Facts], given: Sequence[Object], tables: Tables, settings: Settings
) -> tuple[Pool, ...]:
    ours = declared(declarations(given), known, tables)
    taken = {member.node.name for draft in ours for member in draft.members}
    rest = [node for node in known if node.name not in taken]
    found = discovered(rest, known, {draft.name for draft in ours})
    return with_roles([_pool(draft, tables, settings) for draft in (*ours, *found)])


def _pool(draft: Draft, tables: Tables, settings: Settings) -> Pool:
    tolerated = tolerations(draft, tables)
    per_node = _per_node(draft)
    hosts = hosts_per_slice(draft, per_node)
    nodes = tuple(_node(member, draft, tolerated) for member in draft.members)
    nodes = with_whole_slices(nodes, hosts)
    device = pool_device(draft)
    machine, sources = _machine(draft, device, per_node, tables, settings)
    barred = unusable_reason(draft)
    priced = tuple(price_conditions(draft, per_node, settings))
    spec = draft.spec
    return Pool(
        name=draft.name,
        is_discovered=draft.is_discovered,
        accelerator=_accelerator(device),
        resource=draft.offer.resource,
        machine=machine,
        nodes=nodes,
        accelerators_per_node=per_node,
        node_selector=dict(spec.node_selector),
        tolerations=tolerated,
        price=price(draft, per_node, settings),
        capacity_type=capacity_type(draft),
        role=None,
        ridge_points=_ridge_points(device),
        topology_keys=topology_keys(draft, per_node),
        link_level=link_level(draft, per_node),
        hosts_per_slice=hosts,
        allowed_namespaces=spec.allowed_namespaces,
        max_nodes=spec.max_nodes,
        node_startup_seconds=spec.node_startup,
        is_mig=draft.offer.profile is not None,
        node_expressions=draft.node_expressions,
        unusable_reason=barred[1] if barred else None,
        conditions=conditions(draft, nodes, priced),
        price_problem=next(
            (each.message for each in priced if each.reason == Reason.OTHER_CURRENCY), None
        ),
        discovered=_discovered(draft, sources),
    )


def _node(member: Member, draft: Draft, tolerated: Sequence[Mapping[str, Any]]) -> Node:
    node, offer = member.node, member.offer
    return Node(
        name=node.name,
        labels=node.labels,
        accelerators=offer.count,
        cores=node.cores,
        memory_bytes=node.memory_bytes,
        others=node.others,
        most_pods=node.most_pods,
        unusable_reason=_unusable_reason(member, draft, tolerated),
    )


def _unusable_reason(
    member: Member, draft: Draft, tolerated: Sequence[Mapping[str, Any]]
) -> str | None:
    """Why no work can start on a node; in words that follow its name."""
    offer = member.offer
    if member.node.unusable_reason:
        return member.node.unusable_reason
    if offer.problem is not None:
        return f"is not used: {offer.problem.message}"
    if not draft.is_cpu and offer.cpu is not None:
        return f"has no {draft.offer.product}"
    if not draft.is_cpu and not is_same_hardware(offer, draft.offer):
        return f"has {offer.product} and not {draft.offer.product}"
    if offer.nominal_count and not offer.count:
        device = offer.resource or "device"
        return f"advertises none of its {offer.nominal_count} {device}: no device plugin runs there"
    if offer.cpu is not None and member.node.unallocated:
        return f"allocates no {' and no '.join(member.node.unallocated)}"
    taint = untolerated(member.node.taints, tolerated)
    return f"has the taint {taint}, which nothing tolerates" if taint else None


def _machine(
    draft: Draft, device: Device | None, per_node: int, tables: Tables, settings: Settings
) -> tuple[Machine | None, Sources]:
    if device is None:
        return None, {}
    link, link_sources = interconnect(draft, per_node)
    figures, host_sources = host(draft, tables, settings)
    return Machine(device, link, figures), {**link_sources, **host_sources}


def _per_node(draft: Draft) -> int:
    """Devices of the usual node; 0 in CPU pools."""
    own = [m.offer for m in draft.members if is_same_hardware(m.offer, draft.offer)]
    return usual_count(own) if own else draft.offer.nominal_count


def _accelerator(device: Device | None) -> str | None:
    if device is None:
        return None
    return CPU if device.is_cpu else device.name


def _ridge_points(device: Device | None) -> dict[str, float]:
    """FLOP per byte where dense arithmetic and memory bandwidth take equally long."""
    if device is None:
        return {}
    rate = device.memory_bandwidth_bytes_per_second
    return {name: peak / rate for name, peak in device.peak_flops_per_second.items()}


def _discovered(draft: Draft, sources: Sources) -> dict[str, Any]:
    """What labels said, and where every figure is from."""
    every = [member.node for member in draft.members]
    told: dict[str, Any] = {
        "hardware": draft.offer.evidence,
        "machineTypes": sorted({node.machine_type for node in every if node.machine_type}),
        "cloudPools": sorted({node.cloud_pool for node in every if node.cloud_pool}),
        "capacityType": next(
            (node.capacity_type_evidence for node in every if node.capacity_type_evidence),
            "assumed",
        ),
        "cpu": draft.offer.cpu.name if draft.offer.cpu else "",
        "sharing": draft.offer.sharing or "",
        **sources,
    }
    return {name: value for name, value in told.items() if value}
