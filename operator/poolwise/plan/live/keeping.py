"""How the targets of a service are kept: by what its replicas measured lately.

A percentile needs samples (a p99 1,000 requests), so a busy service is judged by its last minute
and a quiet one by its last half hour. What a replica measured while it warmed up counts too: users
felt it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from poolwise.model.work import Target
from poolwise.plan.signals.histogram import pooled
from poolwise.plan.signals.percentile import percentile_of, samples_needed, share_within
from poolwise.plan.signals.sample import HISTOGRAMS, Histogram, Sample
from poolwise.plan.signals.window import Delta, between, joined

LONGEST_SECONDS = 1800.0
"""What is older is no longer how it is."""
SHORTEST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Signal:
    """What was measured of one target lately."""

    target: Target
    low_seconds: float | None
    """Lower bound of the percentile; None where too few samples tell."""
    high_seconds: float | None
    samples: float
    late_share: tuple[float, float] | None
    """Of requests beyond the target: least and most that the buckets allow."""


@dataclass(frozen=True, slots=True)
class Record:
    """What was measured between looks, oldest first, and the newest look at each replica."""

    spans: tuple[Delta, ...] = ()
    samples: Mapping[str, Sample] = field(default_factory=dict)

    def after(self, samples: Mapping[str, Sample], now_seconds: float) -> Record:
        """With one look more; replicas that are gone are forgotten with the next."""
        found = (
            between(self.samples[name], sample)
            for name, sample in samples.items()
            if name in self.samples
        )
        span = joined([each for each in found if isinstance(each, Delta)])
        since = now_seconds - LONGEST_SECONDS
        kept = tuple(each for each in self.spans if each.until_seconds >= since)
        return Record((*kept, span) if span else kept, dict(samples))

    def signals(self, targets: Sequence[Target], now_seconds: float) -> tuple[Signal, ...]:
        """How each target is kept."""
        return tuple(self._signal(each, now_seconds) for each in targets)

    def _signal(self, target: Target, now_seconds: float) -> Signal:
        seen = self.observed(HISTOGRAMS[target.metric], target.percentile, now_seconds)
        found = percentile_of(seen, target.percentile) if seen else None
        if seen is None or found is None:
            return Signal(target, None, None, 0.0, None)
        if not found.is_sufficient:
            return Signal(target, None, None, seen.count, None)
        share = share_within(seen, target.seconds)
        late = (1.0 - share.upper, 1.0 - share.lower) if share else None
        return Signal(target, found.lower, found.upper, seen.count, late)

    def observed(self, name: str, percentile: float, now_seconds: float) -> Histogram | None:
        """The histogram of that name: of the last minute, and further back until there are samples
        enough to speak of the percentile."""
        needed, found = samples_needed(percentile), list[Histogram]()
        count = 0.0
        for span in reversed(self.spans):
            if count >= needed and now_seconds - span.until_seconds > SHORTEST_SECONDS:
                break
            seen: Histogram | None = getattr(span, name)
            if seen is not None:
                found.append(seen)
                count += seen.count
        return pooled(found)
