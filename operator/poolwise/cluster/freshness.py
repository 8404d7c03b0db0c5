"""Whether each watch is alive, judged by the bytes that arrive: events, or a bookmark a minute.

kopf does not hand bookmarks on, and a watch that hangs looks just like a quiet cluster, so the
connections themselves are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import aiohttp


@dataclass
class _Watch:
    """One stream, and when it last grew."""

    seen_at_seconds: float
    response: aiohttp.ClientResponse | None = None
    received_bytes: int = 0


class Freshness:
    """Ages of the watches of a session that was made with :attr:`trace`."""

    def __init__(self, monotonic_seconds: Callable[[], float]) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._watches: dict[str, _Watch] = {}
        self.trace = aiohttp.TraceConfig()
        self.trace.on_request_end.append(self._on_request_end)

    def require(self, paths: Iterable[str]) -> None:
        """These watches must exist from now on: one that never opens grows old like any other."""
        now = self._monotonic_seconds()
        self._watches = {path: _Watch(now) for path in paths}

    def opened(self, path: str, response: aiohttp.ClientResponse) -> None:
        """A watch was answered, for the first time or again.

        ``path`` may have a prefix, where a proxy serves several clusters.
        """
        for known in self._watches:
            if path.endswith(known):
                self._watches[known] = _Watch(self._monotonic_seconds(), response)

    def ages_seconds(self) -> dict[str, float]:
        """Time since each watch was last seen to receive anything; call this every few seconds."""
        now = self._monotonic_seconds()
        for watch in self._watches.values():
            received = watch.response.content.total_bytes if watch.response else 0
            if received > watch.received_bytes:
                watch.received_bytes, watch.seen_at_seconds = received, now
        return {path: now - watch.seen_at_seconds for path, watch in self._watches.items()}

    async def _on_request_end(
        self, session: object, context: object, params: aiohttp.TraceRequestEndParams
    ) -> None:
        if params.url.query.get("watch") and params.response.ok:
            self.opened(params.url.path, params.response)
