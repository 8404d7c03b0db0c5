"""What a replica counts of itself, as vLLM does: its buckets, its counters since the start."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable

TTFT_BOUNDS_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5,
                       5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0)  # fmt: skip
GAP_BOUNDS_SECONDS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0,
                      7.5, 10.0, 20.0, 40.0, 80.0)  # fmt: skip
"""Of inter-token latencies, and of their mean for each request."""
E2E_BOUNDS_SECONDS = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0,
                      60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0)  # fmt: skip


def one_two_five(most: int) -> tuple[float, ...]:
    """1, 2, 5, 10, ... up to the longest context: vLLM's buckets of lengths."""
    steps = (step * 10.0**exponent for exponent in range(12) for step in (1, 2, 5))
    return tuple(bound for bound in steps if bound <= most)


class Tally:
    """A histogram that is being filled: ``counts`` by bucket, the last beyond all bounds."""

    __slots__ = ("bounds", "counts", "total", "upper_bounds")

    def __init__(self, bounds: Iterable[float]) -> None:
        self.bounds = tuple(bounds)
        self.upper_bounds = (*self.bounds, math.inf)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """So many observations of one value; a bucket holds its upper bound."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def observe_line(self, first: float, slope: float, steps: int, times: int) -> None:
        """``times`` of each value ``first + j * slope``, j from 0 to ``steps`` - 1, ascending."""
        last = first + slope * (steps - 1)
        bucket, end = bisect_left(self.bounds, first), bisect_left(self.bounds, last)
        done = 0
        while bucket < end:
            inside = math.floor((self.bounds[bucket] - first) / slope) + 1 - done
            self.counts[bucket] += times * inside
            done += inside
            bucket += 1
        self.counts[end] += times * (steps - done)
        self.total += times * steps * (first + last) / 2.0


class Metrics:
    """Of one replica, since it started."""

    __slots__ = ("answer_lengths", "cached_prompt_tokens", "e2e", "finished", "gaps", "generated",
                 "preemptions", "prompt_lengths", "prompt_tokens", "tpot", "ttft")  # fmt: skip

    def __init__(self, longest_tokens: int) -> None:
        lengths = one_two_five(longest_tokens)
        self.ttft = Tally(TTFT_BOUNDS_SECONDS)
        self.gaps = Tally(GAP_BOUNDS_SECONDS)
        self.tpot = Tally(GAP_BOUNDS_SECONDS)
        self.e2e = Tally(E2E_BOUNDS_SECONDS)
        self.prompt_lengths = Tally(lengths)
        self.answer_lengths = Tally(lengths)
        self.finished = 0
        self.preemptions = 0
        self.prompt_tokens = 0
        self.cached_prompt_tokens = 0
        self.generated = 0
