"""Writes: only while we lead, counted, and known to the cache as soon as they are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from poolwise.cluster.cache import Cache
from poolwise.cluster.kube import Kube
from poolwise.cluster.resources import Resource, owner_uid, resource_of
from poolwise.cluster.store import name_of
from poolwise.errors import NameTaken, Unavailable
from poolwise.plan.observed import Object


class Writer:
    """Changes to the cluster.

    A write that turned out to change nothing (the API server spells a value differently, or does
    not know a field) is not sent again until the object or the write changes.
    """

    def __init__(self, kube: Kube, cache: Cache, may_write: Callable[[], bool]) -> None:
        self._kube = kube
        self._cache = cache
        self._may_write = may_write

    async def apply(self, document: Object) -> Object:
        """Apply an object of ours; the object as it is then.

        :raises Conflict: when the one that is known has gone, and another may have its name.
        :raises NameTaken: when an object of that name belongs to somebody else.
        """
        resource = resource_of(document)
        live = await self._ours(resource, document)
        if live is not None and self._cache.stores[resource].is_futile(live, document):
            return live
        self._check_lead()
        applied = await self._kube.apply(_exactly(document, live))
        return self._written(resource, live, document, applied)

    async def patch(self, document: Object, changes: Object, subresource: str = "") -> Object:
        """Merge ``changes`` into an object, or into its ``status``; the object as it is then."""
        resource = resource_of(document)
        if self._cache.stores[resource].is_futile(document, changes):
            return document
        self._check_lead()
        patched = await self._kube.patch(document, changes, subresource)
        return self._written(resource, document, changes, patched)

    def _written(
        self, resource: Resource, before: Object | None, write: Object, after: Object
    ) -> Object:
        self._cache.put(resource, after)
        version = after["metadata"]["resourceVersion"]
        if before is not None and before["metadata"].get("resourceVersion") == version:
            self._cache.stores[resource].found_futile(after, write)
        return after

    async def delete(self, document: Object) -> None:
        """Delete an object, with what it owns."""
        self._check_lead()
        await self._kube.delete(document)
        self._cache.remove(resource_of(document), document)

    async def replace(self, live: Object, document: Object) -> None:
        """Delete an object, and apply another one of its name as soon as it is gone.

        One that takes its time (finalizers) stays known until the event of its end.
        """
        self._check_lead()
        resource = resource_of(live)
        await self._kube.delete(live)
        rest = await self._kube.get(resource, *name_of(live))
        if rest is not None:
            self._cache.put(resource, rest)
            return
        self._cache.remove(resource, live)
        await self.apply(document)

    async def create(self, document: dict[str, Any]) -> None:
        """Create an object that the cache does not hold, such as an Event."""
        self._check_lead()
        await self._kube.create(document)

    async def _ours(self, resource: Resource, document: Object) -> Object | None:
        """The live object. An apply by force would take one of that name over, whoever made it."""
        known = self._cache.get(resource, *name_of(document))
        if known is None:
            # Watches select by our label, so that an object without it is not in the cache.
            known = await self._kube.get(resource, *name_of(document))
        if known is not None and owner_uid(known) != owner_uid(document):
            raise NameTaken(
                f"{resource.kind} {document['metadata']['name']} exists and is not ours"
            )
        return known

    def _check_lead(self) -> None:
        if not self._may_write():
            raise Unavailable("this process does not lead (any more)")


def _exactly(document: Object, live: Object | None) -> Object:
    """``document`` for the live object alone: an apply by force takes over who has the name."""
    if live is None:
        return document
    return {**document, "metadata": {**document["metadata"], "uid": live["metadata"]["uid"]}}
