"""WVA's queueing model of one engine: M/M/1 with a service rate that depends on the batch.

Source: ``llm-d-workload-variant-autoscaler:pkg/analyzer/{queueanalyzer,mm1modelstatedependent}.go``
(2026 form). Times in milliseconds and rates in requests per second, as there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
EPSILON = 0.001
"""Rates stay this share inside the stable range."""
TOLERANCE = 1e-6
MAX_STEPS = 100


@dataclass(frozen=True, slots=True)
class Parameters:
    """``T(n) = alpha + n·(beta·tokens computed + gamma·tokens read)``."""

    alpha_milliseconds: float
    beta_milliseconds_per_token: float
    gamma_milliseconds_per_token: float


@dataclass(frozen=True, slots=True)
class RequestSize:
    """Mean lengths."""

    input_tokens: float
    output_tokens: float


@dataclass(frozen=True, slots=True)
class Analysis:
    """Means at one arrival rate."""

    throughput_requests_per_second: float
    wait_milliseconds: float
    prefill_milliseconds: float
    token_milliseconds: float

    @property
    def ttft_milliseconds(self) -> float:
        """Waiting, prefill and one decode step."""
        return self.wait_milliseconds + self.prefill_milliseconds + self.token_milliseconds


def solved(
    states: Floats, size: RequestSize, sequences: int, room: int, requests_per_second: float
) -> Floats:
    """Throughput, waiting, prefill and token time by rows of (alpha, beta, gamma).

    NaN above the greatest stable rate. Beyond the full batch the birth-death chain's states are a
    geometric series, summed in closed form.
    """
    batch = np.arange(0, sequences + 1, dtype=float)
    alpha, per_request, prompt, step = (each[:, None] for each in _times(states, size))
    iteration = alpha + batch[1:] * per_request
    rates = 1000.0 * batch[1:] / (iteration + prompt + size.output_tokens * (iteration + step))
    logs = np.cumsum(np.log(requests_per_second / rates), axis=1)
    logs = np.concatenate((np.zeros((len(states), 1)), logs), axis=1)
    inside = np.exp(logs - logs.max(axis=1, keepdims=True))
    ratio = requests_per_second / rates[:, -1]
    ratio = np.where(ratio <= 1.0 - EPSILON, ratio, np.nan)
    last = inside[:, -1] * ratio**room
    behind = (inside[:, -1] - last) * ratio / (1.0 - ratio)
    total = inside.sum(axis=1) + behind
    queued = (behind - room * last * ratio) / (1.0 - ratio) / total
    in_service = (inside @ batch + behind * sequences) / total
    throughput = requests_per_second * (1.0 - last / total)
    wait = np.maximum(1000.0 * queued / throughput, 0.0)
    prefill = alpha[:, 0] + in_service * per_request[:, 0] + prompt[:, 0]
    token = (1000.0 * in_service / throughput - prefill) / size.output_tokens
    return np.array([throughput, wait, prefill, token])


def _times(states: Floats, size: RequestSize) -> tuple[Floats, Floats, Floats, Floats]:
    """Base of an iteration, its share for each request, a prompt's own, a token's own; ms."""
    alpha, beta, gamma = states.T
    computed = (size.input_tokens + size.output_tokens) / (size.output_tokens + 1.0)
    read = size.input_tokens + size.output_tokens / 2.0
    return (
        alpha,
        beta * computed + gamma * read,
        (beta + gamma) * size.input_tokens,
        beta + gamma * read,
    )


class Queue:
    """One engine with its largest batch and the room in its queue."""

    def __init__(
        self, parameters: Parameters, size: RequestSize, sequences: int, queue_requests: int
    ) -> None:
        self._states = np.array([astuple(parameters)])
        self._size, self._sequences, self._room = size, sequences, queue_requests
        self.least_rate = self._rate(1) * EPSILON
        self.most_rate = self._rate(sequences) * (1.0 - EPSILON)

    def _rate(self, batch: int) -> float:
        """Requests per second served at one batch."""
        alpha, per_request, prompt, step = (float(e[0]) for e in _times(self._states, self._size))
        iteration = alpha + batch * per_request
        own = iteration + prompt + self._size.output_tokens * (iteration + step)
        return 1000.0 * batch / own

    def analysis(self, requests_per_second: float) -> Analysis | None:
        """Means at an arrival rate; None above the greatest stable one."""
        if not 0.0 < requests_per_second <= self.most_rate:
            return None
        found = solved(self._states, self._size, self._sequences, self._room, requests_per_second)
        return Analysis(*(float(each) for each in found[:, 0]))

    def greatest_rate(self, ttft_milliseconds: float, token_milliseconds: float) -> float | None:
        """The greatest rate at which both means meet their targets; None when none does."""
        ttft = self._search(ttft_milliseconds, lambda found: found.ttft_milliseconds)
        token = self._search(token_milliseconds, lambda found: found.token_milliseconds)
        if ttft is None or token is None:
            return None
        found = self.analysis(min(ttft, token))
        return found.throughput_requests_per_second if found else None

    def _search(self, target: float, of: Callable[[Analysis], float]) -> float | None:
        low, high = self.least_rate, self.most_rate
        if self._value(low, of) > target:
            return None
        if self._value(high, of) <= target:
            return high
        for _ in range(MAX_STEPS):
            middle = 0.5 * (low + high)
            found = self._value(middle, of)
            if abs(found - target) <= TOLERANCE * target:
                break
            low, high = (low, middle) if found > target else (middle, high)
        return middle

    def _value(self, rate: float, of: Callable[[Analysis], float]) -> float:
        found = self.analysis(rate)
        return of(found) if found else float("inf")
