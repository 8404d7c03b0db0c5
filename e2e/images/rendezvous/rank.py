"""One rank: finds the store, meets the others, takes its steps, and ends with all of them."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field
from typing import Any

from e2e.images.rendezvous.lines import Connection, Message
from e2e.images.rendezvous.round import END, check_met
from e2e.images.rendezvous.settings import Settings

RETRY_SECONDS = 0.5


class RendezvousFailed(Exception):
    """The ranks did not meet; its text is the sentence to print."""


class _Lost(Exception):
    """The round is broken: join the next one."""


@dataclass
class Rank:
    """One of the job's processes."""

    settings: Settings
    rank: int
    host: str = field(default_factory=socket.gethostname)
    steps_done: int = 0
    rounds: int = 0
    _missing: list[int] = field(default_factory=list)
    _last_error: str = ""
    _deadline: float = 0.0

    async def run(self) -> dict[str, Any]:
        """Take part until the end; raises :class:`RendezvousFailed`."""
        self._extend_deadline()
        while True:
            try:
                return await self._take_part()
            except (OSError, _Lost) as error:  # a name that is not known yet is an OSError, too
                self._last_error = str(error)
            if asyncio.get_running_loop().time() >= self._deadline:
                raise RendezvousFailed(self._why())
            await asyncio.sleep(RETRY_SECONDS)

    def _extend_deadline(self) -> None:
        """The timeout counts from the last time that all were together."""
        self._deadline = asyncio.get_running_loop().time() + self.settings.timeout_seconds

    async def _take_part(self) -> dict[str, Any]:
        reader, writer = await asyncio.open_connection(self.settings.host, self.settings.port)
        limits = (self.settings.heartbeat_seconds, self.settings.silence_seconds)
        connection = Connection(reader, writer, *limits)
        try:
            met = await self._meet(connection)
            await self._train(connection)
            await self._barrier(connection, END)
        finally:
            await connection.close()
        return {"ranks": met["ranks"], "hosts": met["hosts"], "rounds": self.rounds}

    async def _meet(self, connection: Connection) -> Message:
        await connection.send(
            {
                "rank": self.rank,
                "world_size": self.settings.world_size,
                "host": self.host,
                "steps_done": self.steps_done,
            }
        )
        try:
            async with asyncio.timeout_at(self._deadline):
                met = await self._until_met(connection)
        except TimeoutError:
            raise RendezvousFailed(self._why()) from None
        if wrong := check_met(met, self.settings.world_size):
            raise RendezvousFailed(wrong)
        self.rounds += 1
        self.steps_done = met["steps_done"]
        self._extend_deadline()
        return met

    async def _until_met(self, connection: Connection) -> Message:
        while True:
            message = await connection.receive()
            if message["event"] == "met":
                return message
            if message["event"] == "waiting":
                self._missing, self._last_error = message["missing"], ""
            elif message["event"] == "refused":
                self._refused(message)

    def _refused(self, message: Message) -> None:
        if message["final"]:
            raise RendezvousFailed(message["why"])
        raise _Lost(message["why"])

    async def _train(self, connection: Connection) -> None:
        if self.settings.fails(self.rank):
            raise RendezvousFailed(
                f"fails in attempt {self.settings.attempt}, as E2E_FAIL_RANK={self.rank} asks for"
            )
        while self.steps_done < self.settings.steps:
            await asyncio.sleep(self.settings.step_seconds)
            await self._barrier(connection, f"step {self.steps_done}")
            self.steps_done += 1
            self._extend_deadline()

    async def _barrier(self, connection: Connection, name: str) -> None:
        await connection.send({"barrier": name})
        message = await connection.receive()
        if message["event"] == "lost":
            raise _Lost(f"rank {message['rank']} on {message['host']} was lost")

    def _why(self) -> str:
        limit = f"within {self.settings.timeout_seconds:g} s"
        if self._missing and not self._last_error:
            missing = ", ".join(map(str, self._missing))
            return f"not all {self.settings.world_size} ranks met {limit}; missing: {missing}"
        return f"no rendezvous at {self.settings.endpoint} {limit}: {self._last_error}"
