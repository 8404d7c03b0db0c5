"""Samples and histograms in few words."""

import math
from itertools import accumulate
from typing import Any

from hypothesis import strategies as st

from poolwise.plan.signals.sample import Histogram, Sample

BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, math.inf)


def histogram(*per_bucket: float, bounds: tuple[float, ...] = BOUNDS, total: float = 0.0):
    """Counts of the buckets, not cumulative; those left out are empty."""
    padded = [*per_bucket, *[0.0] * (len(bounds) - len(per_bucket))]
    return Histogram(bounds, tuple(accumulate(padded)), total)


def sample(at_seconds: float, replica: str = "a", **fields: Any) -> Sample:
    """One look at a replica."""
    return Sample(replica, at_seconds, **fields)


def of_values(values, bounds=BOUNDS) -> Histogram:
    """The histogram that an engine would have made of these."""
    counts = tuple(float(sum(value <= bound for value in values)) for bound in bounds)
    return Histogram(bounds, counts, float(sum(values)))


latencies = st.lists(st.floats(0.001, 8.0, allow_nan=False), max_size=60)
