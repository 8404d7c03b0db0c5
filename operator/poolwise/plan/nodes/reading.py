"""Reading of raw Node objects: whatever is missing or malformed reads as absent, never raises."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from poolwise.api.quantity import parse_quantity
from poolwise.plan.observed import Object


def mapping(parent: Any, *path: str) -> Mapping[str, Any]:
    """The object at a path, or an empty one."""
    for key in path:
        parent = parent.get(key) if isinstance(parent, Mapping) else None
    return parent if isinstance(parent, Mapping) else {}


def objects(parent: Any, *path: str) -> tuple[Mapping[str, Any], ...]:
    """The objects of the list at a path."""
    found = mapping(parent, *path[:-1]).get(path[-1])
    if not isinstance(found, (list, tuple)):
        return ()
    return tuple(each for each in found if isinstance(each, Mapping))


def texts(parent: Any, *path: str) -> dict[str, str]:
    """The strings of the object at a path, by key."""
    found = mapping(parent, *path).items()
    return {str(key): value for key, value in found if isinstance(value, str)}


def amount(text: Any) -> float:
    """The number of a quantity; 0 where there is none, or none that is finite and positive."""
    try:
        value = float(parse_quantity(text))
    except (ValueError, ArithmeticError):
        return 0.0
    return value if math.isfinite(value) and value > 0 else 0.0


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
