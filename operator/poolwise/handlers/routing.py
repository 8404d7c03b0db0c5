"""From an object that changed to what has to be looked at."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from poolwise.cluster.cache import Cache
from poolwise.cluster.resources import (
    ACCELERATOR_POOLS,
    ADMISSION_CHECKS,
    AUTOSCALERS,
    CHILDREN,
    FAILED_CREATIONS,
    JOBS,
    PODS,
    QUEUED,
    RUNNERS,
    WORKLOADS,
    Resource,
)
from poolwise.handlers.planner import KueueObject, Target
from poolwise.plan.children.metadata import key_of
from poolwise.plan.decision import Key, Kind
from poolwise.plan.kueue.guests import our_checks
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
        # What a child made in turn (a JobSet its Job) names that child, and the workload by labels.
        yield from [*_owners(document)] or map(key_of, cache.workloads_of(document))
    elif resource is AUTOSCALERS:
        yield from _scaled(cache, document)
    elif resource == QUEUED:
        yield from _queued(cache, document)
    elif resource == ADMISSION_CHECKS and document["metadata"]["name"] in ours(cache):
        yield KueueObject("", document["metadata"]["name"])
    elif resource is FAILED_CREATIONS:
        job = cache.get(JOBS, document["metadata"]["namespace"], document["regarding"]["name"])
        # By labels: the Job may be a JobSet's.
        yield from map(key_of, cache.workloads_of(job)) if job else ()


def ours(cache: Cache) -> Collection[str]:
    """Names of the AdmissionChecks that Poolwise answers."""
    return our_checks(cache.stores[ADMISSION_CHECKS])


def _queued(cache: Cache, workload: Object) -> Iterator[Target]:
    """The job of ours that Kueue speaks of; and the Workload itself, if it waits for our check."""
    metadata = workload["metadata"]
    uids = {owner["uid"] for owner in metadata.get("ownerReferences") or []}
    for resource in RUNNERS:
        for owner in metadata.get("ownerReferences") or []:
            child = cache.get(resource, metadata["namespace"], owner["name"])
            if child is not None and child["metadata"]["uid"] in uids:
                yield from _owners(child)
    states = (workload.get("status") or {}).get("admissionChecks") or []
    if {each.get("name") for each in states} & {*ours(cache)}:
        yield KueueObject(metadata["namespace"], metadata["name"])


def _scaled(cache: Cache, autoscaler: Object) -> Iterator[Key]:
    """Whose number of replicas is somebody else's from now on, or no longer."""
    target = (autoscaler.get("spec") or {}).get("scaleTargetRef") or {}
    namespace = autoscaler["metadata"]["namespace"]
    for resource in RUNNERS:
        if resource.kind == target.get("kind"):
            child = cache.get(resource, namespace, str(target.get("name")))
            yield from _owners(child) if child else ()


def _owners(child: Object) -> Iterator[Key]:
    metadata = child["metadata"]
    for owner in metadata.get("ownerReferences") or []:
        if owner.get("controller") and owner["kind"] in frozenset(Kind):
            yield Key(Kind(owner["kind"]), metadata["namespace"], owner["name"])
