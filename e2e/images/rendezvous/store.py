"""The store of node 0: accepts every rank, tells all of them when all are there."""

from __future__ import annotations

import asyncio
import contextlib

from e2e.images.rendezvous.lines import Connection, Message
from e2e.images.rendezvous.round import Member, Refused, Round
from e2e.images.rendezvous.settings import Settings


class Store:
    """Serves while the ``async with`` lasts."""

    def __init__(self, settings: Settings, host: str | None = None) -> None:
        self.round = Round(settings.world_size)
        self.finished = asyncio.Event()
        """Set once every rank has been told that all arrived at the end."""
        self._settings = settings
        self._host = host
        self._connections: dict[int, Connection] = {}
        self._server: asyncio.Server | None = None
        self._handlers: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Store:
        """Listen on all addresses, as a pod's address is not known before it runs."""
        self._server = await asyncio.start_server(self._accept, self._host, self._settings.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        task.add_done_callback(self._handlers.discard)
        limits = (self._settings.heartbeat_seconds, self._settings.silence_seconds)
        connection = Connection(reader, writer, *limits)
        try:
            await self._serve(connection)
        except (ConnectionError, asyncio.CancelledError):
            pass  # it left, or we do
        finally:
            await connection.close()

    async def _serve(self, connection: Connection) -> None:
        member = Member(**(await connection.receive()))
        try:
            met = self.round.join(member)
        except Refused as refused:
            await connection.send({"event": "refused", "why": str(refused), "final": refused.final})
            return
        self._connections[member.rank] = connection
        try:
            await self._tell_all(met or self._waiting())
            await self._follow(member.rank, connection)
        finally:
            await self._forget(member.rank, connection)

    def _waiting(self) -> Message:
        return {"event": "waiting", "missing": self.round.missing}

    async def _follow(self, rank: int, connection: Connection) -> None:
        while not self.round.ended:
            message = await connection.receive()
            if self._connections.get(rank) is not connection:
                return  # of a round that was broken meanwhile
            await self._tell_all(self.round.arrive(rank, message["barrier"]))
        self.finished.set()

    async def _forget(self, rank: int, connection: Connection) -> None:
        if self._connections.get(rank) is not connection:
            return
        del self._connections[rank]
        lost = self.round.leave(rank)
        if lost is None:
            return
        left, self._connections = self._connections, {}
        self.round.begin_again()
        for each in left.values():
            with contextlib.suppress(ConnectionError):
                await each.send(lost)

    async def _tell_all(self, message: Message | None) -> None:
        """A rank that cannot be told is found lost by its own handler."""
        if message is None:
            return
        for connection in list(self._connections.values()):
            with contextlib.suppress(ConnectionError):
                await connection.send(message)
