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
    """Share of requests whose mean gap is longer."""
    return math.fsum(
        share * _late_with(served, at, gaps, seconds)
        for gaps, share in served.gaps or _usual(served)
        if gaps > 0.0
    )


def _usual(served: Replica) -> tuple[tuple[float, float], ...]:
    """Gaps where only their mean is known: any answer but those of one token has one at least, so
    that where there is less than one on average, no larger share has any."""
    mean = served.generated.mean
    return ((max(mean, 1.0), min(mean, 1.0)),)


def _late_with(served: Replica, at: State, gaps: float, seconds: float) -> float:
    """Of answers with so many gaps, those whose mean one is longer.

    One of n gaps ends within ``n * seconds`` if its own steps and the prompts of others that are
    read meanwhile fit into that time.
    """
    own = at.decode.seconds
    if seconds <= own:
        return 1.0
    window = gaps * seconds
    any_share, prompts = _prompts_met(at.requests_per_second * window)
    if any_share <= 0.0:
        return 0.0
    return any_share * (1.0 - _read(served, at, prompts).share_below(window - gaps * own))


def _prompts_met(usual: float) -> tuple[float, float]:
    """Of answers, those that meet any prompt while so many come on average, and how many those do.

    A replica has just got a request, so that a router which sends them to whom has least turns to
    others: one of its own has to leave, and then it has to be its turn. With two stages of equal
    length arrivals are Erlang-2, and right after one of them ::

        P(none) = exp(-2 n) * (1 + 2 n)        E[N] = n - (1 - exp(-4 n)) / 4

    (Cox, Renewal Theory, 1962). Of what is late on eight replicas in the simulator this tells 0.7
    to 1.4 times at 5 and 8 requests/s each, and 0.4 to 1.3 times at 2; of what is late on one by
    itself, where nothing keeps requests apart, a sixth to a third, and less where hardly any is
    (``python -m bench.autoscale.validation``). What fleets teach makes up for that
    (:mod:`poolwise.plan.scaling.fragility`).
    """
    any_share = 1.0 - math.exp(-2.0 * usual) * (1.0 + 2.0 * usual)
    mean = usual + math.expm1(-4.0 * usual) / 4.0
    return any_share, max(mean / any_share, 1.0) if any_share > 0.0 else 1.0


def _read(served: Replica, at: State, prompts: float) -> Delay:
    """What prompts add to the steps of others: one, and those that chance adds to it."""
    added, more = at.added_seconds * served.interference, prompts - 1.0
    one = served.prompt.scaled(added)
    bunching = BUNCHING * max(served.arrival_dispersion, 0.1)
    return Delay(
        prompts * added,
        prompts * one.variance_seconds2 + more * bunching * added**2,
        prompts * one.third_seconds3
        + more * bunching * added * (3.0 * one.variance_seconds2 + bunching * added**2),
    )


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
