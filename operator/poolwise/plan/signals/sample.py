"""What one replica's own metrics tell, in canonical terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from poolwise.model.work import Metric


@dataclass(frozen=True, slots=True)
class Histogram:
    """A cumulative histogram since the replica started, as Prometheus exposes it."""

    upper_bounds: tuple[float, ...]
    """Upper bounds of the buckets, ascending; the last is infinity."""
    counts: tuple[float, ...]
    """Observations at or below each bound, ascending."""
    total: float | None
    """Sum of all observations; None where it is not told, or cannot be true."""

    @property
    def count(self) -> float:
        """Observations in all."""
        return self.counts[-1]

    @property
    def mean(self) -> float | None:
        """Of the observations; None without any, and where their sum is not known."""
        return None if self.total is None or self.count <= 0.0 else self.total / self.count


HISTOGRAMS: Mapping[Metric, str] = {
    Metric.TTFT: "ttft_seconds",
    Metric.ITL: "inter_token_seconds",
    Metric.TPOT: "tpot_seconds",
    Metric.E2E: "e2e_seconds",
}
"""Fields of :class:`Counted` with what was measured of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What a replica counts; whatever it did not tell is None."""

    finished_requests: float | None = None
    preemptions: float | None = None
    prompt_tokens: float | None = None
    """Tokens of prompts, those found in the prefix cache included."""
    begun_prompt_tokens: float | None = None
    """The same where a prompt is known to count with its first token, not with its last."""
    cached_prompt_tokens: float | None = None
    generated_tokens: float | None = None
    ttft_seconds: Histogram | None = None
    inter_token_seconds: Histogram | None = None
    """Every gap between two tokens."""
    tpot_seconds: Histogram | None = None
    """One mean gap for each finished request."""
    e2e_seconds: Histogram | None = None
    queue_seconds: Histogram | None = None
    """The wait before a replica is chosen: gateways tell it."""
    prompt_lengths_tokens: Histogram | None = None
    """One prompt length for each request."""
    answer_lengths_tokens: Histogram | None = None


@dataclass(frozen=True, slots=True)
class Sample(Counted):
    """One look at one replica: gauges hold at the moment, counts are since it started."""

    replica: str
    at_seconds: float
    running: float | None = None
    """Requests in the batch."""
    waiting: float | None = None
    """Requests that wait for the batch."""
    kv_cache_usage: float | None = None
    """Share of the KV cache in use, 0 to 1."""

    @property
    def in_flight(self) -> float:
        """Requests, those that wait included."""
        return (self.running or 0.0) + (self.waiting or 0.0)
