"""The last half hour of a service's replicas, minute by minute.

What came while a replica warmed up is kept apart: compilation and empty caches make its first
requests slower than any later one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from poolwise.plan.scaling.seen import Phase, ReplicaSeen
from poolwise.plan.signals.sample import Histogram, Sample
from poolwise.plan.signals.window import COUNTERS, HISTOGRAMS, Delta, between, joined

KEPT_SECONDS = 1800.0
MINUTE_SECONDS = 60.0
WARMING_SECONDS = 120.0
"""After a replica became ready for the first time."""
FULL_SHARE = 0.9
"""Of a cache: the next requests wait for a block, or take one from others."""


@dataclass(frozen=True, slots=True)
class Gauges:
    """Sums over looks at ready replicas that told all three."""

    looks: int = 0
    pressed: int = 0
    """Looks at a full cache with requests waiting."""
    cache_share: float = 0.0
    waiting: float = 0.0

    def __add__(self, other: Gauges) -> Gauges:
        """Both together."""
        return Gauges(
            self.looks + other.looks,
            self.pressed + other.pressed,
            self.cache_share + other.cache_share,
            self.waiting + other.waiting,
        )


@dataclass(frozen=True, slots=True)
class Minute:
    """What came in about a minute."""

    since_seconds: float
    until_seconds: float
    settled: Delta | None = None
    """Of replicas past their warm-up."""
    warming: Delta | None = None
    gauges: Gauges = Gauges()
    queue: float = 0.0
    """Requests that wait at its end, over all replicas."""
    looks: int = 1
    short: int = 0
    """Looks at which more replicas were wanted than served."""
    newcomers: frozenset[str] = frozenset()
    """Replicas that warmed up."""

    def and_then(self, later: Minute) -> Minute:
        """Both as one."""
        return Minute(
            self.since_seconds,
            later.until_seconds,
            _both(self.settled, later.settled),
            _both(self.warming, later.warming),
            self.gauges + later.gauges,
            later.queue,
            self.looks + later.looks,
            self.short + later.short,
            self.newcomers | later.newcomers,
        )


@dataclass(frozen=True, slots=True)
class History:
    """Minutes, oldest first, and the newest look at each replica."""

    minutes: tuple[Minute, ...] = ()
    samples: Mapping[str, Sample] = field(default_factory=dict)
    ready_at: Mapping[str, float] = field(default_factory=dict)
    """When each replica became ready for the first time, Unix seconds."""
    at_seconds: float = -math.inf
    """Of the newest look."""

    def after(
        self,
        samples: Mapping[str, Sample],
        replicas: Iterable[ReplicaSeen],
        now_seconds: float,
        is_short: bool,
    ) -> History:
        """With one look more.

        :param is_short: whether more replicas are wanted than serve.
        """
        ready = {
            each.name: self.ready_at.get(each.name, each.ready_at_seconds)
            for each in replicas
            if each.phase is not Phase.STARTING and each.ready_at_seconds is not None
        }
        looked = self._looked(samples, ready, now_seconds, is_short)
        since = now_seconds - KEPT_SECONDS
        kept = [each for each in self.minutes if each.until_seconds >= since]
        if looked is not None:
            if kept and now_seconds - kept[-1].since_seconds < MINUTE_SECONDS:
                looked = kept.pop().and_then(looked)
            kept.append(looked)
        return History(tuple(kept), dict(samples), ready, now_seconds)

    def within(self, since_seconds: float, until_seconds: float = 0.0) -> list[Minute]:
        """Minutes that lie wholly between so long and so long before the newest look."""
        since, until = self.at_seconds - since_seconds, self.at_seconds - until_seconds
        return [
            each
            for each in self.minutes
            if each.since_seconds >= since and each.until_seconds <= until
        ]

    def _looked(
        self,
        samples: Mapping[str, Sample],
        ready: Mapping[str, float],
        now_seconds: float,
        is_short: bool,
    ) -> Minute | None:
        """What came since the last look; None at the first one."""
        if math.isinf(self.at_seconds):
            return None
        settled, warming = list[Delta](), dict[str, Delta]()
        for name, sample in samples.items():
            if name not in ready:
                continue
            delta = self._delta(sample, ready[name])
            if delta is None:
                continue
            if delta.since_seconds - ready[name] < WARMING_SECONDS:
                warming[name] = delta
            else:
                settled.append(delta)
        told = [sample for name, sample in samples.items() if name in ready]
        return Minute(
            self.at_seconds,
            now_seconds,
            joined(settled),
            joined(tuple(warming.values())),
            sum(map(_gauges, told), Gauges()),
            sum(sample.waiting or 0.0 for sample in told),
            short=int(is_short),
            newcomers=frozenset(warming),
        )

    def _delta(self, sample: Sample, ready_seconds: float) -> Delta | None:
        """Since the last look; of a replica that became ready since, all that it counted."""
        before = self.samples.get(sample.replica)
        if before is None and ready_seconds >= self.at_seconds - MINUTE_SECONDS:
            before = _nothing(sample, ready_seconds)
        found = between(before, sample) if before is not None else None
        return found if isinstance(found, Delta) else None


def covered_seconds(minutes: Iterable[Minute]) -> float:
    """Their lengths together."""
    return math.fsum(each.until_seconds - each.since_seconds for each in minutes)


def settled(minutes: Iterable[Minute]) -> Delta | None:
    """What came to replicas past their warm-up."""
    return joined([each.settled for each in minutes if each.settled is not None])


def _gauges(sample: Sample) -> Gauges:
    share, waiting = sample.kv_cache_usage, sample.waiting
    if share is None or waiting is None:
        return Gauges()
    return Gauges(1, int(share >= FULL_SHARE and waiting > 0.0), share, waiting)


def _both(first: Delta | None, second: Delta | None) -> Delta | None:
    return joined([each for each in (first, second) if each is not None])


def _nothing(sample: Sample, at_seconds: float) -> Sample:
    """A look before the first request."""
    counts = {name: 0.0 for name in COUNTERS if getattr(sample, name) is not None}
    told = {name: each for name in HISTOGRAMS if (each := getattr(sample, name)) is not None}
    nothing: dict[str, Any] = {**counts, **{name: _empty(each) for name, each in told.items()}}
    return replace(sample, at_seconds=at_seconds, **nothing)


def _empty(histogram: Histogram) -> Histogram:
    return Histogram(histogram.upper_bounds, (0.0,) * len(histogram.counts), 0.0)
