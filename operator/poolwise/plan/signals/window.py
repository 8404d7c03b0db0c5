"""What happened between looks at a replica: differences of its counters since it started.

A replica that restarts counts from zero again: what it counts then is what came since. A look that
is older than the one before it, or has its very time, tells nothing new. Counters that fall without
a restart are a broken source: :class:`WentBack`, never a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from poolwise.plan.signals.histogram import credible, difference, pooled
from poolwise.plan.signals.sample import Counted, Histogram, Sample
from poolwise.plan.signals.words import WORDS

COUNTERS = (
    "finished_requests",
    "preemptions",
    "prompt_tokens",
    "begun_prompt_tokens",
    "cached_prompt_tokens",
    "generated_tokens",
)
HISTOGRAMS = (
    "ttft_seconds",
    "inter_token_seconds",
    "tpot_seconds",
    "e2e_seconds",
    "queue_seconds",
    "prompt_lengths_tokens",
    "answer_lengths_tokens",
)
RESTART_SHARE = 0.5
"""A restart takes an engine longer than a scrape interval: counters that regained more than this
share of what they had did not start anew, they went back. One that had nothing tells neither."""


@dataclass(frozen=True, slots=True)
class Delta(Counted):
    """What came in a span of time; a count is None where no replica told it at both ends."""

    since_seconds: float
    until_seconds: float
    replica_seconds: float
    """Sum of the spans of all replicas: counts divided by it are rates of one replica."""
    is_restart: bool = False
    """Whether a replica began to count anew within the span."""

    @property
    def seconds(self) -> float:
        """From the first look to the last."""
        return self.until_seconds - self.since_seconds

    @property
    def is_flat(self) -> bool:
        """Whether counters were told, and none moved: nothing arrived, nothing ended."""
        told = [value for name in COUNTERS if (value := getattr(self, name)) is not None]
        told += [each.count for name in HISTOGRAMS if (each := getattr(self, name)) is not None]
        return bool(told) and not any(told)


@dataclass(frozen=True, slots=True)
class WentBack:
    """A counter fell though the replica did not restart: nothing it told then can be used."""

    replica: str
    counter: str
    before: float
    after: float

    def __str__(self) -> str:
        return (
            f"{self.replica}: {WORDS[self.counter]} went back from {self.before:g} to "
            f"{self.after:g} without a restart"
        )


def between(earlier: Sample, later: Sample) -> Delta | WentBack | None:
    """What came between two looks at one replica; None where the later one is not newer."""
    if later.at_seconds <= earlier.at_seconds:
        return None
    counts = tuple(_counts(earlier, later))
    fallen = [each for each in counts if each[2] < each[1]]
    if fallen and any(after > before * RESTART_SHARE for _, before, after in counts if before):
        return WentBack(later.replica, *max(fallen, key=lambda each: each[1] - each[2]))
    return _delta(None if fallen else earlier, later, earlier.at_seconds)


def joined(parts: Sequence[Delta]) -> Delta | None:
    """Spans or replicas together; None of none.

    Counters are summed over those that told them; histograms keep the bounds that all have.
    """
    if not parts:
        return None
    counts: dict[str, Any] = {
        **{name: _sum(getattr(part, name) for part in parts) for name in COUNTERS},
        **{name: _pooled(getattr(part, name) for part in parts) for name in HISTOGRAMS},
    }
    return Delta(
        min(part.since_seconds for part in parts),
        max(part.until_seconds for part in parts),
        sum(part.replica_seconds for part in parts),
        **counts,
        is_restart=any(part.is_restart for part in parts),
    )


def _counts(earlier: Sample, later: Sample) -> Iterator[tuple[str, float, float]]:
    for name in COUNTERS:
        before, after = getattr(earlier, name), getattr(later, name)
        if before is not None and after is not None:
            yield name, before, after
    for name in HISTOGRAMS:
        before, after = getattr(earlier, name), getattr(later, name)
        if before is not None and after is not None:
            yield name, before.count, after.count


def _delta(earlier: Sample | None, later: Sample, since_seconds: float) -> Delta:
    counts: dict[str, Any] = {
        **{name: _increase(earlier, later, name) for name in COUNTERS},
        **{name: _grown(earlier, later, name) for name in HISTOGRAMS},
    }
    return Delta(
        since_seconds,
        later.at_seconds,
        later.at_seconds - since_seconds,
        **counts,
        is_restart=earlier is None,
    )


def _increase(earlier: Sample | None, later: Sample, name: str) -> float | None:
    after: float | None = getattr(later, name)
    before: float | None = getattr(earlier, name) if earlier else 0.0
    return None if after is None or before is None else after - before


def _grown(earlier: Sample | None, later: Sample, name: str) -> Histogram | None:
    after: Histogram | None = getattr(later, name)
    if after is None:
        return None
    if earlier is None:
        return credible(after)
    before: Histogram | None = getattr(earlier, name)
    return None if before is None else credible(difference(after, before))


def _sum(values: Iterable[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return sum(told) if told else None


def _pooled(values: Iterable[Histogram | None]) -> Histogram | None:
    return pooled([value for value in values if value is not None])
