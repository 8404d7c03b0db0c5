"""The scrapes of the last minutes, and PromQL's sums over replicas of them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from bench.autoscale.policies import promql
from bench.autoscale.policy import View
from poolwise.plan.signals.sample import Histogram, Sample

Counter = Callable[[Sample], float | None]
HistogramOf = Callable[[Sample], Histogram | None]


class History:
    """Samples of every replica since ``keep_seconds``, as Prometheus would hold them.

    A replica that is gone stays until its samples leave the window, for ``rate()`` counts it too.
    """

    def __init__(self, keep_seconds: float) -> None:
        self._keep_seconds = keep_seconds
        self._now_seconds = 0.0
        self._series: dict[str, deque[Sample]] = {}

    def add(self, view: View) -> None:
        """Take what is new in the view; forget what left the window."""
        self._now_seconds = view.now_seconds
        for name, sample in view.samples.items():
            series = self._series.setdefault(name, deque())
            if not series or sample.at_seconds > series[-1].at_seconds:
                series.append(sample)
        self._forget(view.now_seconds - self._keep_seconds)

    def _forget(self, before_seconds: float) -> None:
        for name in list(self._series):
            series = self._series[name]
            while series and series[0].at_seconds <= before_seconds:
                series.popleft()
            if not series:
                del self._series[name]

    def names(self) -> tuple[str, ...]:
        """Replicas with a sample in the window."""
        return tuple(self._series)

    def within(self, name: str, window_seconds: float) -> list[Sample]:
        """One replica's samples of the last ``window_seconds``, oldest first."""
        since_seconds = self._now_seconds - window_seconds
        return [each for each in self._series.get(name, ()) if each.at_seconds > since_seconds]

    def increase(self, counter: Counter, name: str, window_seconds: float) -> float | None:
        """``increase(counter{pod=name}[window])``; None where Prometheus has no answer."""
        told = [(each.at_seconds, counter(each)) for each in self.within(name, window_seconds)]
        known = [(at, value) for at, value in told if value is not None]
        return promql.increase(
            [at for at, _ in known],
            [value for _, value in known],
            self._now_seconds - window_seconds,
            self._now_seconds,
        )

    def total_increase(self, counter: Counter, window_seconds: float) -> float:
        """``sum(increase(counter[window]))``; 0 where nobody has an answer."""
        each = (self.increase(counter, name, window_seconds) for name in self.names())
        return sum(value for value in each if value is not None)

    def quantile(self, quantile: float, of: HistogramOf, window_seconds: float) -> float:
        """``histogram_quantile(q, sum(rate(bucket[window])) by (le))``; NaN without observations.

        ``increase`` stands for ``rate``: the constant between them leaves a quantile as it is.
        """
        bounds: tuple[float, ...] = ()
        summed = np.zeros(0)
        for name in self.names():
            told = [each for each in self.within(name, window_seconds) if of(each) is not None]
            if len(told) < 2:
                continue
            bounds = _histogram(of, told[-1]).upper_bounds
            gained = self._buckets(of, told, window_seconds)
            summed = gained if not summed.size else summed + gained
        return promql.histogram_quantile(quantile, bounds, summed.tolist()) if bounds else math.nan

    def _buckets(self, of: HistogramOf, told: list[Sample], window_seconds: float) -> np.ndarray:
        times = [each.at_seconds for each in told]
        start_seconds = self._now_seconds - window_seconds
        columns = zip(*(_histogram(of, each).counts for each in told), strict=True)
        gained = (
            promql.increase(times, each, start_seconds, self._now_seconds) for each in columns
        )
        return np.array([value or 0.0 for value in gained])

    def mean(self, of: HistogramOf, names: Sequence[str], window_seconds: float) -> float | None:
        """``sum(rate(sum[window])) / sum(rate(count[window]))`` over the named replicas."""
        totals = [self.increase(lambda each: _total(of(each)), n, window_seconds) for n in names]
        counts = [self.increase(lambda each: _count(of(each)), n, window_seconds) for n in names]
        count = sum(each for each in counts if each is not None)
        return sum(each for each in totals if each is not None) / count if count > 0.0 else None


def _histogram(of: HistogramOf, sample: Sample) -> Histogram:
    found = of(sample)
    assert found is not None
    return found


def _total(histogram: Histogram | None) -> float | None:
    return None if histogram is None else histogram.total


def _count(histogram: Histogram | None) -> float | None:
    return None if histogram is None else histogram.count
