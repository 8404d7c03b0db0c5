"""How many gaps between tokens answers have: few, and one prompt of another makes their mean long.

The mean gap of an answer of three tokens is late when one prompt is read meanwhile, however empty
the replica is else; that of a long answer only where prompts come all the time. So whose answers
are short decides how many are late at little load, and engines tell it by the buckets of their
histogram of answer lengths.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from poolwise.model.serving.queueing import Lengths
from poolwise.plan.signals.sample import Histogram

BOUNDS_TOKENS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
"""Of answers: vLLM's own buckets. Longer ones are taken for one kind, of their mean."""
USUAL_GAPS = (0.0, 1.0, 3.0, 7.0, 14.5, 34.5)
"""In the middle of each bucket."""

Gaps = tuple[tuple[float, float], ...]
"""(gaps, share of all answers); empty where it is not known."""


def counts(seen: Histogram | None) -> tuple[float, ...]:
    """Answers by their bucket, the longest last; empty where nothing is told.

    Where engines have other bounds, an answer counts as the longest that its bucket has.
    """
    if seen is None or seen.count <= 0.0:
        return ()
    known = (0.0, *seen.counts)
    below = [known[bisect.bisect_right(seen.upper_bounds, each)] for each in BOUNDS_TOKENS]
    return tuple(after - before for before, after in pairwise((0.0, *below, seen.count)))


def added(before: Sequence[float], now: Sequence[float], kept: float) -> tuple[float, ...]:
    """What was counted before, as far as it is kept, and what was now."""
    if not before or not now:
        return tuple(now) or tuple(kept * each for each in before)
    return tuple(kept * one + other for one, other in zip(before, now, strict=True))


def read(listed: Sequence[Any]) -> tuple[float, ...]:
    """From a record; ValueError where it is of other buckets."""
    told = tuple(map(float, listed))
    if told and len(told) != len(BOUNDS_TOKENS) + 1:
        raise ValueError(f"answers in {len(told)} buckets are none of this version")
    return told


def gaps(seen: Sequence[float], mean_tokens: float, declared: Lengths, prior: float) -> Gaps:
    """Of answers whose mean is known, with what was declared as so many more answers.

    :param seen: of :func:`counts`.
    """
    total = math.fsum(seen) + prior
    if not seen or total <= 0.0:
        return ()
    both = zip(seen, _expected(declared), strict=True)
    shares = [(one + prior * other) / total for one, other in both]
    short = math.fsum(map(math.prod, zip(USUAL_GAPS, shares, strict=False)))
    longest = max(mean_tokens - 1.0 - short, 0.0) / max(shares[-1], 1e-12)
    kinds = (*USUAL_GAPS, max(longest, BOUNDS_TOKENS[-1]))
    return tuple((each, share) for each, share in zip(kinds, shares, strict=True) if share > 0.0)


def distance(one: Gaps, other: Gaps) -> float:
    """Share of answers that would have to be others; 1 where only one of both is known."""
    if bool(one) != bool(other):
        return 1.0
    mine, others = dict(one[:-1]), dict(other[:-1])
    return math.fsum(abs(mine.get(each, 0.0) - others.get(each, 0.0)) for each in mine | others)


def _expected(declared: Lengths) -> list[float]:
    """Shares of the buckets by the law of that mean and spread."""
    law = declared.scaled(declared.mean)
    below = [law.share_below(each + 0.5) for each in BOUNDS_TOKENS]
    return [after - before for before, after in pairwise((0.0, *below, 1.0))]
