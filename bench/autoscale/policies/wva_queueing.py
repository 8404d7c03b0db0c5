"""WVA's queueing model of one engine: M/M/1 with a service rate that depends on the batch.

Source: ``llm-d-workload-variant-autoscaler:pkg/analyzer/{queueanalyzer,mm1modelstatedependent}.go``
(2026 form). Times in milliseconds and rates in requests per second, as there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

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


class Queue:
    """One engine with its largest batch and the room in its queue."""

    def __init__(
        self, parameters: Parameters, size: RequestSize, sequences: int, queue_requests: int
    ) -> None:
        self._parameters = parameters
        self._size = size
        self._sequences = sequences
        batch = np.arange(1, sequences + 1, dtype=float)
        rates = 1000.0 * batch / (self._prefill(batch) + size.output_tokens * self._decode(batch))
        self._log_rates = np.log(rates)
        self._batch = np.append(0.0, batch)
        self._queue_requests = queue_requests
        self.least_rate = float(rates[0]) * EPSILON
        self._full_rate = float(rates[-1])
        self.most_rate = self._full_rate * (1.0 - EPSILON)

    def _iteration(self, batch: np.ndarray | float) -> np.ndarray | float:
        size, own = self._size, self._parameters
        computed = (size.input_tokens + size.output_tokens) / (size.output_tokens + 1.0)
        read = size.input_tokens + size.output_tokens / 2.0
        per_request = (
            own.beta_milliseconds_per_token * computed + own.gamma_milliseconds_per_token * read
        )
        return own.alpha_milliseconds + batch * per_request

    def _prefill(self, batch: np.ndarray | float) -> np.ndarray | float:
        own = self._parameters
        per_token = own.beta_milliseconds_per_token + own.gamma_milliseconds_per_token
        return self._iteration(batch) + per_token * self._size.input_tokens

    def _decode(self, batch: np.ndarray | float) -> np.ndarray | float:
        own, size = self._parameters, self._size
        read = size.input_tokens + size.output_tokens / 2.0
        step = own.beta_milliseconds_per_token + own.gamma_milliseconds_per_token * read
        return self._iteration(batch) + step

    def analysis(self, requests_per_second: float) -> Analysis | None:
        """The birth-death chain's means; None above the greatest stable rate.

        Beyond the full batch the states are a geometric series, summed in closed form.
        """
        if not 0.0 < requests_per_second <= self.most_rate:
            return None
        logs = np.append(0.0, np.cumsum(np.log(requests_per_second) - self._log_rates))
        inside = np.exp(logs - logs.max())
        ratio, room = requests_per_second / self._full_rate, self._queue_requests
        last = float(inside[-1]) * ratio**room
        behind = (float(inside[-1]) - last) * ratio / (1.0 - ratio)
        total = float(inside.sum()) + behind
        queued = (behind - room * last * ratio) / (1.0 - ratio) / total
        in_service = (float(inside @ self._batch) + behind * self._sequences) / total
        throughput = requests_per_second * (1.0 - last / total)
        service = 1000.0 * in_service / throughput
        wait = max(1000.0 * queued / throughput, 0.0)
        prefill = float(self._prefill(in_service))
        token = (service - prefill) / self._size.output_tokens
        return Analysis(throughput, wait, prefill, token)

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
