"""What PromQL makes of counters and histograms, to the letter.

Source: prometheus ``promql/functions.go`` (``extrapolatedRate``) and ``promql/quantile.go``
(``BucketQuantile``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

EXTRAPOLATION_THRESHOLD = 1.1
"""A gap at an end of the range longer than this many mean gaps is not filled in whole."""


def increase(
    times_seconds: Sequence[float],
    values: Sequence[float],
    start_seconds: float,
    end_seconds: float,
) -> float | None:
    """``increase()`` of a counter over (start, end]; None with fewer than two samples."""
    if len(values) < 2:
        return None
    sampled_seconds = times_seconds[-1] - times_seconds[0]
    gained = _gained(values)
    mean_gap_seconds = sampled_seconds / (len(values) - 1)
    before = _reach(times_seconds[0] - start_seconds, mean_gap_seconds)
    after = _reach(end_seconds - times_seconds[-1], mean_gap_seconds)
    if gained > 0.0 and values[0] >= 0.0:  # a counter cannot have been below zero
        before = min(before, sampled_seconds * values[0] / gained)
    return gained * (sampled_seconds + before + after) / sampled_seconds


def _gained(values: Sequence[float]) -> float:
    """Last less first, with what was lost at each reset."""
    lost = sum(was for was, now in itertools.pairwise(values) if now < was)
    return values[-1] - values[0] + lost


def _reach(gap_seconds: float, mean_gap_seconds: float) -> float:
    is_far = gap_seconds >= EXTRAPOLATION_THRESHOLD * mean_gap_seconds
    return mean_gap_seconds / 2.0 if is_far else gap_seconds


def histogram_quantile(
    quantile: float, upper_bounds: Sequence[float], counts: Sequence[float]
) -> float:
    """``histogram_quantile()`` of cumulative buckets; NaN without observations.

    Linear within a bucket whose lower end is the bound before (0 for the first); the last finite
    bound where the rank falls into the bucket to infinity.
    """
    counts = _monotonic(counts)
    if len(counts) < 2 or not counts[-1] > 0.0 or math.isnan(quantile):
        return math.nan
    rank = quantile * counts[-1]
    at = next((index for index, count in enumerate(counts[:-1]) if count >= rank), len(counts) - 1)
    if at == len(counts) - 1:
        return upper_bounds[-2]
    if at == 0 and upper_bounds[0] <= 0.0:
        return upper_bounds[0]
    lower, below = (upper_bounds[at - 1], counts[at - 1]) if at else (0.0, 0.0)
    return lower + (upper_bounds[at] - lower) * (rank - below) / (counts[at] - below)


def _monotonic(counts: Sequence[float]) -> list[float]:
    """Sums of rates can fall from one bucket to the next by rounding; Prometheus lifts them."""
    lifted: list[float] = []
    for count in counts:
        lifted.append(max(count, lifted[-1]) if lifted else count)
    return lifted
