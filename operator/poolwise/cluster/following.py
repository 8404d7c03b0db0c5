"""A kind that may come and go, followed by watches of our own: kopf looks for kinds once only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

import structlog

from poolwise.cluster import clock
from poolwise.cluster.cache import Cache
from poolwise.cluster.kube import Kube
from poolwise.cluster.kube_errors import Expired
from poolwise.cluster.listing import prune
from poolwise.cluster.patience import Patience, Relists, pause_seconds
from poolwise.cluster.resources import Resource
from poolwise.errors import ClusterError, Forbidden, NotFound
from poolwise.plan.observed import Object

_log = structlog.get_logger(__name__)

_PAUSE_SECONDS = 0.5
"""After a stream that ended: an API server that ends each at once is not asked in a tight loop."""


class Listener(Protocol):
    """Who is told of what changes."""

    def see(self, resource: Resource, change: str | None, document: Object) -> None:
        """Take an event in, and remember it."""

    def touch(self, resource: Resource, document: Object) -> None:
        """Something was found to be gone, and is forgotten already."""

    def touch_all(self) -> None:
        """An API came or went."""


class Silent:
    """Before anybody listens: events are remembered, and that is all."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def see(self, resource: Resource, change: str | None, document: Object) -> None:
        """Remember it."""
        if change == "DELETED":
            self._cache.remove(resource, document)
        else:
            self._cache.put(resource, document)

    def touch(self, resource: Resource, document: Object) -> None:
        """Nobody is there."""

    def touch_all(self) -> None:
        """Nobody is there."""


class Follower:
    """Keeps one kind of one namespace (None: all) in the cache, until it is gone or forbidden."""

    def __init__(
        self,
        kube: Kube,
        cache: Cache,
        listener: Callable[[], Listener],
        resource: Resource,
        namespace: str | None,
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._listener = listener
        self._resource = resource
        self._namespace = namespace
        self._relists = Relists(time.monotonic)
        self._version: str | None = None
        """To go on from; None: everything that is there is sent anew."""

    async def run(self) -> None:
        """Follow for as long as the kind may be read: its end is for discovery to judge."""
        pauses = iter(Patience())
        while True:
            try:
                await self._follow()
                pauses = iter(Patience())
                await asyncio.sleep(_PAUSE_SECONDS * clock.jitter())
            except (NotFound, Forbidden) as error:
                _log.info("a watch ended", resource=str(self._resource), error=str(error))
                return
            except Expired:
                self._version = None
                await asyncio.sleep(self._relists.pause_seconds())
            except ClusterError as error:
                _log.info("a watch broke", resource=str(self._resource), error=str(error))
                await asyncio.sleep(pause_seconds(error, next(pauses)))

    async def _follow(self) -> None:
        """One stream from its beginning to its end."""
        if self._version is None:  # what vanished unseen is in no event
            for ghost in await prune(self._cache, self._kube, self._resource, self._namespace):
                self._listener().touch(self._resource, ghost)
        async for change, document in self._kube.watch(
            self._resource, self._namespace, self._version
        ):
            self._version = self._after(change, document)
            if change != "BOOKMARK":
                self._listener().see(self._resource, change, document)

    def _after(self, change: str, document: Object) -> str | None:
        """Where to go on after an event: nowhere while it may be of those that tell what is there.
        These come in any order, so that after one of them older changes may be missing still."""
        if self._version is None and change == "ADDED":
            return None
        version: str | None = document["metadata"].get("resourceVersion")
        return version
