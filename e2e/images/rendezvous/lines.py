"""JSON objects over a TCP connection, one a line."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

Message = dict[str, Any]
ALIVE: Message = {"event": "alive"}


class Connection:
    """One end; both ends send a heartbeat, and a silent peer is a lost one."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        heartbeat_seconds: float,
        silence_seconds: float,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._silence_seconds = silence_seconds
        self._heart = asyncio.create_task(self._beat(heartbeat_seconds))

    async def _beat(self, period_seconds: float) -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                await asyncio.sleep(period_seconds)
                await self.send(ALIVE)

    async def send(self, message: Message) -> None:
        """Send one object; raises ConnectionError when the peer is gone."""
        self._writer.write(json.dumps(message).encode() + b"\n")
        await self._writer.drain()

    async def receive(self) -> Message:
        """The next object that is no heartbeat; raises ConnectionError when the peer is lost."""
        while True:
            try:
                line = await asyncio.wait_for(self._reader.readline(), self._silence_seconds)
            except TimeoutError:
                raise ConnectionResetError(f"silent for {self._silence_seconds:g} s") from None
            if not line.endswith(b"\n"):
                raise ConnectionResetError("closed by the other side")
            message: Message = json.loads(line)
            if message != ALIVE:
                return message

    async def close(self) -> None:
        """End it; what was sent before still arrives."""
        self._heart.cancel()
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
