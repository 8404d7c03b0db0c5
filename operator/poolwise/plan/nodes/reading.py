"""What a Node says of its resources."""

from __future__ import annotations

from poolwise.plan.observed import Object
from poolwise.plan.reading import amount, mapping


def allocatable(node: Object, resource: str) -> float:
    """What pods may take of a resource: ``allocatable``, or ``capacity`` where that is absent."""
    given = mapping(node, "status", "allocatable") or mapping(node, "status", "capacity")
    return amount(given.get(resource, 0))


def capacity(node: Object, resource: str) -> float:
    """What the node has of a resource, at least what it allocates."""
    given = mapping(node, "status", "capacity")
    return max(amount(given.get(resource, 0)), allocatable(node, resource))


def resources(node: Object) -> frozenset[str]:
    """Names of all resources that the node advertises, be it none of them."""
    status = mapping(node, "status")
    return frozenset(
        str(name) for part in ("capacity", "allocatable") for name in mapping(status, part)
    )
