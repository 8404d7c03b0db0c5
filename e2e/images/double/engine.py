"""Runs the batch in real time, and hands each request its tokens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from collections.abc import Sequence as Several
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from prometheus_client.registry import Collector

from e2e.images.double.batch import Batch
from e2e.images.double.metrics import Metrics
from e2e.images.double.sequence import Sequence


def _now() -> float:
    return asyncio.get_running_loop().time()


class Runs(Protocol):
    """What a server needs of an engine."""

    @property
    def registry(self) -> Collector:
        """Its metrics."""

    async def run(self) -> None:
        """Compute, for ever."""

    def request(
        self, prompt_tokens: int, max_tokens: int, finish_reason: str = "length"
    ) -> AbstractAsyncContextManager[AsyncIterator[Several[int]]]:
        """The numbers of a request's tokens, from 1, as they come: one or several at a time."""


@dataclass
class Engine:
    """One engine; ``clock`` and ``sleep`` are the event loop's unless a test gives its own."""

    batch: Batch
    metrics: Metrics
    clock: Callable[[], float] = _now
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _tokens: dict[Sequence, asyncio.Queue[int]] = field(default_factory=dict)
    _work: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def registry(self) -> Collector:
        """Its metrics."""
        return self.metrics.registry

    async def run(self) -> None:
        """Iterate for as long as there is work, and wait for more."""
        while True:
            iteration = self.batch.schedule(self.clock())
            self.metrics.look()
            if iteration is None:
                self._work.clear()
                await self._work.wait()
                continue
            await self.sleep(iteration.seconds)
            emitted = self.batch.complete(iteration, self.clock())
            self.metrics.iterated(iteration, emitted)
            for token in emitted:
                self._deliver(token.sequence)

    def _deliver(self, sequence: Sequence) -> None:
        self._tokens[sequence].put_nowait(sequence.generated_tokens)

    @contextlib.asynccontextmanager
    async def request(
        self, prompt_tokens: int, max_tokens: int, finish_reason: str = "length"
    ) -> AsyncIterator[AsyncIterator[Several[int]]]:
        """Each token as it comes; left early, the request is aborted."""
        sequence = Sequence(prompt_tokens, max_tokens, self.clock())
        self._tokens[sequence] = asyncio.Queue()
        self.batch.add(sequence)
        self.metrics.look()
        self._work.set()
        try:
            yield self._follow(sequence)
        finally:
            del self._tokens[sequence]
            self.batch.drop(sequence)
            reason = finish_reason if sequence.is_finished else "abort"
            self.metrics.finished(sequence, reason, self.clock())
            self.metrics.look()

    async def _follow(self, sequence: Sequence) -> AsyncIterator[Several[int]]:
        for _ in range(sequence.max_tokens):
            yield (await self._tokens[sequence].get(),)
