"""Optional APIs, looked for at run time: taken up where they are served, given up where not.

The API server's own discovery is asked every few seconds: one small answer tells of all groups,
needs no right, and costs less than a watch of CustomResourceDefinitions, whose objects are large.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import structlog

from poolwise.cluster import clock
from poolwise.cluster.cache import Cache
from poolwise.cluster.following import Follower, Listener, Silent
from poolwise.cluster.kube import Kube
from poolwise.cluster.listing import scopes
from poolwise.cluster.patience import Patience, pause_seconds
from poolwise.cluster.readiness import Readiness
from poolwise.cluster.resources import BESIDE, OPTIONAL, OptionalApi, Resource
from poolwise.errors import ClusterError, Forbidden, NotFound, Unauthorized, Unreachable
from poolwise.settings import Settings

_log = structlog.get_logger(__name__)

_WHAT = "optional APIs"


@dataclass(frozen=True, slots=True)
class _InUse:
    """An API that is read now."""

    version: str
    watches: tuple[asyncio.Task[None], ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing stands against reading it any more."""
        return not any(watch.done() for watch in self.watches)


class OptionalApis:
    """Which optional APIs can be used now; the cache holds what they say."""

    def __init__(
        self, kube: Kube, watches: Kube, cache: Cache, settings: Settings, readiness: Readiness
    ) -> None:
        """``watches`` is a client with connections of its own."""
        self._kube = kube
        self._watches = watches
        self._cache = cache
        self._settings = settings
        self._readiness = readiness
        self._in_use: dict[str, _InUse] = {}
        self._beside: dict[Resource, tuple[asyncio.Task[None], ...]] = {}
        """Watches of what objects of APIs in use point to."""
        self._problems: dict[str, str] = {}
        """Why something cannot be read, as it was logged."""
        self._listener: Listener = Silent(cache)

    async def open(self) -> None:
        """Take up what is served, before anything is decided: what runs there must be known."""
        for usual_seconds in Patience():
            try:
                await self._look()
                return self._readiness.answered(_WHAT)
            except ClusterError as error:
                self._tell(error)
                await asyncio.sleep(pause_seconds(error, usual_seconds))

    def _tell(self, error: ClusterError) -> None:
        if isinstance(error, Unreachable | Unauthorized):
            self._readiness.unavailable(error)
        else:  # an API of others may be broken by itself
            self._readiness.blocked(_WHAT, f"optional APIs cannot be read: {error}")

    def listen(self, listener: Listener) -> None:
        """From now on ``listener`` is told of events, and of APIs that come or go."""
        self._listener = listener

    async def run(self) -> None:
        """Look for ever."""
        try:
            while True:
                await asyncio.sleep(self._settings.discovery_seconds * clock.jitter())
                await self.look()
        finally:
            for group in list(self._in_use):
                await self._stop(group)
            for watches in self._beside.values():
                await _ended(watches)

    async def look(self) -> None:
        """Look once; an API server that does not answer changes nothing."""
        before = dict(self._cache.apis), dict(self._cache.apis_off)
        try:
            await self._look()
            self._solved(_WHAT)
        except ClusterError as error:
            self._complain(_WHAT, str(error))
        if before != (self._cache.apis, self._cache.apis_off):
            self._listener.touch_all()

    async def _look(self) -> None:
        """:raises ClusterError: for the first that could not be read, after all were tried."""
        served = await self._kube.groups()
        steps = [
            *(partial(self._weigh, api, served.get(api.group, ())) for api in OPTIONAL),
            *(partial(self._accompany, resource) for resource in BESIDE),
        ]
        errors: list[ClusterError] = []
        for step in steps:
            try:
                await step()
            except ClusterError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    async def _weigh(self, api: OptionalApi, served: Iterable[str]) -> None:
        versions = {each: await self._missing(api, each) for each in api.versions if each in served}
        version = next((each for each, missing in versions.items() if not missing), None)
        known = self._in_use.get(api.group)
        if known is not None:
            is_lost = version is None and await self._is_gone(api, known.version)
            if known.is_whole and not is_lost and version in (None, known.version):
                return
            await self._stop(api.group)
        if version is not None:
            await self._try(api, version)
        else:
            self._give_up(api, None if api.shares_group else _mismatch(api, served, versions))

    async def _accompany(self, resource: Resource) -> None:
        """Follow what objects of other APIs point to, while one of these is in use."""
        watches = self._beside.get(resource, ())
        is_wanted = any(api.group in self._in_use for api in OPTIONAL if resource in api.beside)
        if is_wanted and watches and not any(watch.done() for watch in watches):
            return
        await _ended(self._beside.pop(resource, ()))
        if not is_wanted:
            self._cache.clear(resource)
            self._problems.pop(str(resource), None)
            return
        namespaces = tuple(scopes(resource, self._settings))
        try:
            for namespace in namespaces:
                await self._read(resource, namespace)
        except Forbidden as error:
            return self._complain(str(resource), str(error))
        self._solved(str(resource))
        self._beside[resource] = tuple(self._follow(resource, each) for each in namespaces)

    def _complain(self, what: str, problem: str) -> None:
        if self._problems.get(what) != problem:
            _log.warning("cannot be read; tried again later", what=what, error=problem)
        self._problems[what] = problem

    def _solved(self, what: str) -> None:
        if self._problems.pop(what, None):
            _log.info("can be read again", what=what)

    async def _missing(self, api: OptionalApi, version: str) -> list[str]:
        """Kinds that are not served in that version."""
        found = await self._kube.discovered(api.group, version)
        return [resource.kind for resource in api.resources if resource.plural not in found]

    async def _is_gone(self, api: OptionalApi, version: str) -> bool:
        """Whether a list says the same as discovery, which an API server that starts fills late."""
        try:
            await self._kube.peek(api.resources[0].at(version))
        except NotFound:
            return True
        except Forbidden:
            pass
        return False

    async def _try(self, api: OptionalApi, version: str) -> None:
        """Read all of an API, and follow it from then on."""
        targets = [
            (resource.at(version), namespace)
            for resource in api.resources
            for namespace in scopes(resource, self._settings)
        ]
        try:
            for resource, namespace in targets:
                await self._read(resource, namespace)
        except NotFound:
            return self._give_up(api, None)  # it goes, or has only just come
        except Forbidden as error:
            return self._give_up(api, _forbidden(api, error), is_there=True)
        if self._cache.apis.get(api.group) != version:
            _log.info("an optional API is used", api=api.product, version=version)
        self._cache.apis[api.group] = version
        self._cache.apis_off.pop(api.group, None)
        self._in_use[api.group] = _InUse(version, tuple(self._follow(*each) for each in targets))

    async def _read(self, resource: Resource, namespace: str | None) -> None:
        async for page in self._kube.pages(resource, namespace):
            for document in page:
                self._listener.see(resource, None, document)

    def _follow(self, resource: Resource, namespace: str | None) -> asyncio.Task[None]:
        follower = Follower(self._watches, self._cache, lambda: self._listener, resource, namespace)
        name = f"watch {resource.path(namespace)}"
        return asyncio.create_task(follower.run(), name=name)

    def _give_up(self, api: OptionalApi, why: str | None, is_there: bool = False) -> None:
        """Use an API no more; ``why`` tells users what could be done about it.

        What was known of it is forgotten, unless it ``is_there``: then what runs still runs.
        """
        if self._cache.apis.pop(api.group, None) is not None:
            _log.warning("an optional API is used no more", api=api.product, reason=why or "gone")
        elif why and self._cache.apis_off.get(api.group) != why:
            _log.warning("an optional API cannot be used", api=api.product, reason=why)
        if why:
            self._cache.apis_off[api.group] = why
        else:
            self._cache.apis_off.pop(api.group, None)
        for resource in () if is_there else api.resources:
            self._cache.clear(resource)

    async def _stop(self, group: str) -> None:
        await _ended(self._in_use.pop(group).watches)


async def _ended(watches: Iterable[asyncio.Task[None]]) -> None:
    for watch in watches:
        watch.cancel()
    for ended in await asyncio.gather(*watches, return_exceptions=True):
        if isinstance(ended, Exception):
            _log.error("a watch failed", exc_info=ended)


def _mismatch(
    api: OptionalApi, served: Iterable[str], missing: Mapping[str, list[str]]
) -> str | None:
    """Why an API that is there cannot be spoken; None for one that is not there."""
    found = ", ".join(served)
    if not found:
        return None
    for version, kinds in missing.items():
        return f"{api.group}/{version} is served without {', '.join(kinds)}, which Poolwise needs"
    spoken = " or ".join(api.versions)
    return f"{api.product} serves {api.group} in {found}; Poolwise speaks {spoken}"


def _forbidden(api: OptionalApi, error: Forbidden) -> str:
    return (
        f"{api.product} is installed, but Poolwise may not read it: {error}; "
        "the chart's roles give this right (files/rights.yaml)"
    )
