"""Pools that nobody declared: the remaining nodes, gathered by what they are."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Sequence

from poolwise.api.acceleratorpool import AcceleratorPoolSpec
from poolwise.plan.names import LABEL_LIMIT
from poolwise.plan.nodes.facts import Facts
from poolwise.plan.nodes.hardware import DeviceOffer
from poolwise.plan.pools.members import Draft, Member
from poolwise.plan.pools.selectors import node_expressions, node_selector

Identity = tuple[str, ...]
"""What nodes of one discovered pool have in common."""


def discovered(
    nodes: Sequence[Facts], every_node: Sequence[Facts], taken_names: Collection[str]
) -> tuple[Draft, ...]:
    """Drafts of the pools of ``nodes``, by name; each selects none of the other nodes."""
    groups: dict[Identity, list[Member]] = {}
    for node in nodes:
        for offer in node.offers:
            groups.setdefault(_identity(node, offer), []).append(Member(node, offer))
    drafts = [
        _draft(pool_name(identity, taken_names), members, every_node)
        for identity, members in groups.items()
    ]
    return tuple(sorted(drafts, key=lambda draft: draft.name))


def pool_name(identity: Identity, taken_names: Collection[str] = ()) -> str:
    """``<product>-<count per node>-<hash5>``, a DNS label.

    >>> pool_name(("H100-SXM5-80GB", "8", "p5.48xlarge"))
    'h100-sxm5-80gb-8-41e9f'
    """
    digest = hashlib.sha256("\0".join(identity).encode()).hexdigest()
    product, count = (_dashed(part) for part in identity[:2])
    for length in (5, 12):
        tail = f"-{count}-{digest[:length]}"
        name = f"{product[: LABEL_LIMIT - len(tail)].strip('-') or 'x'}{tail}"
        if name not in taken_names:
            return name
    return digest[:LABEL_LIMIT]


def _identity(node: Facts, offer: DeviceOffer) -> Identity:
    """Product and count first: they are read in the name."""
    count = offer.nominal_count or (0 if offer.resource else int(node.vcpus))
    return (
        offer.product,
        str(count),
        node.machine_type or "",
        node.capacity_type,
        node.cloud_pool or "",
        offer.resource or "",
        offer.sharing or "",
        offer.problem.reason if offer.problem else "",
    )


def _draft(name: str, members: Iterable[Member], every_node: Sequence[Facts]) -> Draft:
    inside = tuple(sorted(members, key=lambda member: member.node.name))
    names = {member.node.name for member in inside}
    own = [member.node.labels for member in inside]
    others = [node.labels for node in every_node if node.name not in names]
    selector = node_selector(own, others)
    return Draft(
        name=name,
        is_discovered=True,
        spec=AcceleratorPoolSpec.model_construct(node_selector=selector),
        members=inside,
        offer=inside[0].offer,
        node_expressions=node_expressions(selector, own, others),
    )


def _dashed(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
