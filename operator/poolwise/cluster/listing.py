"""Lists: the first one fills the cache before anything is decided, later ones drop ghosts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from poolwise.cluster.cache import Cache
from poolwise.cluster.kube import Kube
from poolwise.cluster.patience import Patience, pause_seconds
from poolwise.cluster.readiness import WAITS_FOR, Readiness
from poolwise.cluster.resources import WATCHED, Resource
from poolwise.errors import NotFound
from poolwise.plan.names import GROUP
from poolwise.plan.observed import Object
from poolwise.settings import Settings


def targets(settings: Settings) -> tuple[tuple[Resource, str | None], ...]:
    """Every list that we read: kinds, and where."""
    return tuple(
        (resource, namespace) for resource in WATCHED for namespace in scopes(resource, settings)
    )


async def fill(cache: Cache, kube: Kube, settings: Settings, readiness: Readiness) -> None:
    """Read everything that is watched, page by page, however long something is in the way."""
    for resource, namespace in targets(settings):
        await _until_answered(resource, namespace, readiness, lambda *of: _read(cache, kube, *of))
        readiness.answered(resource.path(namespace))


async def _until_answered(
    resource: Resource,
    namespace: str | None,
    readiness: Readiness,
    read: Callable[[Resource, str | None], Awaitable[None]],
) -> None:
    for usual_seconds in Patience():
        try:
            return await read(resource, namespace)
        except WAITS_FOR as error:
            readiness.refused(resource.path(namespace), resource, error)
            await asyncio.sleep(pause_seconds(error, usual_seconds))


async def _read(cache: Cache, kube: Kube, resource: Resource, namespace: str | None) -> None:
    async for page in kube.pages(resource, namespace):
        for document in page:
            cache.put(resource, document)
    # A kind that was just installed can be listed before discovery tells of it; kopf looks there,
    # once, and would never watch it.
    if resource.group == GROUP and resource.plural not in await kube.discovered(
        resource.group, resource.version
    ):
        raise NotFound(f"{resource} is not in the API server's discovery yet")


async def prune(
    cache: Cache, kube: Kube, resource: Resource, namespace: str | None
) -> list[Object]:
    """Drop what the API server no longer has; the objects that were dropped.

    :raises ClusterError: when it cannot be listed; then nothing is dropped.
    """
    known = cache.uids(resource, namespace)
    listed: set[str] = set()
    async for page in kube.pages(resource, namespace, metadata_only=True):
        listed.update(document["metadata"]["uid"] for document in page)
    return cache.drop(resource, known - listed)


def scopes(resource: Resource, settings: Settings) -> Iterable[str | None]:
    """Namespaces to look into for this kind; None is all of them, or the cluster."""
    return settings.namespaces if resource.namespaced and settings.namespaces else (None,)
