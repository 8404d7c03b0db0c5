"""Engines of one replica on several nodes: they meet at the leader, and end when one is lost.

As vLLM's multiprocessing backend does it: the leader (``--node-rank=0``) waits at
``--master-addr:--master-port`` for all others, which were started with ``--headless``; only then
does it serve. Nobody reconnects: a rank that is gone takes the others with it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

RETRY_SECONDS = 0.5
"""The leader's name may not resolve yet, nor its port be open."""


class Lost(Exception):
    """A rank of the group is gone, or never was one of it."""


@dataclass(frozen=True)
class Place:
    """Where one engine stands in its group."""

    nodes: int
    rank: int
    host: str
    port: int

    @property
    def is_leader(self) -> bool:
        """Whether it answers requests."""
        return self.rank == 0


@contextlib.asynccontextmanager
async def joined(place: Place) -> AsyncIterator[asyncio.Event]:
    """Enter once all ranks are there; the event is set when one of them is lost."""
    meeting = _led(place) if place.is_leader else _followed(place)
    async with meeting as lost:
        yield lost


@contextlib.asynccontextmanager
async def _led(place: Place) -> AsyncIterator[asyncio.Event]:
    ranks: dict[int, asyncio.StreamWriter] = {}
    complete, lost = asyncio.Event(), asyncio.Event()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        rank = int(await reader.readline() or b"0")
        if not 0 < rank < place.nodes or rank in ranks:
            return writer.close()
        ranks[rank] = writer
        if len(ranks) == place.nodes - 1:
            complete.set()
        await _until_closed(reader, lost)

    server = await asyncio.start_server(accept, None, place.port)
    try:
        await complete.wait()
        for writer in ranks.values():
            writer.write(b"met\n")
        yield lost
    finally:
        server.close()
        for writer in ranks.values():
            writer.close()


@contextlib.asynccontextmanager
async def _followed(place: Place) -> AsyncIterator[asyncio.Event]:
    reader, writer = await _connection(place)
    try:
        writer.write(f"{place.rank}\n".encode())
        if await reader.readline() != b"met\n":
            raise Lost(f"the leader at {place.host}:{place.port} would not have rank {place.rank}")
        lost = asyncio.Event()
        watch = asyncio.create_task(_until_closed(reader, lost))
        yield lost
        watch.cancel()
    finally:
        writer.close()


async def _until_closed(reader: asyncio.StreamReader, lost: asyncio.Event) -> None:
    with contextlib.suppress(ConnectionError):
        await reader.read()
    lost.set()


async def _connection(place: Place) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    while True:
        try:
            return await asyncio.open_connection(place.host, place.port)
        except OSError:
            await asyncio.sleep(RETRY_SECONDS)
