"""Who is late however many replicas there are: prompts that alone take longer than their target.

Engines tell how long prompts were, and the model from which length on one misses its target on an
idle replica. So of those that were late it is known how many load had nothing to do with, and only
the others tell of the edge (:mod:`.evidence`) and use up the allowance (:mod:`.budget`). Both
counts are of the same requests and fade alike: that few long prompts come by chance is in both, and
so not in what is left. Where an engine tells no lengths, the spread that was declared has to do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from poolwise.model.serving.queueing import Lengths
from poolwise.model.work import Metric, Target
from poolwise.plan.scaling.capability import Capability
from poolwise.plan.scaling.mix import Mix
from poolwise.plan.scaling.service import Predictor, Service
from poolwise.plan.scaling.tails import floor_seconds
from poolwise.plan.signals.histogram import with_faded
from poolwise.plan.signals.percentile import tail_share, tilted_share
from poolwise.plan.signals.sample import Histogram

HALF_LIFE_SECONDS = 900.0
"""The share of long prompts drifts, and where one request in fifty is long it takes a thousand to
count them."""
LEAST_REQUESTS = 30.0
"""Whose lengths are told before they are believed."""
BISECTIONS = 14
"""To 0.1 % of a length."""


@dataclass(frozen=True, slots=True)
class Lone:
    """Fading counts of the last quarter of an hour."""

    late: float = 0.0
    """Requests, in units of the strictest target's allowance."""
    count: float = 0.0
    """Of all that these are of."""
    lengths: Histogram | None = None
    """Prompt tokens of those that ended."""

    def after(self, late: float, count: float, lengths: Histogram | None, seconds: float) -> Lone:
        """One step later."""
        kept = 0.5 ** (seconds / HALF_LIFE_SECONDS)
        return Lone(
            kept * self.late + late,
            kept * self.count + count,
            with_faded(self.lengths, kept, lengths),
        )

    @property
    def is_told(self) -> bool:
        """Whether enough is known of lengths."""
        return self.lengths is not None and self.lengths.count >= LEAST_REQUESTS

    @property
    def is_open(self) -> bool:
        """Whether lengths are told, but of too few requests so far to know who is late alone."""
        return self.lengths is not None and not self.is_told

    def of_load(self, alone_share: float) -> float:
        """Share of the late ones that load made late."""
        count = self.lengths.count if self.lengths else self.count
        return 1.0 - min(alone_share * count / self.late, 1.0) if self.late > 0.0 else 1.0

    def as_mapping(self) -> dict[str, Any]:
        """For JSON, which has no infinity: the last bound is left out."""
        found: dict[str, Any] = {"late": self.late, "count": self.count}
        if self.lengths:
            found["bounds"] = list(self.lengths.upper_bounds[:-1])
            found["counts"] = list(self.lengths.counts)
            found["total"] = self.lengths.total
        return found

    @staticmethod
    def read(document: Mapping[str, Any]) -> Lone:
        """What :meth:`as_mapping` made; KeyError, TypeError or ValueError for anything else."""
        lengths = None
        if "bounds" in document:
            bounds, counts = map(float, document["bounds"]), map(float, document["counts"])
            lengths = Histogram((*bounds, math.inf), tuple(counts), _read_total(document))
            if len(lengths.upper_bounds) != len(lengths.counts):
                raise ValueError("lengths with another number of bounds than of counts")
        return Lone(float(document["late"]), float(document["count"]), lengths)


def _read_total(document: Mapping[str, Any]) -> float | None:
    total = document["total"]
    return None if total is None else float(total)


@dataclass(frozen=True, slots=True)
class Known:
    """What buckets tell of who is late alone."""

    share: float
    """Of requests, as lengths fall off."""
    more: float
    """That may be as well, by the sum of all lengths."""


def alone_share(service: Service, able: Capability, mix: Mix, lone: Lone) -> float:
    """Of requests, those that are late even alone on the first pool, in units of the strictest
    target's allowance.

    First tokens by the lengths that were told; before they are, and for other targets, by the law
    that the mean and the spread of lengths make.
    """
    found, helped = 0.0, able.helped(service.targets)
    for target, floor in zip(service.targets, able.floors, strict=True):
        if target not in helped:
            continue
        share = floor
        if lone.lengths and lone.is_told and target.metric is Metric.TTFT:
            predictor = service.first.predictor
            longest = longest_in_time(predictor, target, mix.computed_share, able.slowness)
            share = tail_share(lone.lengths, longest)
        found = max(found, share * service.allowed_share / target.allowed_share)
    return min(found, 1.0)


def known_share(
    service: Service, able: Capability, mix: Mix, lone: Lone, alone_share: float
) -> Known | None:
    """The same where nothing else can make requests late at any load: where first tokens are what
    is late, and lengths are told."""
    target = able.limit
    if target is None or target.metric is not Metric.TTFT or not (lone.lengths and lone.is_told):
        return None
    longest = longest_in_time(service.first.predictor, target, mix.computed_share, able.slowness)
    most = tilted_share(lone.lengths, longest)
    if most is None:
        return Known(alone_share, 0.0)
    most *= service.allowed_share / target.allowed_share
    return Known(alone_share, max(most - alone_share, 0.0))


@lru_cache(maxsize=256)
def longest_in_time(
    predictor: Predictor, target: Target, computed_share: float, slowness: float
) -> float:
    """Tokens of a prompt whose first token just is, on an idle replica; infinite where each is."""

    def is_late(tokens: float) -> bool:
        answers = predictor.prior_mix.answer_tokens
        served = predictor.replica(Mix(Lengths(tokens, 0.0), answers, computed_share))
        return floor_seconds(served, target) * slowness > target.seconds

    low, high = 1.0, predictor.longest_tokens
    if not is_late(high):
        return math.inf
    for _ in range(BISECTIONS):
        middle = math.sqrt(low * high)
        if is_late(middle):
            high = middle
        else:
            low = middle
    return low
