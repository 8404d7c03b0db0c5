"""Writes: only while we lead, and known to the cache as soon as they are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from poolwise.cluster.cache import Cache
from poolwise.cluster.kube import Kube
from poolwise.cluster.resources import Resource, controller, owner_uid, resource_of
from poolwise.cluster.store import Name, name_of
from poolwise.errors import NameEnds, NameTaken, NotLeading
from poolwise.plan.observed import Object


class Writer:
    """Changes to the cluster.

    A write that turned out to change nothing (the API server spells a value differently, or does
    not know a field) is not sent again until the object or the write changes.

    ``lead_seconds`` is how long we still lead at the least; 0 where no write may begin any more.
    """

    def __init__(self, kube: Kube, cache: Cache, lead_seconds: Callable[[], float]) -> None:
        self._kube = kube
        self._cache = cache
        self._lead_seconds = lead_seconds

    async def apply(self, document: Object) -> Object:
        """Apply an object of ours; the object as it is then.

        :raises Conflict: when the one that is known has gone, and another may have its name.
        :raises NameTaken: when an object of that name belongs to somebody else.
        """
        resource = resource_of(document)
        live = await self._ours(resource, document)
        if live is not None and self._cache.stores[resource].is_futile(live, document):
            return live
        applied = await self._kube.apply(_exactly(document, live), self._limit_seconds())
        return self._written(resource, live, document, applied)

    async def patch(self, document: Object, changes: Object, subresource: str = "") -> Object:
        """Merge ``changes`` into an object, or into its ``status``; the object as it is then."""
        resource = resource_of(document)
        if self._cache.stores[resource].is_futile(document, changes):
            return document
        limit_seconds = self._limit_seconds()
        patched = await self._kube.patch(document, changes, subresource, limit_seconds)
        return self._written(resource, document, changes, patched)

    def _written(
        self, resource: Resource, before: Object | None, write: Object, after: Object
    ) -> Object:
        self._cache.put(resource, after)
        version = after["metadata"]["resourceVersion"]
        if before is not None and before["metadata"].get("resourceVersion") == version:
            self._cache.stores[resource].found_futile(after, write)
        return after

    async def mark(self, resource: Resource, name: Name, owner: str, labels: Object) -> bool:
        """Give an object of ours back the labels by which it is watched; whether there is one that
        has lost them: then the cache holds it again.

        :param owner: the uid of whose it must be.
        """
        found = await self._kube.get(resource, *name)
        if found is None or owner_uid(found) != owner or "deletionTimestamp" in found["metadata"]:
            return False
        await self.patch(found, {"metadata": {"labels": labels}})
        return True

    async def delete(self, document: Object) -> None:
        """Delete an object, with what it owns."""
        await self._kube.delete(document, self._limit_seconds())
        self._cache.remove(resource_of(document), document, for_good=True)

    async def replace(self, live: Object, document: Object) -> None:
        """Delete an object, and apply another one of its name as soon as it is gone.

        One that takes its time (finalizers) stays known until the event of its end.
        """
        resource = resource_of(live)
        await self._kube.delete(live, self._limit_seconds())
        rest = await self._kube.get(resource, *name_of(live))
        if rest is not None:
            self._cache.put(resource, rest)
            return
        self._cache.remove(resource, live, for_good=True)
        await self.apply(document)

    async def create(self, document: dict[str, Any]) -> None:
        """Create an object that the cache does not hold, such as an Event."""
        await self._kube.create(document, self._limit_seconds())

    async def _ours(self, resource: Resource, document: Object) -> Object | None:
        """The live object. An apply by force would take one of that name over, whoever made it."""
        known = self._cache.get(resource, *name_of(document))
        if known is None:
            # Watches select by our label, so that an object without it is not in the cache.
            known = await self._kube.get(resource, *name_of(document))
        if known is not None and owner_uid(known) != owner_uid(document):
            raise taken(known, document)
        return known

    def _limit_seconds(self) -> float:
        """How long a write that begins now may take: then another may lead.

        :raises NotLeading: when none may begin.
        """
        seconds = self._lead_seconds()
        if seconds <= 0.0:
            raise NotLeading("this process does not lead (any more)")
        return seconds


def taken(live: Object, document: Object) -> NameTaken:
    """The error that the name of ``document`` is that of another one's object, with whose it is."""
    what = f"{live['kind']} {live['metadata']['name']}"
    owner, ours = controller(live), controller(document)
    whose = "is not ours"
    if owner:
        is_namesake = all(owner.get(each) == ours.get(each) for each in ("kind", "name"))
        earlier = "an earlier " if is_namesake else ""
        whose = f"belongs to {earlier}{owner.get('kind')} {owner.get('name')}"
    if "deletionTimestamp" in live["metadata"]:
        told = f"{what} {whose} and is being deleted: a new one is made once it is gone"
        return NameEnds(told)
    return NameTaken(f"{what} exists and {whose}")


def _exactly(document: Object, live: Object | None) -> Object:
    """``document`` for the live object alone: an apply by force takes over who has the name."""
    if live is None:
        return document
    return {**document, "metadata": {**document["metadata"], "uid": live["metadata"]["uid"]}}
