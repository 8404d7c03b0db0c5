"""How fast replicas fill: what they read and write, less what those leave that end.

Where answers take minutes it foretells more than arrivals do, and sees answers that become longer
before the first of them ends: nobody leaves any more, and all that is written stays. Counters tell
it exactly, while looks at what is in flight carry the noise of gauges, and a fleet that fills up by
a tenth in half a minute is lost in it.

Requests that a client breaks off are read and written as others are, and end nowhere (vLLM counts
them in no histogram: vllm-project/vllm#55634). How many there are is known in the long run, from
who came and neither ended nor is there; each is taken to leave a usual context.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from poolwise.plan.scaling.capability import Capability
from poolwise.plan.scaling.memory import Bin

SHORTEST_SECONDS, LONGEST_SECONDS = 20.0, 120.0
"""Of a window. Over 20 cells of R1, with 60 s at most, with 30 s at least, with one deviation or
none below, it is as dear within one percent and as many are in time within 0.06 points."""
WIDER = 1.5
"""Times as long as the window before it."""
DEVIATIONS = 2.0
"""That two windows may lie apart, and that growth must be above chance."""
LEAST_BINS = 5
LEAST_LEAVING_SECONDS = 600.0
"""Over which who leaves is counted: in a shorter time the noise of gauges is as much."""
NOISY_BINS = 60
"""Newest ones that chance is taken from."""
MEAN_DISTANCE = 2.0 / math.sqrt(math.pi)
"""Of two normal numbers of deviation 1."""


def filling(bins: Sequence[Bin], able: Capability) -> float:
    """Full replicas a second, where it is above chance; else 0.

    Over the longest window whose mean agrees with those of all shorter ones within what chance
    explains (Lepski's rule, as for arrivals: :mod:`.level`).
    """
    context_tokens = able.served.context_tokens or 1.0
    if len(bins) < LEAST_BINS or able.in_flight <= 0.0:
        return 0.0
    mean, deviation = _rate(bins)
    mean -= _leaving(bins) * context_tokens
    return max(mean - DEVIATIONS * deviation, 0.0) / (able.in_flight * context_tokens)


def _leaving(bins: Sequence[Bin]) -> float:
    """Requests per second that are broken off."""
    seconds = math.fsum(each.seconds for each in bins)
    left = math.fsum(each.broken_off for each in bins)
    return max(left, 0.0) / max(seconds, LEAST_LEAVING_SECONDS)


def _rate(bins: Sequence[Bin]) -> tuple[float, float]:
    """Tokens per second, with their standard error."""
    noise = _noise(bins[-NOISY_BINS:])
    low, high, found = -math.inf, math.inf, (0.0, 0.0)
    tokens = seconds = 0.0
    limit = SHORTEST_SECONDS
    for each in reversed(bins):
        tokens, seconds = tokens + each.kept_tokens, seconds + each.seconds
        if seconds < limit * 0.99:
            continue
        limit = seconds * WIDER
        mean, deviation = tokens / seconds, noise / math.sqrt(seconds)
        if mean + DEVIATIONS * deviation < low or mean - DEVIATIONS * deviation > high:
            break
        low = max(low, mean - DEVIATIONS * deviation)
        high = min(high, mean + DEVIATIONS * deviation)
        found = mean, deviation
        if seconds >= LONGEST_SECONDS:
            break
    return found


def _noise(bins: Sequence[Bin]) -> float:
    """Deviation of a second's tokens, from how far neighbours lie apart, which a slow change hardly
    touches. Distances and not their squares: one jump is no noise."""
    apart = [
        abs(after.kept_tokens / after.seconds - before.kept_tokens / before.seconds)
        * math.sqrt((before.seconds + after.seconds) / 2.0)
        for before, after in pairwise(bins)
    ]
    return math.fsum(apart) / len(apart) / MEAN_DISTANCE
