"""An engine that takes what the serving model says: the simulator's own replica, in real time.

Nothing is scheduled here: :class:`poolwise.sim.serving.replica.Replica` does that, told of each
request when it comes and stepped when its batch changes, so that an iteration costs no time of the
machine. Of an answer the first token comes when it is due and all others with the last, as from a
vLLM with a large ``--stream-interval``: TTFT and the mean gap are those of the model, single gaps
can only be read from the metrics. A request whose client goes away is computed to its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
from prometheus_client.registry import Collector

from e2e.images.double.batch import Limits
from e2e.images.double.modelled_metrics import ModelledMetrics
from poolwise.sim.serving.costs import Curve, EngineLimits, IterationCosts, StepTable
from poolwise.sim.serving.log import Log
from poolwise.sim.serving.replica import NEVER, Replica
from poolwise.sim.serving.requests import Requests

SIGNIFICANT_DIGITS = 8
NOTHING = np.zeros(0, np.int64)


def as_json(costs: IterationCosts) -> str:
    """For ``DOUBLE_MODEL_COSTS``."""
    return json.dumps(_rounded(asdict(costs)), separators=(",", ":"))


def from_json(text: str) -> IterationCosts:
    """The inverse of :func:`as_json`; raises ValueError with one sentence."""
    try:
        told = json.loads(text)
        curves = {
            name: Curve(tuple(told[name]["counts"]), tuple(told[name]["seconds"]))
            for name in ("tokens", "sequences")
        }
        return IterationCosts(**{**told, **curves})
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"DOUBLE_MODEL_COSTS: {error!r}") from None


def _rounded(value: object) -> object:
    """Curves of a few kilobytes rather than many: an environment has to carry them."""
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_rounded(each) for each in value]
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def modelled(name: str, costs: str, limits: Limits) -> Modelled:
    """An engine with the limits that its command line set; raises ValueError with one sentence."""
    held = EngineLimits(
        limits.max_num_seqs, limits.max_num_batched_tokens, limits.num_blocks, limits.block_size
    )
    return Modelled(name, from_json(costs), held, limits.max_model_len)


def _now() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class _Waiter:
    """Who waits for a request's tokens."""

    began: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Modelled:
    """One engine; ``clock`` is the event loop's unless a test gives its own."""

    def __init__(
        self,
        name: str,
        costs: IterationCosts,
        limits: EngineLimits,
        longest_tokens: int,
        clock: Callable[[], float] = _now,
    ) -> None:
        self._clock = clock
        self._log = Log(Requests.of(np.zeros(0), NOTHING, NOTHING))
        self._replica = Replica(StepTable(costs, limits), limits, self._log)
        self._waiters: dict[int, _Waiter] = {}
        self._came = asyncio.Event()
        self._metrics = ModelledMetrics(name, self._replica, self._caught_up, longest_tokens)

    @property
    def registry(self) -> Collector:
        """Its metrics, as they are at the moment at which they are asked for."""
        return self._metrics

    async def run(self) -> None:
        """Step whenever a batch changes, for ever."""
        while True:
            self._caught_up()
            self._came.clear()
            due = self._replica.next_seconds
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(None if due == NEVER else due):
                    await self._came.wait()

    def _caught_up(self) -> float:
        """Let happen what is due; the moment until which it is done."""
        now, replica, metrics = self._clock(), self._replica, self._replica.metrics
        while replica.next_seconds <= now:
            began, ended = len(metrics.began), len(metrics.ended)
            replica.step()
            for number in metrics.began[began:]:
                self._tell(number, lambda waiter: waiter.began.set())
            for number in metrics.ended[ended:]:
                self._tell(number, lambda waiter: waiter.ended.set())
        return now

    def _tell(self, number: int, what: Callable[[_Waiter], None]) -> None:
        if (waiter := self._waiters.get(number)) is not None:
            what(waiter)

    @contextlib.asynccontextmanager
    async def request(
        self, prompt_tokens: int, max_tokens: int, finish_reason: str = "length"
    ) -> AsyncIterator[AsyncIterator[Sequence[int]]]:
        """The first token, then all others; the metrics call every end ``stop``."""
        del finish_reason
        now = self._caught_up()
        number = self._log.add(now, prompt_tokens, max_tokens)
        self._waiters[number] = _Waiter()
        if not self._replica.accept(number, now):  # the server refuses longer ones before
            raise ValueError(f"{prompt_tokens} + {max_tokens} tokens are more than the cache holds")
        self._came.set()
        try:
            yield self._follow(number, max_tokens)
        finally:
            del self._waiters[number]

    async def _follow(self, number: int, tokens: int) -> AsyncIterator[Sequence[int]]:
        waiter, log = self._waiters[number], self._log
        await waiter.began.wait()
        await self._until(log.first_tokens[number])
        yield range(1, 2)
        await waiter.ended.wait()
        await self._until(log.finished[number])
        if tokens > 1:
            yield range(2, tokens + 1)

    async def _until(self, moment: float) -> None:
        """What the server adds before a token reaches its client."""
        if math.isfinite(moment):
            await asyncio.sleep(max(moment - self._clock(), 0.0))
