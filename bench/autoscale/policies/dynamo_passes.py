"""Dynamo's forward-pass metrics, as far as a scrape of vLLM has them.

Dynamo's engines stream each iteration's composition and wall time. Here an iteration is the mean
one between two scrapes: its time the mean gap between tokens, its prefill the prompt tokens since
then shared out over the iterations that fit in between; KV tokens are the cache's usage times its
size, queued prefill the waiting requests times the mean prompt.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.autoscale.policies.dynamo_regression import Regression
from bench.autoscale.policies.service import ForwardPass
from poolwise.plan.signals.sample import Histogram, Sample


@dataclass(frozen=True, slots=True)
class EngineState:
    """One engine now."""

    decode_kv_tokens: float
    queued_prefill_tokens: float


class Passes:
    """What came of each engine's scrapes; feeds the regression."""

    def __init__(self, kv_tokens: int) -> None:
        self._kv_tokens = kv_tokens
        self._last: dict[str, Sample] = {}

    def observe(self, own: Regression, sample: Sample) -> None:
        """Take one scrape; the same one again changes nothing."""
        before = self._last.get(sample.replica)
        if before is not None and sample.at_seconds <= before.at_seconds:
            return
        self._last[sample.replica] = sample
        seen = None if before is None else self._between(before, sample)
        if seen is None:
            return
        own.add(seen)
        own.prefill_tokens.add(seen.prefill_tokens)
        own.request_tokens.add(_mean_between(before, sample))
        if sample.running:
            own.decode_tokens.add(seen.decode_kv_tokens / sample.running)

    def _between(self, before: Sample, sample: Sample) -> ForwardPass | None:
        gaps = _gained(before.inter_token_seconds, sample.inter_token_seconds)
        if gaps is None or gaps[1] <= 0.0:
            return None
        seconds = gaps[0] / gaps[1]
        computed = _computed(sample) - _computed(before)
        iterations = (sample.at_seconds - before.at_seconds) / seconds
        return ForwardPass(max(0.0, computed) / iterations, self.kv(sample), seconds)

    def kv(self, sample: Sample) -> float:
        """Tokens in the cache."""
        return (sample.kv_cache_usage or 0.0) * self._kv_tokens

    def state(self, own: Regression, sample: Sample) -> EngineState:
        """What the engine holds now."""
        queued = (sample.waiting or 0.0) * own.request_tokens.value
        return EngineState(self.kv(sample), queued)


def _computed(sample: Sample) -> float:
    return (sample.prompt_tokens or 0.0) - (sample.cached_prompt_tokens or 0.0)


def _gained(before: Histogram | None, after: Histogram | None) -> tuple[float, float] | None:
    """Sum and count since; None where one is missing."""
    if before is None or after is None or before.total is None or after.total is None:
        return None
    return after.total - before.total, after.count - before.count


def _mean_between(before: Sample | None, sample: Sample) -> float:
    """Prompt tokens of a request that finished in between; 0 without any."""
    gained = (
        None
        if before is None
        else _gained(before.prompt_lengths_tokens, sample.prompt_lengths_tokens)
    )
    return gained[0] / gained[1] if gained and gained[1] > 0.0 else 0.0
