"""What a replica counts of itself, as vLLM does: its buckets, its counters since the start."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from poolwise.sim.serving.log import Log

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

    __slots__ = ("_bucket", "_high", "_low", "bounds", "counts", "total",
                 "upper_bounds")  # fmt: skip

    def __init__(self, bounds: Iterable[float]) -> None:
        self.bounds = tuple(bounds)
        self.upper_bounds = (*self.bounds, math.inf)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0
        self._low = self._high = math.inf
        self._bucket = 0
        """Of the line before, and its bounds: mostly that of the next as well."""

    def observe(self, value: float, times: int = 1) -> None:
        """So many observations of one value; a bucket holds its upper bound."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def observe_line(self, first: float, slope: float, steps: int, times: int) -> None:
        """``times`` of each value ``first + j * slope``, j from 0 to ``steps`` - 1, ascending."""
        last = first + slope * (steps - 1)
        self.total += times * steps * (first + last) / 2.0
        if self._low < first and last <= self._high:
            self.counts[self._bucket] += times * steps
            return
        bucket, end = bisect_left(self.bounds, first), bisect_left(self.bounds, last)
        done = 0
        while bucket < end:
            inside = math.floor((self.bounds[bucket] - first) / slope) + 1 - done
            self.counts[bucket] += times * inside
            done += inside
            bucket += 1
        self.counts[end] += times * (steps - done)
        self._low = self.bounds[end - 1] if end else -math.inf
        self._bucket, self._high = end, self.upper_bounds[end]


class Metrics:
    """Of one replica, since it started.

    A request's own figures are noted by its number and observed when somebody reads them.
    """

    __slots__ = ("_answer_lengths", "_cached_prompt_tokens", "_e2e", "_finished", "_log",
                 "_prompt_lengths", "_prompt_tokens", "_tpot", "_ttft", "began", "ended", "gaps",
                 "generated", "preemptions")  # fmt: skip

    def __init__(self, log: Log, longest_tokens: int) -> None:
        lengths = one_two_five(longest_tokens)
        self._log = log
        self.began: list[int] = []
        """Requests with a first token that is not observed yet."""
        self.ended: list[int] = []
        """The same of their last."""
        self.gaps = Tally(GAP_BOUNDS_SECONDS)
        self.generated = 0
        self.preemptions = 0
        self._ttft = Tally(TTFT_BOUNDS_SECONDS)
        self._tpot = Tally(GAP_BOUNDS_SECONDS)
        self._e2e = Tally(E2E_BOUNDS_SECONDS)
        self._prompt_lengths = Tally(lengths)
        self._answer_lengths = Tally(lengths)
        self._finished = self._prompt_tokens = self._cached_prompt_tokens = 0

    def read(self) -> Reading:
        """All of it until now."""
        self._observe_began()
        self._observe_ended()
        return Reading(
            self._finished,
            self.preemptions,
            self._prompt_tokens,
            self._cached_prompt_tokens,
            self.generated,
            self._ttft,
            self.gaps,
            self._tpot,
            self._e2e,
            self._prompt_lengths,
            self._answer_lengths,
        )

    def _observe_began(self) -> None:
        log = self._log
        for number in self.began:
            self._prompt_tokens += log.inputs[number]
            self._cached_prompt_tokens += log.cached[number]
            self._ttft.observe(log.first_tokens[number] - log.arrivals[number])
        self.began.clear()

    def _observe_ended(self) -> None:
        log = self._log
        self._finished += len(self.ended)
        for number in self.ended:
            end, answer = log.finished[number], log.outputs[number]
            self._e2e.observe(end - log.arrivals[number])
            if answer > 1:
                self._tpot.observe((end - log.first_tokens[number]) / (answer - 1))
            self._prompt_lengths.observe(log.inputs[number])
            self._answer_lengths.observe(answer)
        self.ended.clear()


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters and histograms as one scrape finds them; the histograms go on being filled."""

    finished: int
    preemptions: int
    prompt_tokens: int
    cached_prompt_tokens: int
    generated: int
    ttft: Tally
    gaps: Tally
    tpot: Tally
    e2e: Tally
    prompt_lengths: Tally
    answer_lengths: Tally
