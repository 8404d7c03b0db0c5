"""Percentiles of one replica at a state, for the targets of a service."""

from __future__ import annotations

from collections.abc import Sequence

from poolwise.model.serving.latency import Latencies, latencies
from poolwise.model.serving.load import Replica, State, state
from poolwise.model.serving.queueing import Delay
from poolwise.plan.scaling.service import Latency, LatencyTarget


def tail_seconds(served: Replica, at: State, target: LatencyTarget) -> float:
    """The target's percentile at a state."""
    return _percentile(served, at, latencies(served, at), target)


def floor_seconds(served: Replica, target: LatencyTarget) -> float:
    """The percentile for requests that are alone: no number of replicas goes below it."""
    lone = served.largest_load * 2.0**-22
    return tail_seconds(served, state(served, lone), target) if lone > 0.0 else float("inf")


def holds(served: Replica, at: State, targets: Sequence[LatencyTarget]) -> bool:
    """Whether all targets do; without any, whether prompts are read as fast as they come."""
    if at.requests_per_second * at.prompt_service_seconds >= 1.0:
        return False
    times = latencies(served, at)
    return all(_percentile(served, at, times, each) <= each.seconds for each in targets)


def _percentile(served: Replica, at: State, times: Latencies, target: LatencyTarget) -> float:
    match target.latency:
        case Latency.TTFT:
            return times.ttft.percentile(target.percentile)
        case Latency.E2E:
            return times.e2e.percentile(target.percentile)
        case Latency.ITL:
            return times.token_percentile(target.percentile)
        case Latency.TPOT:
            return _request_tokens(served, at).percentile(target.percentile)


def _request_tokens(served: Replica, at: State) -> Delay:
    """Mean gap of a request: short answers meet few prompts of others or many, long ones the mean.

    A request of n gaps that take t each sees about ``rate * n * t`` prompts, in bunches as the
    arrivals come; each adds P. So the mean gap varies by ``rate * t * P**2 * (1 + scv) / n``.
    """
    if not served.generates:
        return Delay(0.0)
    added = max(at.mixed.seconds - at.decode.seconds, 0.0) * at.chunks * served.interference
    bunching = max(served.arrival_dispersion, 0.0) * (1.0 + served.prompt.scv)
    per_gap = at.requests_per_second * at.token_seconds * added**2 * bunching
    inverse = (1.0 + served.generated.scv) / max(served.generated.mean, 1.0)  # E[1/n], log-normal
    return Delay.log_normal(at.token_seconds, per_gap * min(inverse, 1.0))
