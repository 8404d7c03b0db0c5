"""The most a replica serves inside its targets, what stops it there, and batch limits that help.

Every latency grows with the load, so the highest load at which all targets hold is found by
bisection; the rate at that load is the capacity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Machine
from poolwise.model.serving.load import Latencies, Replica, latencies, state
from poolwise.model.serving.memory import surest_memory
from poolwise.model.serving.queueing import Delay
from poolwise.model.serving.replica import replica
from poolwise.model.work import Metric, ServingLayout, ServingWork, Target

BISECTIONS = 22
"""At most: to 2e-7 of the largest load."""
PRECISION = 1e-4
"""Of the capacity: far below the 0.5 % that tells bottlenecks apart."""
CHUNK_TOKENS = (8192, 4096, 2048, 1024, 512, 256)
"""Chunks worth trying: 8192 and 2048 are vLLM's defaults for large and small devices."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The last state at which all targets hold."""

    requests_per_second: float
    load: float
    limiting: str
    """``TTFT p99`` and the like, ``KV cache``, ``Batch`` (max_num_seqs) or ``Rate``."""


def metric_percentile(times: Latencies, metric: Metric, percent: float) -> float:
    """Seconds of a metric at a percentile."""
    if metric is Metric.ITL:
        return times.token_percentile(percent)
    return (times.ttft if metric is Metric.TTFT else times.e2e).percentile(percent)


def capacity(served: Replica, targets: tuple[Target, ...]) -> Capacity:
    """Without targets: saturation. A load of 0 where a target fails even unloaded."""
    low, high = 0.0, served.largest_load
    if high <= 0.0:
        return Capacity(0.0, 0.0, "KV cache")
    if sustains(served, high, targets):
        return Capacity(state(served, high).requests_per_second, high, _ceiling(served))
    alone = high / 2**BISECTIONS
    if not sustains(served, alone, targets):
        return Capacity(0.0, 0.0, _limiting(served, alone, targets))
    while high - low > max(PRECISION * low, alone):
        middle = (low + high) / 2
        if sustains(served, middle, targets):
            low = middle
        else:
            high = middle
    rate = state(served, low).requests_per_second if low else 0.0
    return Capacity(rate, low, _limiting(served, high, targets))


def sustains(served: Replica, load: float, targets: tuple[Target, ...]) -> bool:
    """Whether the engine reads prompts as fast as they come, and every target holds."""
    at = state(served, load)
    if at.requests_per_second * at.prompt_service_seconds > 1.0:
        return False
    return not targets or first_missed(latencies(served, at), targets) is None


def first_missed(times: Latencies, targets: tuple[Target, ...]) -> Target | None:
    """The first target that does not hold."""
    for target in targets:
        if metric_percentile(times, target.metric, target.percentile) > target.seconds:
            return target
    return None


def tuned(
    work: ServingWork, layout: ServingLayout, machine: Machine, calibration: Calibration
) -> ServingLayout:
    """The layout with the chunk of prompts that serves most inside the targets.

    A step that carries a chunk is the tail of the inter-token time, so a tight ITL target wants
    small chunks; everything else wants large ones. Only chunks that leave room for the cache of
    one longest request are considered; the layout comes back as it is when none does. Sequences
    are cut to the chunk: vLLM refuses to start with fewer batched tokens than sequences. Chunks are
    compared as they are, without a margin, so that looser targets never serve less.
    """
    best, most = layout, 0.0
    for chunk in CHUNK_TOKENS:
        sequences = min(layout.max_num_seqs, chunk)
        tried = replace(layout, max_batched_tokens=chunk, max_num_seqs=sequences)
        if not surest_memory(work, tried, machine, calibration).fits:
            continue
        served = replica(work, tried, machine, calibration)
        if ceiling_requests_per_second(served) <= most:
            continue
        rate = capacity(served, work.targets).requests_per_second
        if rate > most * (1.0 + PRECISION):
            best, most = tried, rate
    return best


def ceiling_requests_per_second(served: Replica) -> float:
    """With every slot taken, whatever the targets: no capacity is above it."""
    load = served.largest_load
    return state(served, load).requests_per_second if load > 0.0 else 0.0


def _ceiling(served: Replica) -> str:
    if not served.generates:
        return "Rate"
    return "KV cache" if served.cache_slots <= served.batch_slots else "Batch"


def _limiting(served: Replica, load: float, targets: tuple[Target, ...]) -> str:
    """The missed target just above the capacity, or the slots where waiting for one misses it."""
    times = latencies(served, state(served, load))
    missed = first_missed(times, targets)
    if missed is None:
        return "Rate"
    if missed.metric is not Metric.ITL and _size(times.slot_wait) > _size(times.queue):
        return _ceiling(served)
    return f"{missed.metric} p{missed.percentile:g}"


def _size(delay: Delay) -> float:
    """One deviation above the mean: what a delay adds to a tail."""
    return delay.mean_seconds + math.sqrt(delay.variance_seconds2)
