"""Percentiles of one replica at a state, for the targets of a service."""

from __future__ import annotations

import math
from collections.abc import Sequence

from poolwise.model.serving.latency import Latencies, latencies
from poolwise.model.serving.load import Replica, State, state
from poolwise.model.serving.queueing import Delay
from poolwise.plan.scaling.service import Latency, LatencyTarget

BUNCHING = 0.5
"""Of the arrivals' dispersion, what one request feels of it: routers keep requests apart."""
LONE_SHARE = 2.0**-22
"""Of the largest load: a request that is alone."""
BISECTIONS = 24


def late_share(served: Replica, at: State, target: LatencyTarget) -> float:
    """Of requests (of gaps, for ITL) at a state."""
    return _late(served, at, latencies(served, at), target, target.seconds)


def tail_seconds(served: Replica, at: State, target: LatencyTarget) -> float:
    """The target's percentile at a state; infinite where prompts come faster than they are read."""
    if at.requests_per_second * at.prompt_service_seconds >= 1.0:
        return math.inf
    times = latencies(served, at)
    match target.latency:
        case Latency.TTFT:
            return times.ttft.percentile(target.percentile)
        case Latency.E2E:
            return times.e2e.percentile(target.percentile)
        case Latency.ITL:
            return times.token_percentile(target.percentile)
        case Latency.TPOT:
            return _mean_gap_percentile(served, at, target)


def floor_seconds(served: Replica, target: LatencyTarget) -> float:
    """The percentile for requests that are alone: no number of replicas goes below it."""
    if served.largest_load <= 0.0:
        return math.inf
    return tail_seconds(served, state(served, lone_load(served)), target)


def lone_load(served: Replica) -> float:
    """Of a request that is alone, nearly always: loads are sequences that are being answered, of
    which there are the fewer the more answers end with their first token."""
    answering = min(served.generated.mean, 1.0) if served.generates else 1.0
    return served.largest_load * LONE_SHARE * answering


def holds(served: Replica, at: State, targets: Sequence[LatencyTarget]) -> bool:
    """Whether all targets do; without any, whether prompts are read as fast as they come."""
    if at.requests_per_second * at.prompt_service_seconds >= 1.0:
        return False
    times = latencies(served, at)
    return all(_late(served, at, times, each, each.seconds) <= each.allowed_share
               for each in targets)  # fmt: skip


def _late(
    served: Replica, at: State, times: Latencies, target: LatencyTarget, seconds: float
) -> float:
    match target.latency:
        case Latency.TTFT:
            return 1.0 - times.ttft.share_below(seconds)
        case Latency.E2E:
            return 1.0 - times.e2e.share_below(seconds)
        case Latency.ITL:
            return times.tokens.share_later(seconds)
        case Latency.TPOT:
            return _mean_gap_late(served, at, seconds)


def _mean_gap_late(served: Replica, at: State, seconds: float) -> float:
    """Share of requests whose mean gap is longer.

    An answer of n gaps ends within ``n * seconds`` if its own steps and the prompts of others that
    are read meanwhile fit into that time; taken for the mean n of those that have any. How much
    worse short answers fare depends on the router, and shows in who is late
    (:mod:`poolwise.plan.scaling.fragility`). Any answer but those of one token has one gap at
    least: where there is less than one on average, no larger share has any.
    """
    own, with_gaps = at.decode.seconds, min(served.generated.mean, served.with_gaps_share)
    if with_gaps <= 0.0:
        return 0.0
    if seconds <= own:
        return with_gaps
    added = at.added_seconds * served.interference
    rate, spread = at.requests_per_second, 1.0 + served.prompt.scv
    bunching = BUNCHING * max(served.arrival_dispersion, 0.1)
    gaps = served.generated.mean / with_gaps
    window = gaps * seconds
    work = Delay(
        rate * added * window,
        rate * window * added**2 * spread * bunching,
        rate * window * added**3 * spread**3 * bunching**2,
    )
    return with_gaps * (1.0 - work.share_below(window - gaps * own))


def _mean_gap_percentile(served: Replica, at: State, target: LatencyTarget) -> float:
    low, high = at.decode.seconds, max(at.decode.seconds, at.mixed.seconds) * 2.0
    if not served.generates:
        return 0.0
    while _mean_gap_late(served, at, high) > target.allowed_share and high < 1e4:
        high *= 2.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        if _mean_gap_late(served, at, middle) > target.allowed_share:
            low = middle
        else:
            high = middle
    return high
