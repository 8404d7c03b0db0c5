"""Whether each watch is alive, judged by the bytes that arrive: events, or a bookmark a minute.

kopf does not hand bookmarks on, and a watch that hangs looks just like a quiet cluster, so the
connections themselves are looked at. So are the refusals: kopf would end at a kind that vanished.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import aiohttp

from poolwise.cluster.readiness import Readiness
from poolwise.cluster.resources import Resource
from poolwise.errors import ClusterError, Forbidden, NotFound

_REFUSALS: dict[int, type[ClusterError]] = {403: Forbidden, 404: NotFound}


class KindIsGone(aiohttp.ClientConnectionError):
    """The API server does not serve a kind (any more).

    kopf takes it for a broken connection, and tries again until the kind is back.
    """


@dataclass
class _Watch:
    """One stream, and when it last grew."""

    resource: Resource
    seen_at_seconds: float
    response: aiohttp.ClientResponse | None = None
    received_bytes: int = 0


class Freshness:
    """Ages of the watches of a session that has :meth:`middleware`."""

    def __init__(self, monotonic_seconds: Callable[[], float], readiness: Readiness) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._readiness = readiness
        self._watches: dict[str, _Watch] = {}

    def require(self, watches: Iterable[tuple[Resource, str | None]]) -> None:
        """These must exist from now on: one that never opens grows old like any other."""
        now = self._monotonic_seconds()
        self._watches = {
            resource.path(namespace): _Watch(resource, now) for resource, namespace in watches
        }

    def opened(self, path: str, response: aiohttp.ClientResponse) -> None:
        """A watch was answered, for the first time or again."""
        watch = self._watches[path]
        self._watches[path] = _Watch(watch.resource, self._monotonic_seconds(), response)
        self._readiness.solved(f"watch {path}")

    def refused(self, path: str, status: int, message: str) -> None:
        """A watch or its list was refused.

        That is a sign of life: kopf asks again, and a new process would be told the same.
        """
        watch = self._watches[path] = _Watch(
            self._watches[path].resource, self._monotonic_seconds()
        )
        error = _REFUSALS[status](f"watch {path}: {message}")
        self._readiness.refused(f"watch {path}", watch.resource, error)

    def ages_seconds(self) -> dict[str, float]:
        """Time since each watch was last seen to receive anything; call this every few seconds."""
        now = self._monotonic_seconds()
        for watch in self._watches.values():
            received = watch.response.content.total_bytes if watch.response else 0
            if received > watch.received_bytes:
                watch.received_bytes, watch.seen_at_seconds = received, now
        return {path: now - watch.seen_at_seconds for path, watch in self._watches.items()}

    def oldest_seconds(self) -> dict[str, float]:
        """Age of the oldest watch of each kind: there is one in each namespace that is served."""
        oldest: dict[str, float] = {}
        for path, age in self.ages_seconds().items():
            plural = self._watches[path].resource.plural
            oldest[plural] = max(age, oldest.get(plural, 0.0))
        return oldest

    async def middleware(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Look at the answer to each request of the session.

        :raises KindIsGone: for a kind that is watched and not there.
        """
        response = await handler(request)
        path = self._path(request.url.path)
        if path and response.ok and request.url.query.get("watch"):
            self.opened(path, response)
        elif path and response.status in _REFUSALS:
            self.refused(path, response.status, await _message(response))
            if response.status == 404:
                response.close()
                raise KindIsGone(path)
        return response

    def _path(self, path: str) -> str | None:
        """The watch of that path; a proxy that serves several clusters puts a prefix before it."""
        return next((known for known in self._watches if path.endswith(known)), None)


async def _message(response: aiohttp.ClientResponse) -> str:
    """The API server's sentence, in one line."""
    try:
        return " ".join(str((await response.json())["message"]).split())
    except (aiohttp.ClientError, ValueError, KeyError, TypeError):
        return f"{response.status} {response.reason}"
