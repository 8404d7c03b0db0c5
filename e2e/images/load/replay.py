"""Replays a trace, and the program ``replay``: each request at its time, and what its sender felt.

Columns ``arrival_s,input_tokens,output_tokens``. The times of requests are kept whether or not
earlier ones were answered. How late the program itself was is told beside: what it did not send in
time, and what it could not look at in time, says nothing about who answers.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field
from typing import NoReturn

import aiohttp

from e2e.images.load.plan import Planned
from e2e.images.load.report import percentile

COLUMNS = ("arrival_s", "input_tokens", "output_tokens")
CONNECT_SECONDS = 10.0
TIMEOUT_SECONDS = 600.0
BEAT_SECONDS = 0.05
POLL_SECONDS = 0.05

Route = Callable[[], AbstractAsyncContextManager[str]]
"""Lends the URL of an engine for one request."""


@dataclass
class Told:
    """One request as its sender saw it; seconds since the replay began."""

    planned_seconds: float
    sent_seconds: float = 0.0
    first_seconds: float | None = None
    end_seconds: float | None = None
    error: str = ""


@dataclass
class Replayed:
    """All of them, and how late the program was."""

    began_seconds: float
    """Unix time."""
    requests: list[Told] = field(default_factory=list)
    beats_late_seconds: list[float] = field(default_factory=list)
    """By how much short sleeps overslept, all through the replay."""

    @property
    def late_seconds(self) -> float:
        """99th percentile of sending late and of looking late, whichever is worse."""
        sending = [max(each.sent_seconds - each.planned_seconds, 0.0) for each in self.requests]
        told = (percentile(values, 99.0) or 0.0 for values in (sending, self.beats_late_seconds))
        return max(told)


class LeastOutstanding:
    """Lends whoever has the fewest requests of ours, as inference gateways route."""

    def __init__(self, urls: Callable[[], Sequence[str]]) -> None:
        self._urls = urls
        self._outstanding: dict[str, int] = {}

    @contextlib.asynccontextmanager
    async def __call__(self) -> AsyncIterator[str]:
        """Waits while nobody is there."""
        while not (urls := self._urls()):
            await asyncio.sleep(POLL_SECONDS)
        chosen = min(urls, key=lambda url: self._outstanding.get(url, 0))
        self._outstanding[chosen] = self._outstanding.get(chosen, 0) + 1
        try:
            yield chosen
        finally:
            self._outstanding[chosen] -= 1


@contextlib.asynccontextmanager
async def _always(url: str) -> AsyncIterator[str]:
    yield url


async def replay(planned: Iterable[Planned], route: Route, model: str = "") -> Replayed:
    """Send everything and wait for every answer."""
    loop = asyncio.get_running_loop()
    limits = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS, connect=CONNECT_SECONDS)
    # A connection for each request: a Service spreads connections, and engines that end close them.
    connections = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(timeout=limits, connector=connections) as session:
        replayed, started = Replayed(time.time()), loop.time()
        heart = asyncio.create_task(_beat(replayed.beats_late_seconds))
        async with asyncio.TaskGroup() as group:
            for each in planned:
                await asyncio.sleep(max(0.0, started + each.at_seconds - loop.time()))
                told = Told(each.at_seconds, loop.time() - started)
                replayed.requests.append(told)
                group.create_task(_ask(session, each, told, route, model, started))
        heart.cancel()
        return replayed


async def _beat(late_seconds: list[float]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + BEAT_SECONDS
        await asyncio.sleep(BEAT_SECONDS)
        late_seconds.append(max(loop.time() - due, 0.0))


async def _ask(
    session: aiohttp.ClientSession,
    planned: Planned,
    told: Told,
    route: Route,
    model: str,
    started: float,
) -> None:
    loop = asyncio.get_running_loop()
    try:
        async with route() as url:
            async for _ in _events(session, url, planned, model):
                told.end_seconds = loop.time() - started
                if told.first_seconds is None:
                    told.first_seconds = told.end_seconds
    except (aiohttp.ClientError, TimeoutError) as error:
        told.error = str(error) or type(error).__name__
    if not told.error and told.end_seconds is None:
        told.error = "answered without a token"


async def _events(
    session: aiohttp.ClientSession, url: str, planned: Planned, model: str
) -> AsyncIterator[None]:
    body = {
        "model": model,
        "prompt": "w " * planned.input_tokens,
        "max_tokens": planned.output_tokens,
        "stream": True,
        "ignore_eos": True,
    }
    async with session.post(f"{url}/v1/completions", json=body) as response:
        response.raise_for_status()
        async for line in response.content:
            if line.startswith(b"data: {"):
                yield


def read(lines: Iterable[str]) -> list[Planned]:
    """The requests of a trace; raises ValueError with one sentence."""
    rows = csv.DictReader(lines)
    if missing := [name for name in COLUMNS if name not in (rows.fieldnames or ())]:
        raise ValueError(f"the header has no column {missing[0]}")
    return [
        Planned(float(row[COLUMNS[0]]), int(row[COLUMNS[1]]), int(row[COLUMNS[2]])) for row in rows
    ]


def as_json(replayed: Replayed) -> str:
    """For :func:`from_json`, elsewhere."""
    return json.dumps(asdict(replayed))


def from_json(text: str) -> Replayed:
    """What the program printed."""
    told = json.loads(text)
    return Replayed(**{**told, "requests": [Told(**each) for each in told["requests"]]})


def main() -> NoReturn:
    """The trace on standard input, what became of it on standard output."""
    parser = argparse.ArgumentParser(prog="replay", description="Replay a trace; print JSON.")
    parser.add_argument("--url", required=True, help="of the engines, as http://assistant.chat")
    parser.add_argument("--model", default="", help="(default: the one that the engine serves)")
    given = parser.parse_args()
    planned = read(sys.stdin)
    print(as_json(asyncio.run(replay(planned, lambda: _always(given.url), given.model))))
    sys.exit(0)
