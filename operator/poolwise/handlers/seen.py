"""What there is of one workload: what was made for it, and the pods that these made."""

from __future__ import annotations

from collections.abc import Iterator

from poolwise.cluster.cache import Cache
from poolwise.plan.observed import Object
from poolwise.plan.status.pods import Live


def seen_of(cache: Cache, workload: Object) -> Live:
    """Children of a workload, with what keeps a Job from creating its pods, and its pods."""
    uid = workload["metadata"]["uid"]
    children = [*cache.ended_of(uid), *cache.children_of(uid)]
    owners = [*children, *_below(cache, children)]
    pods = [pod for pod in cache.pods_of(workload) if is_of_any(pod, owners)]
    failures = map(cache.failed_creation_of, filter(_lacks_pods, owners))
    return Live([*children, *filter(None, failures)], pods)


def _below(cache: Cache, children: list[Object]) -> Iterator[Object]:
    """What children made in turn: a TrainJob its JobSet, and that its Job."""
    for child in children:
        own = cache.children_of(child["metadata"]["uid"])
        yield from own
        yield from _below(cache, own)


def _lacks_pods(child: Object) -> bool:
    """Whether this is a Job that has fewer pods than it should run now."""
    spec, status = child.get("spec") or {}, child.get("status") or {}
    created = (status.get("active") or 0) + (status.get("succeeded") or 0)
    return child["kind"] == "Job" and created < (spec.get("parallelism") or 0)


def is_of_any(pod: Object, children: list[Object]) -> bool:
    """Whether one of the children made the pod: labels alone could be anybody's.

    A Deployment's pods name a ReplicaSet, and those of a LeaderWorkerSet a StatefulSet, which are
    not watched; they bear the child's name.
    """
    owners = pod["metadata"].get("ownerReferences") or []
    uids = {child["metadata"]["uid"] for child in children}
    names = {(child["kind"], child["metadata"]["name"]) for child in children}
    return any(
        owner["uid"] in uids or _is_between(owner, names)
        for owner in owners
        if owner.get("controller")
    )


def _is_between(owner: Object, names: set[tuple[str, str]]) -> bool:
    """Whether this is a ReplicaSet or StatefulSet of one of the children, or of its leader."""
    child = {"ReplicaSet": "Deployment", "StatefulSet": "LeaderWorkerSet"}.get(owner["kind"])
    name, stem = owner["name"], owner["name"].rpartition("-")[0]
    return (child, stem) in names or (child == "LeaderWorkerSet" and (child, name) in names)
