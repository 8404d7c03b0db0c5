"""The lines of a watch as kopf reads them: one that cannot be read breaks the stream, and no more.

kopf ends, and the operator with it, at a line that is no event (the half of one with which a stream
ended, a page of a proxy) and at any error but 410 that a stream tells of. What broke it opens anew,
after the last event that it knows.

410 says that this event is too old to go on from. kopf then lists anew, if it is told by a line of
the stream; told by the status of the answer, it would ask for the same again for ever.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import structlog

from poolwise.cluster import clock
from poolwise.cluster.patience import Relists

_log = structlog.get_logger(__name__)

_PAUSE_SECONDS = 1.0
"""kopf asks again at once."""
EXPIRED = 410
_ERROR = b'{"type":"ERROR"'
_SHOWN = 80
"""Characters of a line that are logged."""


class Broken(aiohttp.ClientPayloadError):
    """An answer that cannot be read to its end."""


async def broken(path: str, problem: str, pause_seconds: float | None = None) -> Broken:
    """What to raise for an answer of ``path``, in a while; it is logged at once."""
    _log.warning("a watch broke; opened again", watch=path, problem=problem)
    await asyncio.sleep(pause_seconds or _PAUSE_SECONDS * clock.jitter())
    return Broken(f"{path}: {problem}")


class TooOld:
    """The content of an answer 410, as the line of a stream that says the same."""

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        """That line, whatever ``size`` it has."""
        status = {"kind": "Status", "code": EXPIRED, "message": "too old"}
        event = {"type": "ERROR", "object": status}
        yield json.dumps(event, separators=(",", ":")).encode() + b"\n"


class Lines:
    """The content of an answer, in whole lines that are events."""

    def __init__(self, content: aiohttp.StreamReader | TooOld, path: str, relists: Relists) -> None:
        self._content = content
        self._path = path
        self._relists = relists

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        """Line by line, whatever ``size`` they have.

        :raises Broken: at the first that is no event, and at one that has no end.
        """
        rest = b""
        async for chunk in self._content.iter_chunked(size):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if problem := _problem(line):
                    raise await broken(self._path, problem)
                if line.startswith(_ERROR):
                    await self._rest()
                yield line + b"\n"
        if rest:
            raise await broken(self._path, f"it ended inside a line: {_shown(rest)}")

    async def _rest(self) -> None:
        """Before kopf lists anew."""
        _log.info("a watch is too old; listed anew", watch=self._path)
        await asyncio.sleep(self._relists.pause_seconds())


def _problem(line: bytes) -> str:
    """What is wrong with a line. Those of events are parsed by kopf, and not here as well."""
    if line.startswith(_ERROR):
        return _error(line)
    is_event = not line or (line.startswith(b"{") and line.endswith(b"}"))
    return "" if is_event else f"a line is no event: {_shown(line)}"


def _error(line: bytes) -> str:
    try:
        status = json.loads(line)["object"]
        return "" if status["code"] == EXPIRED else f"{status['code']} {status.get('message')}"
    except (ValueError, LookupError, TypeError, AttributeError):
        return f"an error without a code: {_shown(line)}"


def _shown(line: bytes) -> str:
    return repr(line[:_SHOWN].decode(errors="replace"))
