"""What one replica has to do: the load that a tail is held against.

Several measures, since each misses something: a few long prompts are fewer requests, a burst does
not show in a mean, and answers that grow longer fill the batch at the same rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from poolwise.plan.live.mismatch.history import Minute, covered_seconds, settled
from poolwise.plan.signals.percentile import percentile_of
from poolwise.plan.signals.sample import Histogram
from poolwise.plan.signals.window import Delta

LENGTH_PERCENTILE = 95.0
MOST_GROWTH = 1.1
"""Of any measure, up to which the load counts as the same."""
REQUESTS, PEAK, QUEUE = "requests", "peak", "queue"
_MOST_GROWTH: Mapping[str, float] = {PEAK: 1.25}
"""Of the fullest minute, which chance alone moves more."""
MOST_QUEUED = 1.0
"""Requests more that wait at one replica, up to which that is chance."""
LESS_SERVED = 0.95
"""Of the requests of before: less is what a slower replica serves."""


def burden(minutes: Sequence[Minute]) -> Mapping[str, float]:
    """Measures of the load of one replica, by name; empty where nothing was told.

    Rates are per second of one replica.
    """
    delta = settled(minutes)
    if delta is None or delta.replica_seconds <= 0.0:
        return {}
    return {
        REQUESTS: _begun(delta) / delta.replica_seconds,
        QUEUE: _queue(minutes, delta),
        PEAK: max(_rates(minutes), default=0.0),
        **dict(_tokens(delta)),
        **dict(_lengths("prompt", delta.prompt_lengths_tokens)),
        **dict(_lengths("answer", delta.answer_lengths_tokens)),
    }


def has_grown(now: Mapping[str, float], before: Mapping[str, float]) -> bool:
    """Whether any measure that both have is larger than chance makes it.

    Near its capacity a replica that gets hardly more than before has a queue without end, and
    serves no less; one that has become slower has the queue because it serves less.
    """
    both = (now.keys() & before.keys()) - {QUEUE}
    if any(now[each] > before[each] * _MOST_GROWTH.get(each, MOST_GROWTH) for each in both):
        return True
    is_queueing = now.get(QUEUE, 0.0) > before.get(QUEUE, 0.0) + MOST_QUEUED
    return is_queueing and now[REQUESTS] > LESS_SERVED * before.get(REQUESTS, 0.0)


def _begun(delta: Delta) -> float:
    """Requests; by their first tokens where those are told."""
    if delta.ttft_seconds is not None:
        return delta.ttft_seconds.count
    return delta.finished_requests or 0.0


def _queue(minutes: Sequence[Minute], delta: Delta) -> float:
    """Requests that wait at one replica, on average."""
    replicas = delta.replica_seconds / max(covered_seconds(minutes), 1e-9)
    return math.fsum(each.queue for each in minutes) / len(minutes) / max(replicas, 1.0)


def _rates(minutes: Sequence[Minute]) -> Iterator[float]:
    for each in minutes:
        if each.settled is not None and each.settled.replica_seconds > 0.0:
            yield _begun(each.settled) / each.settled.replica_seconds


def _tokens(delta: Delta) -> Iterator[tuple[str, float]]:
    """Those that are computed: what the prefix cache has costs next to nothing."""
    if delta.prompt_tokens is not None:
        computed = delta.prompt_tokens - (delta.cached_prompt_tokens or 0.0)
        yield "prompt tokens", computed / delta.replica_seconds
        if begun := _begun(delta):
            yield "computed prompt", computed / begun
    if delta.generated_tokens is not None:
        yield "generated tokens", delta.generated_tokens / delta.replica_seconds


def _lengths(name: str, seen: Histogram | None) -> Iterator[tuple[str, float]]:
    found = percentile_of(seen, LENGTH_PERCENTILE) if seen is not None else None
    if seen is not None and found is not None:
        if seen.mean is not None:
            yield f"{name} mean", seen.mean
        yield f"{name} p{LENGTH_PERCENTILE:g}", found.estimate
