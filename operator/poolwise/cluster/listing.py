"""Lists: the first one fills the cache before anything is decided, later ones drop ghosts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import structlog

from poolwise.cluster.cache import Cache
from poolwise.cluster.kube import Kube
from poolwise.cluster.resources import WATCHED, Resource
from poolwise.errors import ClusterError, InvalidInput, NotFound, Unavailable
from poolwise.plan.names import GROUP
from poolwise.plan.observed import Object
from poolwise.settings import Settings

_log = structlog.get_logger(__name__)

_PAUSE_SECONDS = 1.0
"""An API server that restarts, or has just got our CRDs, says "come back" for a second or so."""


async def fill(cache: Cache, kube: Kube, settings: Settings) -> None:
    """Read everything that is watched, page by page, however long the API server is away.

    :raises InvalidInput: when the custom resources are not installed.
    """
    for resource in WATCHED:
        for namespace in scopes(resource, settings):
            await _fill(cache, kube, resource, namespace)
    cache.synced.set()


async def _fill(cache: Cache, kube: Kube, resource: Resource, namespace: str | None) -> None:
    while True:
        try:
            async for page in kube.pages(resource, namespace):
                for document in page:
                    cache.put(resource, document)
        except NotFound as error:
            raise _missing(resource) from error
        except Unavailable as error:
            _log.warning("the API server is not ready yet", error=str(error))
            await asyncio.sleep(error.retry_after_seconds or _PAUSE_SECONDS)
        else:
            return


async def prune(
    cache: Cache, kube: Kube, resource: Resource, namespace: str | None
) -> list[Object]:
    """Drop what the API server no longer has; the objects that were dropped."""
    known = cache.uids(resource, namespace)
    listed: set[str] = set()
    try:
        async for page in kube.pages(resource, namespace, metadata_only=True):
            listed.update(document["metadata"]["uid"] for document in page)
    except ClusterError as error:
        _log.warning("a list failed; tried again later", resource=str(resource), error=str(error))
        return []
    return cache.drop(resource, known - listed)


def scopes(resource: Resource, settings: Settings) -> Iterable[str | None]:
    """Namespaces to look into for this kind; None is all of them, or the cluster."""
    return settings.namespaces if resource.namespaced and settings.namespaces else (None,)


def _missing(resource: Resource) -> InvalidInput:
    if resource.group == GROUP:
        how = "install Poolwise's custom resources first: kubectl apply --server-side -f crds/"
    else:
        how = "Poolwise needs Kubernetes 1.34 or newer"
    return InvalidInput(f"{resource}", f"the API server does not know this kind; {how}")
