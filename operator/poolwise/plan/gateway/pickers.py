"""The pods that pick endpoints for an InferencePool, and where they tell their metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from poolwise.plan.gateway.pools import InferencePool
from poolwise.plan.live.seen import ready_at
from poolwise.plan.observed import Object
from poolwise.plan.reading import mapping, objects, texts

METRICS_PORT, PORT_NAME = 9090, "metrics"
"""Of an endpoint picker: by default, and what its container calls it."""
MOST_PICKERS = 8
"""Ready pods of one Service that are asked: usually one is, and its standbys are not ready."""


@dataclass(frozen=True, slots=True)
class Picker:
    """One that is ready."""

    uid: str
    name: str
    address: str
    port: int


def pickers(
    pool: InferencePool, service: Object | None, pods: Iterable[Object]
) -> tuple[Picker, ...] | str:
    """Those behind the Service that the pool names; or why there are none, as a clause.

    :param pods: of its namespace.
    """
    if service is None:
        return f"Service {pool.picker}, which InferencePool {pool.name} names, does not exist"
    selector = texts(service, "spec", "selector")
    if not selector:
        return f"Service {pool.picker} selects no pods"
    chosen = (
        each for each in pods if selector.items() <= texts(each, "metadata", "labels").items()
    )
    found = sorted(filter(None, map(_picker, chosen)), key=lambda each: each.name)
    if not found:
        return f"no pod of Service {pool.picker} is ready"
    if len(found) > MOST_PICKERS:
        return f"Service {pool.picker} selects {len(found)} ready pods, more than {MOST_PICKERS}"
    return tuple(found)


def _picker(pod: Object) -> Picker | None:
    """None of a pod that gets no requests."""
    metadata, address = pod["metadata"], mapping(pod, "status").get("podIP")
    if not address or "deletionTimestamp" in metadata or ready_at(pod) is None:
        return None
    return Picker(metadata["uid"], metadata["name"], str(address), _port(pod))


def _port(pod: Object) -> int:
    for container in objects(pod, "spec", "containers"):
        for port in objects(container, "ports"):
            number = port.get("containerPort")
            if port.get("name") == PORT_NAME and isinstance(number, int) and 0 < number < 65_536:
                return number
    return METRICS_PORT
