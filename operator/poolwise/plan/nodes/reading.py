"""What a Node says of its resources."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from typing import Any

from poolwise.plan.amounts import OWN_FIELDS, PODS, STORAGE
from poolwise.plan.observed import Object
from poolwise.plan.reading import amount, mapping


def allocatable(node: Object, resource: str) -> float:
    """What pods may take of a resource: ``allocatable``, or ``capacity`` where that is absent."""
    return amount(_given(node).get(resource, 0))


def others(node: Object, devices: Container[str | None]) -> dict[str, float]:
    """What pods may take beside its accelerators, cores and memory, of what there is any."""
    return {
        name: found
        for name, text in _given(node).items()
        if name not in OWN_FIELDS
        and name not in devices
        and ((found := amount(text)) or name == STORAGE)
    }


def most_pods(node: Object) -> float:
    """How many pods it takes; infinite where it does not tell, as only nodes written by hand do."""
    given = _given(node)
    return amount(given[PODS]) if PODS in given else math.inf


def capacity(node: Object, resource: str) -> float:
    """What the node has of a resource, at least what it allocates."""
    given = mapping(node, "status", "capacity")
    return max(amount(given.get(resource, 0)), allocatable(node, resource))


def _given(node: Object) -> Mapping[str, Any]:
    return mapping(node, "status", "allocatable") or mapping(node, "status", "capacity")


def resources(node: Object) -> frozenset[str]:
    """Names of all resources that the node advertises, be it none of them."""
    status = mapping(node, "status")
    return frozenset(
        str(name) for part in ("capacity", "allocatable") for name in mapping(status, part)
    )
