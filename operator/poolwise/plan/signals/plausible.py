"""What a replica can have counted at most: of what lies beyond, nothing can be believed.

A number may be finite and yet nonsense, and each law that learns from it would need a bound of its
own: one queue of 1e300 requests overflows them all. So there is one bound, at the gate, and laws
hold for whatever comes through (``tests/plan/scaling/test_absurd.py`` draws from all of it).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from poolwise.plan.signals.sample import Histogram, Sample
from poolwise.plan.signals.window import COUNTERS, HISTOGRAMS
from poolwise.plan.signals.words import WORDS

MOST_COUNTED = 2.0**53
"""Since a replica started: beyond it a float no longer counts by ones. A million tokens a second
come to it in 285 years."""
MOST_IN_FLIGHT = 1e7
"""Requests at once: of the gateway before a thousand replicas, ten thousand each."""
LEAST_BOUND = 1e-9
"""Of a bucket: a nanosecond."""
_MOST = {"running": MOST_IN_FLIGHT, "waiting": MOST_IN_FLIGHT, "kv_cache_usage": 1.0}
_MOST |= dict.fromkeys(COUNTERS, MOST_COUNTED)


def implausible(sample: Sample) -> str | None:
    """What cannot be true of it, in one sentence; None: all may be."""
    return next(_problems(sample), None)


def _problems(sample: Sample) -> Iterator[str]:
    if not math.isfinite(sample.at_seconds):
        yield f"has the timestamp {sample.at_seconds:g}"
    for name, most in _MOST.items():
        value = getattr(sample, name)
        if value is not None and not 0.0 <= value <= most:
            yield (
                f"{WORDS[name]} is {value:g}, outside of the 0 to {most:.3g} that a replica can"
                " have"
            )
    for name in HISTOGRAMS:
        told: Histogram | None = getattr(sample, name)
        if told is not None and not _is_plausible(told):
            yield (
                f"{WORDS[name]} has {told.count:g} observations of {told.total or 0.0:g} in all, "
                f"in buckets from {told.upper_bounds[0]:g} on, which no replica can have"
            )


def _is_plausible(told: Histogram) -> bool:
    """Counts ascend, so that their ends tell; NaN is in no range."""
    total = 0.0 if told.total is None else told.total
    bounds = (each for each in told.upper_bounds[:-1] if each != 0.0)
    return all(0.0 <= each <= MOST_COUNTED for each in (told.counts[0], told.count, total)) and all(
        LEAST_BOUND <= each <= MOST_COUNTED for each in bounds
    )
