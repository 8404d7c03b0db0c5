"""Percentiles of one replica at a state, for the targets of a service."""

from __future__ import annotations

import math
from collections.abc import Sequence

from poolwise.model.serving.climb import LEAST_LOAD
from poolwise.model.serving.latency import latencies
from poolwise.model.serving.load import Replica, State, state
from poolwise.model.serving.targets import metric_percentile, share_later
from poolwise.model.work import Target


def late_share(served: Replica, at: State, target: Target) -> float:
    """Of requests (of gaps, for ITL) at a state."""
    return share_later(latencies(served, at), target.metric, target.seconds)


def tail_seconds(served: Replica, at: State, target: Target) -> float:
    """The target's percentile at a state; infinite where prompts come faster than they are read."""
    if at.requests_per_second * at.prompt_service_seconds >= 1.0:
        return math.inf
    return metric_percentile(latencies(served, at), target.metric, target.percentile)


def floor_seconds(served: Replica, target: Target) -> float:
    """The percentile for requests that are alone: no number of replicas goes below it."""
    if served.largest_load <= 0.0:
        return math.inf
    return tail_seconds(served, state(served, lone_load(served)), target)


def lone_load(served: Replica) -> float:
    """Of a request that is alone, nearly always: loads are sequences that are being answered, of
    which there are the fewer the more answers end with their first token."""
    answering = min(served.generated.mean, 1.0) if served.generates else 1.0
    return served.largest_load * LEAST_LOAD * answering


def holds(served: Replica, at: State, targets: Sequence[Target]) -> bool:
    """Whether all targets do; without any, whether prompts are read as fast as they come."""
    if at.requests_per_second * at.prompt_service_seconds >= 1.0:
        return False
    times = latencies(served, at)
    return all(
        share_later(times, each.metric, each.seconds) <= each.allowed_share for each in targets
    )
