"""How far a replica at a state is from missing its targets."""

from __future__ import annotations

import math
from collections.abc import Sequence

from poolwise.model.serving.latency import Latencies
from poolwise.model.serving.load import State
from poolwise.model.work import Metric, Target

NEVER_LATE = 1e-300
"""Share of tokens that counts as none."""
SHARPNESS = 20.0
"""Of the longest step, where it passes a target that nearly all tokens miss at once."""

# Looking up a member takes longer than a comparison.
_TTFT, _ITL, _TPOT = Metric.TTFT, Metric.ITL, Metric.TPOT


def metric_percentile(times: Latencies, metric: Metric, percent: float) -> float:
    """Seconds of a metric at a percentile."""
    if metric is _ITL:
        return times.token_percentile(percent)
    if metric is _TPOT:
        return times.mean_gap_percentile(percent)
    return (times.ttft if metric is _TTFT else times.e2e).percentile(percent)


def share_later(times: Latencies, metric: Metric, seconds: float) -> float:
    """Of requests (of gaps, for ITL), those that take longer."""
    if metric is _ITL:
        return times.tokens.share_later(seconds)
    if metric is _TPOT:
        return times.mean_gap_share_later(seconds)
    return 1.0 - (times.ttft if metric is _TTFT else times.e2e).share_below(seconds)


def excess(at: State, targets: tuple[Target, ...], misses: Sequence[float]) -> float:
    """Above 0 where the engine reads prompts more slowly than they come, or a target is missed, by
    as much as :func:`each_miss` has it.

    Grows with the load. Whoever waits for a prompt's turn waits without end when it comes as fast
    as it is read, so that targets of requests are missed before, and by 1 there.
    """
    busy = at.requests_per_second * at.prompt_service_seconds
    if any(target.metric.is_from_arrival for target in targets):
        return busy if busy >= 1.0 else max(misses)
    return busy - 1.0 if busy > 1.0 else max([*misses, busy - 1.0])


def miss(times: Latencies, targets: tuple[Target, ...]) -> float:
    """By how much the worst of at least one is missed; below 0 where all hold."""
    return max(each_miss(times, targets))


def each_miss(times: Latencies, targets: tuple[Target, ...]) -> list[float]:
    """By how much each is missed; below 0 where it holds."""
    return [_missed_by(times, target) for target in targets]


def first_missed(times: Latencies, targets: tuple[Target, ...]) -> Target | None:
    """The first target that does not hold."""
    return next((target for target in targets if _missed_by(times, target) > 0.0), None)


def _missed_by(times: Latencies, target: Target) -> float:
    """How far a tail is beyond its target: straight in a load that makes waits ``1 / (1 - rho)``.

    Of gaps, how many are late over those that may be, which needs no search, as a percentile of
    theirs does: by the logarithm, since a share of next to none or of nearly all says little of how
    far off a load is; or how much the longest step is, if that is less.
    """
    if target.metric.is_from_arrival:
        seconds = metric_percentile(times, target.metric, target.percentile)
        return 1.0 - target.seconds / seconds if seconds > 0.0 else -1.0
    longest = _beyond(times.longest_token_seconds, target.seconds)
    if longest <= 0.0:
        return longest
    late = share_later(times, target.metric, target.seconds)
    return min(SHARPNESS * longest, math.log(max(late, NEVER_LATE) / target.allowed_share))


def _beyond(value: float, allowed: float) -> float:
    """0 where they are equal, straight around it, from -1 to 1."""
    if value <= allowed:
        return value / allowed - 1.0 if allowed > 0.0 else 0.0
    return 1.0 - allowed / value
