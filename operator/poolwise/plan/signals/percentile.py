"""Percentiles of histograms, with what is known of them and what is not.

A histogram tells only between which two bounds a percentile lies. Buckets of engines are coarse
where targets lie (vLLM: 2.5 s to 5 s), so both bounds are told beside the estimate, and where the
target is itself a bound, the share of requests inside it is counted exactly.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from statistics import NormalDist

from poolwise.plan.signals.sample import Histogram

TAIL_SAMPLES = 10.0
"""Observations wanted beyond the percentile: a p99 takes 1,000 requests. With 10 beyond it, the
count beyond has a standard error of a third."""
MOST_TILT, LEAST_TILT, TILT_BISECTIONS = 50.0, 1e-4, 24
"""Within a fiftieth of either end all is as good as there."""
MOST_UNSEEN = 0.4
"""Share that half an observation counts as at most, of a few."""
LEAST_ABOVE = 1e-2
"""Of what is above a bound, that is above the next one as well: no power law falls to nothing."""


@dataclass(frozen=True, slots=True)
class Percentile:
    """A percentile, between the bounds of the bucket in which it lies."""

    lower: float
    upper: float
    """Infinity in the last bucket."""
    estimate: float
    """Interpolated within the bucket; its lower bound in the last one."""
    samples: float
    is_sufficient: bool
    """Whether enough was observed to speak of this percentile."""


@dataclass(frozen=True, slots=True)
class Share:
    """Share of observations within a target, 0 to 1; counted, so that all three are one, where the
    target is a bound of a bucket."""

    lower: float
    upper: float
    estimate: float
    samples: float


def samples_needed(percentile: float) -> float:
    """Fewest observations with which to speak of a percentile: 10 / (1 - q)."""
    return math.ceil(round(TAIL_SAMPLES / (1 - percentile / 100), 6))


def percentile_of(histogram: Histogram, percentile: float) -> Percentile | None:
    """The percentile (above 0, below 100) of what was observed; None where nothing was."""
    if histogram.count <= 0:
        return None
    rank = percentile / 100 * histogram.count
    index = bisect.bisect_left(histogram.counts, rank)
    lower, upper = _edges(histogram, index)
    return Percentile(
        lower,
        upper,
        _interpolated(histogram, index, rank),
        histogram.count,
        histogram.count >= samples_needed(percentile),
    )


def share_within(histogram: Histogram, target: float) -> Share | None:
    """Share of observations at or below a target; None where nothing was observed.

    Between two bounds it is estimated as of a log-normal law: straight between their normal scores.
    By a straight line between the shares themselves, 1.1 to 1.8 times as many first tokens are late
    as were (``python -m bench.autoscale.between``).
    """
    if histogram.count <= 0:
        return None
    index = bisect.bisect_left(histogram.upper_bounds, target)
    above = histogram.counts[index] / histogram.count
    if histogram.upper_bounds[index] == target:
        return Share(above, above, above, histogram.count)
    below = histogram.counts[index - 1] / histogram.count if index else 0.0
    lower, upper = _edges(histogram, index)
    if math.isinf(upper):
        estimate = below
    elif lower <= 0.0:  # has no logarithm
        estimate = below + (above - below) * target / upper
    else:
        part = math.log(target / lower) / math.log(upper / lower)
        estimate = _between(below, above, part, histogram.count)
    return Share(below, above, estimate, histogram.count)


def _between(below: float, above: float, part: float, samples: float) -> float:
    """Of two shares, so far from the one to the other by their normal scores; of none and of all
    half an observation is taken not to have been seen."""
    unseen, normal = min(0.5 / samples, MOST_UNSEEN), NormalDist()
    scores = [normal.inv_cdf(min(max(each, unseen), 1.0 - unseen)) for each in (below, above)]
    found = normal.cdf(scores[0] + part * (scores[1] - scores[0]))
    return min(max(found, below), above)


def tail_share(histogram: Histogram, value: float) -> float:
    """Share of observations above a value, as lengths fall off: by a power of them between two
    bounds. What lies beyond the last finite bound is not taken to be above a value there."""
    if histogram.count <= 0:
        return 0.0
    index = bisect.bisect_left(histogram.upper_bounds, value)
    lower, upper = _edges(histogram, index)
    above = histogram.count - histogram.counts[index]
    below = histogram.count - histogram.counts[index - 1] if index else histogram.count
    if value == upper or lower <= 0.0 or math.isinf(upper) or below <= 0.0:
        return above / histogram.count
    part = math.log(value / lower) / math.log(upper / lower)
    least = LEAST_ABOVE * below
    return float(below / histogram.count * (max(above, least) / below) ** part)


def tilted_share(histogram: Histogram, value: float) -> float | None:
    """The same where next to nothing lies above the bucket, which then says nothing of how lengths
    fall off in it: by the sum of all. None elsewhere, and where the sum is not known.

    Densities within buckets are exponential in the place in the bucket, the same in all, and such
    that their sum is the one that was told: it shows where much lies at the ends of wide buckets.
    """
    if histogram.count <= 0 or histogram.total is None:
        return None
    index = bisect.bisect_left(histogram.upper_bounds, value)
    lower, upper = _edges(histogram, index)
    above = histogram.count - histogram.counts[index]
    below = histogram.count - (histogram.counts[index - 1] if index else 0.0)
    if math.isinf(upper) or above > LEAST_ABOVE * below:
        return None
    inside = histogram.counts[index] - (histogram.counts[index - 1] if index else 0.0)
    tilt = _tilt(_mean_place(histogram))
    place = (value - lower) / (upper - lower)
    return (inside * _share_beyond(place, tilt) + above) / histogram.count


def _mean_place(histogram: Histogram) -> float:
    """Of observations between the bounds of their buckets, 0 to 1: the one that makes the sum."""
    least = width = before = low = 0.0
    for high, count in zip(histogram.upper_bounds[:-1], histogram.counts, strict=False):
        least += (count - before) * low
        width += (count - before) * (high - low)
        before, low = count, high
    assert histogram.total is not None
    return (histogram.total - least) / width if width > 0.0 else 0.5


def _tilt(mean_place: float) -> float:
    """Exponent of a density on 0 to 1 with this mean; by bisection."""
    low, high = -MOST_TILT, MOST_TILT
    for _ in range(TILT_BISECTIONS):
        middle = (low + high) / 2.0
        if _place(middle) < mean_place:
            low = middle
        else:
            high = middle
    return low


def _place(tilt: float) -> float:
    """Mean of the density ``exp(tilt * place)`` on 0 to 1."""
    if abs(tilt) < LEAST_TILT:
        return 0.5
    return 1.0 / -math.expm1(-tilt) - 1.0 / tilt


def _share_beyond(place: float, tilt: float) -> float:
    if abs(tilt) < LEAST_TILT:
        return 1.0 - place
    return math.expm1(tilt * (1.0 - place)) / math.expm1(tilt) * math.exp(tilt * place)


def _edges(histogram: Histogram, index: int) -> tuple[float, float]:
    """Bounds of a bucket; what is measured is never below 0."""
    return histogram.upper_bounds[index - 1] if index else 0.0, histogram.upper_bounds[index]


def _interpolated(histogram: Histogram, index: int, rank: float) -> float:
    lower, upper = _edges(histogram, index)
    if math.isinf(upper):
        return lower
    before = histogram.counts[index - 1] if index else 0.0
    inside = histogram.counts[index] - before
    return lower + (upper - lower) * (rank - before) / inside
