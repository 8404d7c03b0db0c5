"""The cluster as a process reads it that has just started."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from poolwise.cluster.cache import Cache
from poolwise.cluster.resources import CACHED, WATCHED
from poolwise.handlers.children import is_finished
from poolwise.handlers.isolation import without
from poolwise.plan.decision import Key
from poolwise.plan.observed import Object, Observed
from tests.fake_kube import FakeKube, _is_alike, _matches


def reading(cluster: FakeKube, running: Cache) -> Observed:
    """Every object as it is now, whatever watches have told.

    :param running: tells of load, and which optional APIs are in use.
    """
    cache = Cache()
    cache.apis, cache.apis_off = running.apis, running.apis_off
    cache.scaling, cache.overflow = running.scaling, running.overflow
    for resource in CACHED:
        if resource in WATCHED or resource.group in running.apis:
            for (kind, _, _), document in cluster.objects.items():
                if _is_alike(kind, resource) and _matches(resource, document):
                    cache.put(resource, document)
    return cache.observed()


def had_it_never_been(observed: Observed, others: Collection[Key]) -> Observed:
    """The same without what is over, and without ``others``, as if they had never asked."""
    ended = {each["metadata"]["uid"] for each in observed.training_jobs if is_finished(each)}
    left = without(observed, others)
    return replace(
        left,
        pods=tuple(each for each in left.pods if not _has_ended(each)),
        training_jobs=tuple(e for e in left.training_jobs if e["metadata"]["uid"] not in ended),
        children=tuple(each for each in left.children if not is_finished(each)),
    )


def _has_ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
