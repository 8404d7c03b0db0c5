"""Links and hosts of a pool: what its spec says, else its machine type, else a stated assumption.

Every figure comes with the words that say where it is from; they end up in ``status.discovered``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from poolwise.model.hardware import Host, Interconnect
from poolwise.plan.nodes import labels as nodes_labels
from poolwise.plan.nodes import topology_labels
from poolwise.plan.nodes.facts import Facts
from poolwise.plan.pools.members import Draft
from poolwise.plan.pools.slices import slice_sizes
from poolwise.settings import Settings
from poolwise.tables import Tables

BYTES_PER_MEGABIT = 125_000.0
RDMA_BYTES_PER_SECOND_PER_ACCELERATOR = 25e9
"""Assumed where RDMA devices are seen, and nothing tells how fast: 200 Gbit/s for each
accelerator. NVIDIA's reference designs have 200 (DGX A100) or 400 (DGX H100, B200)."""
SERVER_NETWORK_BYTES_PER_SECOND = 12.5e9
"""Assumed of a node whose accelerators have a switched link of their own: 100 GbE."""
PLAIN_NETWORK_BYTES_PER_SECOND = 3.125e9
"""Assumed of every other node: 25 GbE."""
PCIE_BYTES_PER_SECOND = 16e9
"""Assumed between the two parts of a cut device, or where no accelerator says better: PCIe 3."""

Sources = dict[str, str]


def interconnect(draft: Draft, per_node: int) -> tuple[Interconnect, Sources]:
    """Links of the pool, and where each figure is from."""
    given = draft.spec.interconnect
    intra, is_switched, intra_source = _intra(draft)
    inter, inter_source = _inter(draft, per_node)
    if given.intra_node_bytes_per_second:
        intra, intra_source = given.intra_node_bytes_per_second, "spec.interconnect"
    if given.inter_node_bytes_per_second:
        inter, inter_source = given.inter_node_bytes_per_second, "spec.interconnect"
    row = draft.offer.accelerator
    peer = row.peer_bytes_per_second if row and not draft.offer.profile else None
    link = Interconnect(
        accelerators_per_node=per_node,
        intra_node_bytes_per_second=intra,
        inter_node_bytes_per_second=inter,
        domain_accelerators=_domain(draft, per_node),
        is_switched=is_switched,
        peer_bytes_per_second=min(peer, intra) if peer else None,
    )
    return link, {"intraNode": intra_source, "interNode": inter_source}


def host(draft: Draft, tables: Tables, settings: Settings) -> tuple[Host, Sources]:
    """The least host among the pool's nodes; of a pool without nodes, the least that carries it."""
    given = draft.spec.storage
    known = [member.node for member in draft.members]
    usable = [each for each in known if each.unusable_reason is None and not each.unallocated]
    nodes = usable or known
    cores = min((node.cores for node in nodes), default=0.0)
    memory = min((node.memory_bytes for node in nodes), default=0.0)
    if not nodes:
        cores, memory = _least_machine(draft, tables)
    figures = Host(
        cores=cores,
        memory_bytes=memory,
        storage_read_bytes_per_second=given.read_bytes_per_second
        or settings.storage_read_bytes_per_second,
        shared_read_bytes_per_second=given.shared_read_bytes_per_second
        or settings.storage_shared_read_bytes_per_second,
        model_load_bytes_per_second=given.model_load_bytes_per_second
        or settings.model_load_bytes_per_second,
    )
    assumed = given.read_bytes_per_second is None or given.model_load_bytes_per_second is None
    return figures, {"storage": "assumed, see settings" if assumed else "spec.storage"}


def topology_keys(draft: Draft, per_node: int) -> tuple[str, ...]:
    """Levels of the fabric, nearest first: the spec's, else those that nodes carry."""
    if draft.spec.interconnect.topology_keys:
        return draft.spec.interconnect.topology_keys
    found = topology_labels.carried(_labels(draft))
    if _built_domain(draft, per_node) <= max(per_node, 1):
        return tuple(key for key in found if key not in topology_labels.LINK_KEYS)
    if slice_sizes(draft) and _largest(draft, topology_labels.SLICE_KEY, per_node):
        return (topology_labels.SLICE_KEY, *found)
    return found


def link_level(draft: Draft, per_node: int) -> str:
    """The level that the accelerators' own link joins beyond the node; empty: none is known.

    Labels that say so come first, then one that names racks, or that a person listed, if its
    domains are no larger than what the link joins.
    """
    built = _built_domain(draft, per_node)
    if built <= max(per_node, 1):
        return ""
    levels = topology_keys(draft, per_node)
    sure = (*topology_labels.LINK_KEYS, topology_labels.SLICE_KEY)
    given = draft.spec.interconnect.topology_keys
    likely = [key for key in levels if key in given or key in topology_labels.RACK_KEYS]
    fitting = (key for key in likely if per_node < _largest(draft, key, per_node) <= built)
    return next((key for key in levels if key in sure), next(fitting, ""))


def _intra(draft: Draft) -> tuple[float, bool, str]:
    row, machine = draft.offer.accelerator, draft.machine
    if row is None or draft.offer.profile:
        return PCIE_BYTES_PER_SECOND, False, "none: single devices"
    if machine and machine.link_bytes_per_second:
        return machine.link_bytes_per_second, True, f"machine type {machine.name}"
    return row.link_bytes_per_second, row.link_is_switched, f"{row.link} of {row.name}"


def _inter(draft: Draft, per_node: int) -> tuple[float, str]:
    machine = draft.machine
    if machine:
        return machine.network_bytes_per_second, f"machine type {machine.name}"
    labelled = _labelled_network(member.node for member in draft.members)
    if labelled:
        return labelled
    row = draft.offer.accelerator
    if row and draft.members and all(_has_rdma(member.node) for member in draft.members):
        rate = RDMA_BYTES_PER_SECOND_PER_ACCELERATOR * max(1, per_node)
        return rate, "assumed: RDMA devices, 200 Gbit/s per accelerator"
    if row and row.link_is_switched:
        return SERVER_NETWORK_BYTES_PER_SECOND, f"assumed: 100 GbE beside {row.link}"
    return PLAIN_NETWORK_BYTES_PER_SECOND, "assumed: 25 GbE"


def _labelled_network(nodes: Iterable[Facts]) -> tuple[float, str] | None:
    found = [nodes_labels.first(node.labels, nodes_labels.NETWORK_MBPS_KEYS) for node in nodes]
    rates = [(float(each[1]), each[0]) for each in found if each and each[1].isdecimal()]
    if not rates or len(rates) < len(found) or min(rates)[0] <= 0:
        return None
    megabits, key = min(rates)
    return megabits * BYTES_PER_MEGABIT, f"label {key}"


def _has_rdma(node: Facts) -> bool:
    by_label = any(node.labels.get(key) == "true" for key in nodes_labels.RDMA_LABELS)
    return by_label or any(
        name.startswith(nodes_labels.RDMA_RESOURCE_PREFIXES) for name in node.resources
    )


def _domain(draft: Draft, per_node: int) -> int:
    """Accelerators that the intra link joins: of a node, or of a rack or slice beyond it.

    Racks are as large as labels show (clique, TPU topology), at most as large as they are built.
    """
    if draft.offer.accelerator is None or draft.offer.profile:
        return 1
    built = _built_domain(draft, per_node)
    if built <= max(per_node, 1):
        return max(1, built)
    nodes = max(len(draft.members), draft.spec.max_nodes or 0, 1)
    return max(per_node, min(built, _shown_domain(draft, per_node) or built, per_node * nodes))


def _built_domain(draft: Draft, per_node: int) -> int:
    """Accelerators that the link joins where all of it is there."""
    row, machine = draft.offer.accelerator, draft.machine
    if row is None or draft.offer.profile:
        return 1
    stated = machine.domain_accelerators if machine else None
    return stated or row.domain_accelerators or per_node


def _shown_domain(draft: Draft, per_node: int) -> int | None:
    slices = slice_sizes(draft)
    if slices:
        return min(slices)
    level = link_level(draft, per_node)
    return _largest(draft, level, per_node) if level else None


def _largest(draft: Draft, level: str, per_node: int) -> int:
    """Accelerators of the level's largest domain, as far as its nodes are there."""
    nodes = Counter(labels[level] for labels in _labels(draft) if labels.get(level))
    return max(nodes.values(), default=0) * per_node


def _labels(draft: Draft) -> list[Mapping[str, str]]:
    return [member.node.labels for member in draft.members]


def _least_machine(draft: Draft, tables: Tables) -> tuple[float, float]:
    """Cores and bytes per node that the smallest known machine with the accelerator would have."""
    row, own = draft.offer.accelerator, draft.machine
    if row is None:
        return 0.0, 0.0
    known = [own] if own else [m for m in tables.machine_types if m.accelerator == row.name]
    shares = [
        (m.vcpus / m.accelerators, m.memory_bytes / m.accelerators)
        for m in known or tables.machine_types
        if m.vcpus and m.memory_bytes and m.accelerators
    ]
    count = draft.offer.nominal_count or row.accelerators_per_node
    return min(share[0] for share in shares) * count, min(share[1] for share in shares) * count
