"""Dynamo's model of an aggregated engine: wall time = a + b·prefill tokens + c·decode KV tokens.

Source: ``dynamo:components/src/dynamo/planner/core/perf_model/{base,agg}.py``: 64 samples in 4 by 4
buckets, of which the fullest loses its oldest; at least 5; a fit with a negative slope is refused.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque

import numpy as np

from bench.autoscale.policies.service import ForwardPass

MAX_SAMPLES = 64
MIN_SAMPLES = 5
BUCKETS_PER_AXIS = 4


class Regression:
    """Ordinary least squares on what the buckets hold."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[int, int], deque[ForwardPass]] = defaultdict(deque)
        self._low = np.full(2, math.inf)
        self._high = np.full(2, -math.inf)
        self._fit: np.ndarray | None = None
        self.prefill_tokens = MovingMean()
        """Prompt tokens of an iteration."""
        self.request_tokens = MovingMean()
        """Prompt tokens of a request that is prefilled."""
        self.decode_tokens = MovingMean()
        """Context of a decoding sequence."""

    def add(self, seen: ForwardPass) -> None:
        """One observation."""
        if seen.seconds == 0.0:
            return
        at = _inputs(seen)
        low, high = np.minimum(self._low, at), np.maximum(self._high, at)
        if (low != self._low).any() or (high != self._high).any():
            self._low, self._high = low, high
            self._rebuild()
        self._buckets[self._key(seen)].append(seen)
        if self._held() > MAX_SAMPLES:
            max(self._buckets.values(), key=len).popleft()
        self._fit = None

    def _rebuild(self) -> None:
        held = [each for bucket in self._buckets.values() for each in bucket]
        self._buckets.clear()
        for each in held:
            self._buckets[self._key(each)].append(each)

    def _key(self, seen: ForwardPass) -> tuple[int, int]:
        span = np.where(self._high > self._low, self._high - self._low, 1.0)
        at = ((_inputs(seen) - self._low) / span * BUCKETS_PER_AXIS).astype(int)
        first, second = np.clip(at, 0, BUCKETS_PER_AXIS - 1)
        return int(first), int(second)

    def _held(self) -> int:
        return sum(len(bucket) for bucket in self._buckets.values())

    def is_ready(self) -> bool:
        """Whether there is a fit that makes sense."""
        if self._fit is None and self._held() >= MIN_SAMPLES:
            held = [each for bucket in self._buckets.values() for each in bucket]
            inputs = np.array([[1.0, *_inputs(each)] for each in held])
            found = np.linalg.lstsq(inputs, np.array([each.seconds for each in held]), rcond=None)[
                0
            ]
            self._fit = found if (found[1:] >= 0.0).all() else None
        return self._fit is not None

    def seconds(self, prefill_tokens: float, decode_kv_tokens: float) -> float:
        """An iteration's time; only where it is ready."""
        assert self._fit is not None
        return max(1e-6, float(self._fit @ (1.0, prefill_tokens, decode_kv_tokens)))

    def ttft_seconds(
        self, queued_tokens: float, batched_tokens: int, decode_kv_tokens: float, hit_rate: float
    ) -> float:
        """The next request's: the queue and its own prompt, chunk by chunk beside the decodes."""
        total = (queued_tokens + self.request_tokens.value) * (1.0 - hit_rate)
        if total <= 0.0:
            return 0.0
        full, rest = divmod(total, batched_tokens)
        whole = full * self.seconds(batched_tokens, decode_kv_tokens)
        return whole + (self.seconds(rest, decode_kv_tokens) if rest > 0.0 else 0.0)

    def itl_seconds(self, decode_kv_tokens: float) -> float:
        """An iteration with the usual prefill and one more sequence than now."""
        total = decode_kv_tokens + self.decode_tokens.value
        return self.seconds(self.prefill_tokens.value, total)


class MovingMean:
    """The mean of the last 64 values; zeros before the first other value do not count."""

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=MAX_SAMPLES)

    def add(self, value: float) -> None:
        """One value."""
        if value != 0.0 or self._values:
            self._values.append(value)

    @property
    def value(self) -> float:
        """0 without values."""
        return sum(self._values) / len(self._values) if self._values else 0.0


def _inputs(seen: ForwardPass) -> np.ndarray:
    return np.array([seen.prefill_tokens, seen.decode_kv_tokens])


def greatest_rate(
    own: Regression,
    prompt_tokens: float,
    answer_tokens: float,
    limits: tuple[int, int, int],
    targets_seconds: tuple[float, float],
    hit_rate: float,
) -> float:
    """``find_best_engine_agg_rps``: requests/s of the largest batch within (TTFT, ITL); 0 unready.

    ``limits``: batched tokens, sequences, KV tokens. Where a batch of one misses them, its rate.
    """
    if not own.is_ready() or prompt_tokens <= 0.0 or answer_tokens <= 0.0:
        return 0.0
    batched, sequences, kv_tokens = limits
    context = prompt_tokens + answer_tokens / 2.0
    most = max(1, min(int(kv_tokens / max(1.0, context)), sequences, batched - 1))
    most = max(1, min(most, int(batched - prompt_tokens / answer_tokens)))  # admission ≥ egress
    best = 0.0
    for batch in range(1, most + 1):
        effective = batch * prompt_tokens * (1.0 - hit_rate) / max(1.0, answer_tokens)
        prefill = min(effective, batched)
        wall = own.seconds(prefill, batch * context)
        ttft = own.ttft_seconds(int(prefill), batched, int(batch * context), 0.0)
        is_missed = wall > targets_seconds[1] or ttft > targets_seconds[0]
        if is_missed and batch > 1:
            break
        best = batch / (answer_tokens * wall)
        if is_missed:
            break
    return best
