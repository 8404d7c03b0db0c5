"""Whether each watch is alive, judged by the bytes that arrive: events, or a bookmark a minute.

kopf does not hand bookmarks on, and a watch that hangs looks just like a quiet cluster, so the
connections themselves are looked at. So are the refusals, and answers that are none: kopf would end
at a kind that vanished, at a list that grew too old half-way, and at the page of a proxy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from math import inf
from typing import Any, cast

import aiohttp

from poolwise.cluster.patience import (
    RETRY_AFTER_LIMIT_SECONDS,
    Relists,
    retry_after_seconds,
)
from poolwise.cluster.readiness import Readiness
from poolwise.cluster.resources import Resource
from poolwise.cluster.streams import EXPIRED, Lines, TooOld, broken
from poolwise.errors import ClusterError, Forbidden, NotFound

_REFUSALS: dict[int, type[ClusterError]] = {403: Forbidden, 404: NotFound}
_TOO_MANY = 429
_KNOWN_TO_KOPF = (401, 403, 404)
_JSON = "application/json"


class KindIsGone(aiohttp.ClientConnectionError):
    """The API server does not serve a kind (any more).

    kopf takes it for a broken connection, and tries again until the kind is back.
    """


class NotKubernetes(aiohttp.ClientConnectionError):
    """Somebody else answers, such as the login page of a proxy; kopf tries again, as above."""


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
        self._relists: dict[str, Relists] = {}
        self._listed: set[Resource] = set()
        self._silent_at_seconds = -inf
        """When the API server was last known not to answer."""

    def require(self, watches: Iterable[tuple[Resource, str | None]]) -> None:
        """These must exist from now on: one that never opens grows old like any other."""
        now = self._monotonic_seconds()
        self._watches = {
            resource.path(namespace): _Watch(resource, now) for resource, namespace in watches
        }
        self._relists = {path: Relists(self._monotonic_seconds) for path in self._watches}

    def opened(self, path: str, response: aiohttp.ClientResponse) -> None:
        """A watch was answered, for the first time or again."""
        watch = self._watches[path]
        self._watches[path] = _Watch(watch.resource, self._monotonic_seconds(), response)
        self._readiness.solved(f"watch {path}")

    def listed(self) -> set[Resource]:
        """Kinds that kopf has listed since this was last asked: what is gone is not in a list, and
        of one without any object kopf hands nothing on."""
        kinds, self._listed = self._listed, set()
        return kinds

    def refused(self, path: str, error: ClusterError) -> None:
        """A watch or its list was refused.

        That is a sign of life: kopf asks again, and a new process would be told the same.
        """
        watch = self._watches[path] = _Watch(
            self._watches[path].resource, self._monotonic_seconds()
        )
        self._readiness.refused(f"watch {path}", watch.resource, error)

    def ages_seconds(self) -> dict[str, float]:
        """Time since each watch was last seen to receive anything; call this every few seconds."""
        now = self._monotonic_seconds()
        if self._readiness.waits_for_server:
            self._silent_at_seconds = now
        for watch in self._watches.values():
            received = watch.response.content.total_bytes if watch.response else 0
            if received > watch.received_bytes:
                watch.received_bytes, watch.seen_at_seconds = received, now
        return {path: now - watch.seen_at_seconds for path, watch in self._watches.items()}

    def hung(self, limit_seconds: float) -> list[str]:
        """Watches that have received nothing for longer, though the API server answered others."""
        ages = self.ages_seconds()
        answers_seconds = self._monotonic_seconds() - self._silent_at_seconds
        return [path for path, age in ages.items() if min(age, answers_seconds) > limit_seconds]

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
        :raises NotKubernetes: for an answer that is not the API server's.
        :raises Broken: for a list that cannot be read to its end, as one that is too old (410).
        :raises RuntimeError: when the session was closed meanwhile, as kopf knows it: aiohttp
            begins a request again whose connection went, finds no connector, and fails to say so.
        """
        try:
            response = await handler(request)
        except AssertionError as error:
            if request.session.closed:
                raise RuntimeError("Session is closed") from error
            raise
        path = self._path(request.url.path)
        if path:
            try:
                await self._inspect(path, response, is_watch="watch" in request.url.query)
            except aiohttp.ClientError:
                response.close()
                raise
        return response

    async def _inspect(self, path: str, response: aiohttp.ClientResponse, is_watch: bool) -> None:
        if response.status in _REFUSALS:
            message = f"watch {path}: {await _message(response)}"
            self.refused(path, _REFUSALS[response.status](message))
            if response.status == 404:
                raise KindIsGone(path)
        elif response.status == EXPIRED and is_watch:
            self._expired(path, response)
        elif _ends_kopf(response):
            problem = f"{response.status} {await _message(response)}"
            asked_seconds = retry_after_seconds(response.headers.get("Retry-After", ""))
            raise await broken(path, problem, asked_seconds)
        elif response.ok and response.content_type != _JSON:
            problem = f"watch {path}: the answer is {response.content_type} instead of {_JSON}"
            self.refused(path, ClusterError(problem))
            raise NotKubernetes(problem)
        elif response.ok and is_watch:
            self.opened(path, response)
            self._read_by_lines(path, response, response.content)
        elif response.ok and not (await response.read()).rstrip().endswith(b"}"):
            raise await broken(path, "its list has no end")
        elif response.ok:
            self._listed.add(self._watches[path].resource)

    def _expired(self, path: str, response: aiohttp.ClientResponse) -> None:
        """A watch that cannot go on, as kopf hears of it; it is opened when kopf has listed."""
        response.release()
        response.status = HTTPStatus.OK
        self._read_by_lines(path, response, TooOld())

    def _read_by_lines(
        self, path: str, response: aiohttp.ClientResponse, content: aiohttp.StreamReader | TooOld
    ) -> None:
        response.content = cast(Any, Lines(content, path, self._relists[path]))

    def _path(self, path: str) -> str | None:
        """The watch of that path; a proxy that serves several clusters puts a prefix before it."""
        return next((known for known in self._watches if path.endswith(known)), None)


def _ends_kopf(response: aiohttp.ClientResponse) -> bool:
    """Whether kopf, and the process with it, ends at an answer instead of asking again, or asks
    again next year."""
    if response.status == _TOO_MANY:  # a date, as proxies write it, is more than it can read
        seconds = retry_after_seconds(response.headers.get("Retry-After", "0"))
        return seconds in (None, RETRY_AFTER_LIMIT_SECONDS)
    return 400 <= response.status < 500 and response.status not in _KNOWN_TO_KOPF


async def _message(response: aiohttp.ClientResponse) -> str:
    """The API server's sentence, in one line."""
    try:
        return " ".join(str((await response.json())["message"]).split())
    except (aiohttp.ClientError, ValueError, KeyError, TypeError):
        return f"{response.status} {response.reason}"
