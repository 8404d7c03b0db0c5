"""Writes: only while we lead, counted, and known to the cache as soon as they are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from poolwise.cluster.cache import Cache, name_of
from poolwise.cluster.kube import Kube
from poolwise.cluster.resources import Resource, owner_uid, resource_of
from poolwise.errors import NameTaken, Unavailable
from poolwise.plan.observed import Object


class Writer:
    """Changes to the cluster."""

    def __init__(self, kube: Kube, cache: Cache, may_write: Callable[[], bool]) -> None:
        self._kube = kube
        self._cache = cache
        self._may_write = may_write

    async def apply(self, document: Object) -> Object:
        """Apply an object of ours.

        :raises NameTaken: when an object of that name belongs to somebody else.
        """
        resource = resource_of(document)
        await self._check_name(resource, document)
        self._check_lead()
        applied = await self._kube.apply(document)
        self._cache.put(resource, applied)
        return applied

    async def patch(self, document: Object, changes: Object, subresource: str = "") -> Object:
        """Merge ``changes`` into an object, or into its ``status``."""
        self._check_lead()
        patched = await self._kube.patch(document, changes, subresource)
        self._cache.put(resource_of(document), patched)
        return patched

    async def delete(self, document: Object) -> None:
        """Delete an object, with what it owns."""
        self._check_lead()
        await self._kube.delete(document)
        self._cache.remove(resource_of(document), document)

    async def create(self, document: dict[str, Any]) -> None:
        """Create an object that the cache does not hold, such as an Event."""
        self._check_lead()
        await self._kube.create(document)

    async def _check_name(self, resource: Resource, document: Object) -> None:
        """An apply by force would take an object of that name over, whoever made it."""
        known = self._cache.get(resource, *name_of(document))
        if known is None:
            # Watches select by our label, so that an object without it is not in the cache.
            known = await self._kube.get(resource, *name_of(document))
        if known is not None and owner_uid(known) != owner_uid(document):
            raise NameTaken(
                f"{resource.kind} {document['metadata']['name']} exists and is not ours"
            )

    def _check_lead(self) -> None:
        if not self._may_write():
            raise Unavailable("this process does not lead (any more)")
