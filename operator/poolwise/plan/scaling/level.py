"""The present rate of arrivals: over as long a time as it has not changed.

A mean over a long time is steady, and late when the rate changes; over a short time it is the other
way round. Lepski's rule takes the longest window whose mean agrees with those of all shorter ones,
and whose older part with the rest, within what chance explains. Chance is measured: the variance of
arrivals in a step over their mean, from differences of neighbouring steps, which a slow change of
the rate hardly touches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from poolwise.plan.scaling.cadence import steps
from poolwise.plan.scaling.memory import Bin

SHORTEST_SECONDS = 10.0
"""Of a window: one usual look of the operator. Of two the older one may be of before a jump."""
LONGEST_SECONDS = 600.0
LONGEST_SPAN_SECONDS = 500.0
"""Of a growth: twice as much of the past is kept, and a bit."""
DEVIATIONS = 2.0
"""That two means may lie apart."""
CHANGED_DEVIATIONS = 4.0
"""That what a longer window adds lies apart from the shorter one where the rate has changed. The
two share no arrival: of the 2,400 comparisons of an hour's looks chance takes one in seven hours so
far."""
USUAL_DISPERSION = 1.5
USUAL_STEPS = 8.0
"""How many steps the usual dispersion counts as, beside those that were seen."""


@dataclass(frozen=True, slots=True)
class Level:
    """Requests per second, as they come now."""

    mid: float
    deviation: float
    """Standard error of ``mid``."""
    seconds: float
    """The window that it is taken over."""


def level(bins: Sequence[Bin]) -> Level:
    """From the latest steps, oldest first."""
    dispersion = _dispersion(bins)
    low, high = 0.0, math.inf
    found = Level(0.0, 0.0, 0.0)
    arrivals = seconds = 0.0
    limit = SHORTEST_SECONDS
    for each in reversed(bins):
        arrivals, seconds = arrivals + each.arrivals, seconds + each.seconds
        if seconds < limit * 0.99 and each is not bins[0]:
            continue
        limit = seconds * 1.5
        mid = arrivals / seconds
        deviation = math.sqrt(dispersion * max(arrivals, 1.0)) / seconds
        if mid + DEVIATIONS * deviation < low or mid - DEVIATIONS * deviation > high:
            break
        if found.seconds and _has_changed(found, arrivals, seconds, dispersion):
            break
        low = max(low, mid - DEVIATIONS * deviation)
        high = min(high, mid + DEVIATIONS * deviation)
        found = Level(mid, deviation, seconds)
        if seconds >= LONGEST_SECONDS:
            break
    return found


def _has_changed(found: Level, arrivals: float, seconds: float, dispersion: float) -> bool:
    """Whether what a longer window adds is of another rate.

    Its mean alone shows that late: it is made of the shorter window's arrivals for the most part.
    """
    more = seconds - found.seconds
    added = max(arrivals - found.mid * found.seconds, 0.0)
    deviation = math.sqrt(dispersion * max(added, 1.0)) / more
    apart = abs(added / more - found.mid)
    return apart > CHANGED_DEVIATIONS * math.hypot(deviation, found.deviation)


def span_seconds(horizon_seconds: float) -> float:
    """Over which growth is measured, to be compared with that over a start."""
    return min(horizon_seconds, LONGEST_SPAN_SECONDS)


def growth(bins: Sequence[Bin], horizon_seconds: float) -> float:
    """ln(the present rate / the one of a start ago); 0 while too little is known of that."""
    span = span_seconds(horizon_seconds)
    if not bins or bins[-1].at_seconds - bins[0].at_seconds < 2.0 * span:
        return 0.0
    since = bins[-1].at_seconds - span
    now, then = level(bins), level([each for each in bins if each.at_seconds <= since])
    return math.log(now.mid / then.mid) if min(now.mid, then.mid) > 0.0 else 0.0


def expected(found: Level, requests_per_second: float | None) -> Level:
    """What is known of the future in place of a forecast, where something is."""
    if requests_per_second is None:
        return found
    return Level(requests_per_second, 0.0, found.seconds)


def _dispersion(bins: Sequence[Bin]) -> float:
    """Variance over mean of the arrivals in a step (1 is Poisson): half the mean square of
    differences over the mean, with the usual one as a few more steps."""
    squares = weight = 0.0
    for one, other in pairwise(bins):
        mean = (one.arrivals + other.arrivals) / 2.0
        if mean > 0.0 and one.seconds > 0.0 and other.seconds > 0.0:
            scaled, count = other.arrivals * one.seconds / other.seconds, steps(one.seconds)
            squares += count * min((scaled - one.arrivals) ** 2 / 2.0 / mean, mean)
            weight += count
    return (squares + USUAL_DISPERSION * USUAL_STEPS) / (weight + USUAL_STEPS)
