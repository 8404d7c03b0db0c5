"""Amounts of what pods ask for beside accelerators, cores and memory, and how often they are free.

That is any resource that a node may allocate: local storage, huge pages, devices that are no
accelerators (network functions, FUSE), and the pods themselves, of which a node takes so many.
Resources are called, and counted, as Kubernetes does: pieces, or bytes of what is storage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

PODS = "pods"
STORAGE = "ephemeral-storage"
HUGE_PAGES = "hugepages-"
"""Before the size of the pages."""
UNTOLD_IS_FREE = frozenset({PODS, STORAGE})
"""Every kubelet tells these; a node that does not was written by hand, and has no limit. Any other
resource that a node does not tell it does not have."""
OWN_FIELDS = frozenset({"cpu", "memory"})
"""Resources that are counted in fields of their own: most pods ask for them."""
ROUNDING_SLACK = 1e-6
"""Relative; cores and bytes are sums of binary fractions."""

N = TypeVar("N", int, float)
Amounts = tuple[tuple[str, float], ...]
"""Of one pod by resource, in order of their names."""
Told = Mapping[str, float] | None
"""Of one node by resource; None: of a node to come that nobody can know it of."""
Held = Mapping[str, Mapping[str, float]]
"""By resource, then by node."""

_NOTHING: Mapping[str, float] = {}


def is_whole(resource: str) -> bool:
    """Devices and huge pages: Kubernetes wants their limit, and wants it equal to the request."""
    is_device = "/" in resource and "kubernetes.io/" not in resource
    return is_device or resource.startswith(HUGE_PAGES)


def left(told: Told, resource: str) -> float | None:
    """What there is of a resource; None: no limit is known."""
    if told is None:
        return None
    return told.get(resource, None if resource in UNTOLD_IS_FREE else 0.0)


def times(available: float, each: float) -> int:
    """How often an amount is there; rounding costs nobody a whole pod."""
    return int(available / each * (1 + ROUNDING_SLACK))


def pods_in(told: Told, asked: Amounts, most: int) -> int:
    """How many pods that ask for so much find it, of ``most`` that find all else."""
    for resource, each in asked:
        free = left(told, resource)
        if free is not None:
            most = min(most, times(free, each))
    return most


def less(there: Mapping[str, N], taken: Mapping[str, N], factor: int = 1) -> Mapping[str, N]:
    """What is left once ``factor`` times an amount is taken, of resources that there are."""
    if there.keys().isdisjoint(taken):
        return there
    counted = {name: amount for name, amount in taken.items() if name in there}
    return {**there, **{name: there[name] - factor * each for name, each in counted.items()}}


def on_each(pods_by_node: Mapping[str, int], amount: N) -> dict[str, N]:
    """What all pods of a node hold; nothing where they hold nothing."""
    return {name: pods * amount for name, pods in pods_by_node.items() if pods * amount}


def held_by(pods_by_node: Mapping[str, int], asked: Amounts) -> Held:
    """What pods on these nodes hold, they themselves included."""
    return {name: on_each(pods_by_node, each) for name, each in ((PODS, 1), *asked)}


def join_held(
    one: Held,
    other: Held,
    join: Callable[[Mapping[str, float], Mapping[str, float]], Mapping[str, float]],
) -> Held:
    """Resource by resource, what both hold as ``join`` has it; nobody holds nothing of one."""
    names = sorted({*one, *other})
    joined = {name: join(one.get(name, _NOTHING), other.get(name, _NOTHING)) for name in names}
    return {name: by_node for name, by_node in joined.items() if by_node}


def larger(one: Mapping[str, N], other: Mapping[str, N]) -> dict[str, N]:
    """The larger of both, node by node."""
    return {node: max(one.get(node, 0), other.get(node, 0)) for node in {**one, **other}}
