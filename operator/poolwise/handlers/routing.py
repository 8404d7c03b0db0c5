"""From an object that changed to what has to be looked at."""

from __future__ import annotations

from collections.abc import Iterator

from poolwise.cluster.cache import Cache
from poolwise.cluster.resources import (
    ACCELERATOR_POOLS,
    CHILDREN,
    FAILED_CREATIONS,
    JOBS,
    PODS,
    WORKLOADS,
    Resource,
)
from poolwise.handlers.planner import Target
from poolwise.plan.children.metadata import key_of
from poolwise.plan.decision import Key, Kind
from poolwise.plan.observed import Object


def targets_of(cache: Cache, resource: Resource, document: Object) -> Iterator[Target]:
    """What an object is part of; nothing for what concerns the plan as a whole (nodes)."""
    if resource in WORKLOADS:
        yield key_of(document)
    elif resource is ACCELERATOR_POOLS:
        yield document["metadata"]["name"]
    elif resource is PODS:
        # By labels, which are only a hint: whose pods they are is checked where it counts.
        yield from map(key_of, cache.workloads_of(document))
    elif resource in CHILDREN:
        yield from _owners(document)
    elif resource is FAILED_CREATIONS:
        job = cache.get(JOBS, document["metadata"]["namespace"], document["regarding"]["name"])
        yield from _owners(job) if job else ()


def _owners(child: Object) -> Iterator[Key]:
    metadata = child["metadata"]
    for owner in metadata.get("ownerReferences") or []:
        if owner.get("controller") and owner["kind"] in frozenset(Kind):
            yield Key(Kind(owner["kind"]), metadata["namespace"], owner["name"])
