"""Labels by which pods reach the nodes of a discovered pool and no others.

The labels that define the pool come first, so that a node that joins it later is selected too.
Where they leave other nodes in, further labels that all members share are added. Where labels of
members alone cannot do it, expressions of a required node affinity do: the spellings of a product
that are the members' alone, labels that the others have and no member has, and as a last resort
the members' host names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from poolwise.plan.nodes import labels as nodes_labels

Labels = Mapping[str, str]
Expression = Mapping[str, object]
SPELLINGS_AT_MOST = 4
"""Of one product, in one expression."""

_IDENTITY_KEYS = (
    nodes_labels.CLOUD_POOL_KEYS,
    nodes_labels.PRODUCT_KEYS,
    nodes_labels.MACHINE_TYPE_KEYS,
    nodes_labels.COUNT_KEYS,
    tuple(key for key, _ in nodes_labels.CAPACITY_TYPES),
)
_LAST_KEYS = ("kubernetes.io/arch", "kubernetes.io/os")
"""What any node has, for pools whose nodes carry nothing else."""
_PASSING_PREFIXES = (
    "beta.",
    "nvidia.com/cuda.",
    "nvidia.com/gfd.",
    "nvidia.com/gpu.deploy.",
    "feature.node.kubernetes.io/kernel",
    "feature.node.kubernetes.io/system",
    "topology.",
    "failure-domain.",
    "network.",
)
"""Labels that go out of use, or change with a driver, a kernel or a place: taken only when nothing
else separates."""


def node_selector(members: Sequence[Labels], others: Sequence[Labels]) -> dict[str, str]:
    """Labels that every member carries and, as far as labels can tell, no other node."""
    shared = _shared(members)
    chosen = dict(_identity(shared)) or {key: shared[key] for key in _LAST_KEYS if key in shared}
    inside = [labels for labels in others if selects(chosen, labels)]
    for key in sorted(shared.keys() - chosen.keys(), key=_preference):
        excluded = [labels for labels in inside if labels.get(key) != shared[key]]
        if excluded and key != nodes_labels.HOSTNAME_KEY:
            chosen[key] = shared[key]
            inside = [labels for labels in inside if labels.get(key) == shared[key]]
    return chosen


def node_expressions(
    selector: Labels, members: Sequence[Labels], others: Sequence[Labels]
) -> tuple[Expression, ...]:
    """matchExpressions that keep out the others that the selector lets in; often none."""
    inside = [labels for labels in others if selects(selector, labels)]
    if spelt := _spellings(members, inside):
        return (spelt,)
    expressions: list[Expression] = []
    for key in sorted(_keys(inside) - _keys(members), key=_preference):
        if any(key in labels for labels in inside):
            expressions.append({"key": key, "operator": "DoesNotExist"})
            inside = [labels for labels in inside if key not in labels]
    hosts = sorted(labels.get(nodes_labels.HOSTNAME_KEY, "") for labels in members)
    if inside and all(hosts):
        named = {"key": nodes_labels.HOSTNAME_KEY, "operator": "In", "values": hosts}
        return (named,)
    return tuple(expressions)


def _spellings(members: Sequence[Labels], inside: Sequence[Labels]) -> Expression | None:
    """One expression that keeps all others out by the product, as several tools of the members'
    nodes spell it: unlike host names it stays as it is when a node joins or leaves."""
    for key in nodes_labels.PRODUCT_KEYS if inside else ():
        spelt = {labels.get(key) for labels in members}
        is_few = all(spelt) and len(spelt) <= SPELLINGS_AT_MOST
        if is_few and all(labels.get(key) not in spelt for labels in inside):
            return {"key": key, "operator": "In", "values": sorted(filter(None, spelt))}
    return None


def selects(selector: Labels, labels: Labels) -> bool:
    """Whether a node with these labels matches a node selector."""
    return all(labels.get(key) == value for key, value in selector.items())


def _identity(shared: Labels) -> Iterator[tuple[str, str]]:
    for keys in _IDENTITY_KEYS:
        found = nodes_labels.first(shared, keys)
        if found:
            yield found


def _shared(members: Sequence[Labels]) -> dict[str, str]:
    head, *tail = members
    return {key: v for key, v in head.items() if all(each.get(key) == v for each in tail)}


def _keys(nodes: Sequence[Labels]) -> set[str]:
    return {key for labels in nodes for key in labels}


def _preference(key: str) -> tuple[int, str]:
    """Keys that define hardware first, passing ones last."""
    named = any(key in keys for keys in _IDENTITY_KEYS)
    return (0 if named else 2 if key.startswith(_PASSING_PREFIXES) else 1, key)
