"""An engine with continuous batching, step by step: what the mean field is held against."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from poolwise.model.serving.iteration import Batch
from poolwise.model.serving.load import Replica
from poolwise.model.serving.queueing import Lengths

Times = NDArray[np.float64]


@dataclass(slots=True)
class _Request:
    arrival: float
    prompt: int
    output: int


@dataclass(slots=True)
class Simulated:
    """What requests saw, in seconds."""

    first: list[float] = field(default_factory=list)
    tokens: list[float] = field(default_factory=list)

    def first_token(self, percent: float) -> float:
        """Percentile of the time to the first token."""
        return float(np.percentile(self.first, percent))

    def token(self, percent: float) -> float:
        """Percentile of the time between two tokens."""
        return float(np.percentile(self.tokens, percent))


def simulate(served: Replica, rate: float, requests: int, seed: int = 1) -> Simulated:
    """Poisson arrivals, log-normal lengths, prompts in order of arrival beside all sequences."""
    random = np.random.default_rng(seed)
    arrivals = np.cumsum(random.exponential(1.0 / rate, requests))
    prompts = _lengths(served.prompt, requests, random)
    outputs = _lengths(served.generated, requests, random)
    coming = deque(
        _Request(float(arrival), int(prompt), int(output))
        for arrival, prompt, output in zip(arrivals, prompts, outputs, strict=True)
    )
    return _run(served, coming)


def _run(served: Replica, coming: deque[_Request]) -> Simulated:
    found, now = Simulated(), 0.0
    waiting: deque[_Request] = deque()
    left: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    begun = 0
    while coming or waiting or len(left):
        if not waiting and not len(left):
            now = max(now, coming[0].arrival)
        while coming and coming[0].arrival <= now:
            waiting.append(coming.popleft())
        read: list[_Request] = []
        room, chunk = int(served.batched_tokens) - len(left), 0
        while waiting and room > 0 and len(left) + len(read) < served.slots:
            take = min(room, waiting[0].prompt - begun)
            room, chunk, begun = room - take, chunk + take, begun + take
            if begun == waiting[0].prompt:
                read.append(waiting.popleft())
                begun = 0
        seconds = _step_seconds(served, len(left), chunk)
        now += seconds
        found.tokens += [seconds] * len(left)
        found.first += [now - each.arrival for each in read]
        left = left - 1
        left = np.concatenate([left[left > 0], [each.output for each in read if each.output > 0]])
    return found


def _step_seconds(served: Replica, sequences: int, chunk: int) -> float:
    prompts = chunk / served.prompt.mean
    batch = Batch(float(sequences), served.context_tokens, float(chunk), prompts)
    return served.costs.step(batch).seconds


def _lengths(lengths: Lengths, count: int, random: np.random.Generator) -> Times:
    variance = math.log1p(lengths.scv)
    drawn = random.lognormal(math.log(lengths.mean) - variance / 2, math.sqrt(variance), count)
    return np.maximum(np.round(drawn), 1.0)
