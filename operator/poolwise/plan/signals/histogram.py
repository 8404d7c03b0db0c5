"""Arithmetic of cumulative histograms: differences, sums over replicas, and native ones."""

from __future__ import annotations

import bisect
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import accumulate

from poolwise.plan.signals.sample import Histogram

SCHEMAS = range(-4, 9)
"""Of exponential buckets; -53 means custom bounds, which no engine uses."""
FINEST_SCHEMA = 3
"""Native buckets are merged to 8 per doubling at most: bounds 9 % apart."""
TOLD_APART_SHARE = 0.05
"""By which a sum may be off from what its buckets allow: one scrape reads them a moment apart."""
_LEAST_EXPONENT, _MOST_EXPONENT = -14, 24
"""From 61 microseconds to 4 months, or to 16 million tokens."""


def difference(later: Histogram, earlier: Histogram) -> Histogram:
    """What came between, at the bounds that both know."""
    bounds, (after, before) = _aligned((later, earlier))
    counts = map(operator.sub, after, before)
    return Histogram(bounds, _rising(counts), _total((later.total, earlier.total), operator.sub))


def pooled(histograms: Sequence[Histogram]) -> Histogram | None:
    """All observations together, at the bounds that all know; None of no histogram.

    Engines of different versions differ in bounds; cumulative counts at shared ones stay exact.
    """
    if not histograms:
        return None
    bounds, rows = _aligned(histograms)
    counts = tuple(sum(column) for column in zip(*rows, strict=True))
    return Histogram(bounds, counts, _total((each.total for each in histograms), operator.add))


def with_faded(before: Histogram | None, kept: float, now: Histogram | None) -> Histogram | None:
    """What comes now beside what is kept of what came before; None of neither."""
    parts = [now] if now else []
    if before:
        counts = tuple(kept * each for each in before.counts)
        total = None if before.total is None else kept * before.total
        parts.append(Histogram(before.upper_bounds, counts, total))
    return pooled(parts)


def credible(histogram: Histogram) -> Histogram:
    """Without a sum that its buckets contradict.

    Speeds are learned from sums. One that stays at 0 while observations come in the bucket above a
    second would tell of the fastest replica there ever was.
    """
    least = most = before = low = 0.0
    for bound, count in zip(histogram.upper_bounds, histogram.counts, strict=True):
        inside, before = count - before, count
        least += inside * low
        most += inside * bound if inside > 0.0 else 0.0
        low = bound
    slack = TOLD_APART_SHARE * least, TOLD_APART_SHARE * most
    total = histogram.total
    if total is None or least - slack[0] <= total <= most + slack[1]:
        return histogram
    return replace(histogram, total=None)


def native(schema: int, zero_count: float, buckets: Mapping[int, float], total: float) -> Histogram:
    """A native (exponential) histogram of values at or above 0, on bounds that never move.

    Bucket i holds values up to ``2 ** (i / 2 ** schema)``; native bounds of a finer schema contain
    those of a coarser one, so merging is exact.

    :param buckets: count of each bucket, not cumulative.
    """
    coarse = min(schema, FINEST_SCHEMA)
    merged: dict[int, float] = {}
    for index, count in buckets.items():
        at = math.ceil(index / 2 ** (schema - coarse))
        merged[at] = merged.get(at, 0.0) + count
    per_doubling = 2.0**coarse
    grid = range(int(_LEAST_EXPONENT * per_doubling), int(_MOST_EXPONENT * per_doubling) + 1)
    ordered = sorted(merged)
    running = [zero_count]
    for index in ordered:
        running.append(running[-1] + merged[index])
    counts = (running[bisect.bisect_right(ordered, index)] for index in grid)
    bounds = (2.0 ** (index / per_doubling) for index in grid)
    return Histogram((*bounds, math.inf), (*counts, running[-1]), total)


def _aligned(
    histograms: Sequence[Histogram],
) -> tuple[tuple[float, ...], list[tuple[float, ...]]]:
    """Bounds that all know, ascending, and of each histogram the counts there; infinity always
    is one of them."""
    first = histograms[0].upper_bounds
    if all(each.upper_bounds == first for each in histograms):
        return first, [each.counts for each in histograms]
    every = sorted({bound for each in histograms for bound in each.upper_bounds})
    rows = [_known(each, every) for each in histograms]
    shared = [at for at in range(len(every)) if all(row[at] is not None for row in rows)]
    return tuple(every[at] for at in shared), [
        tuple(count for at in shared if (count := row[at]) is not None) for row in rows
    ]


def _known(histogram: Histogram, bounds: Iterable[float]) -> list[float | None]:
    """Observations at or below each bound, where that is known.

    It is at the histogram's own bounds, and everywhere inside a bucket that is empty: a Prometheus
    leaves out the empty buckets of native histograms, so that bounds come with the observations.
    """
    own, counts = histogram.upper_bounds, (0.0, *histogram.counts)
    found: list[float | None] = []
    for bound in bounds:
        at = bisect.bisect_left(own, bound)
        below, above = counts[at], counts[at + 1]
        found.append(above if own[at] == bound or below == above else None)
    return found


def _total(
    totals: Iterable[float | None], together: Callable[[float, float], float]
) -> float | None:
    """Unknown where any is: what is summed up could not be told from what is counted."""
    told = list(totals)
    known = [each for each in told if each is not None]
    return reduce(together, known) if len(known) == len(told) else None


def _rising(counts: Iterable[float]) -> tuple[float, ...]:
    """Cumulative counts never fall; buckets of one scrape may have been read a moment apart."""
    return tuple(accumulate(counts, max, initial=0.0))[1:]
