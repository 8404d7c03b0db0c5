"""The most a replica serves inside its targets, what stops it there, and batch limits that help.

Every latency grows with the load, so there is a highest load at which all targets hold
(:mod:`poolwise.model.serving.search`); the rate at that load is the capacity.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Machine
from poolwise.model.serving.load import Latencies, Replica, State, latencies, state
from poolwise.model.serving.memory import surest_memory
from poolwise.model.serving.queueing import Delay
from poolwise.model.serving.replica import replica
from poolwise.model.serving.search import Known, last_inside
from poolwise.model.work import Metric, ServingLayout, ServingWork, Target

PRECISION = 1e-4
"""Step of the logarithm of loads: far below the 0.5 % that tells bottlenecks apart."""
LEAST_LOAD = 2.0**-22
"""Of the largest one: a lone request."""
DOWNWARDS = (2.0**-1, 2.0**-3, 2.0**-7, 2.0**-14, LEAST_LOAD)
"""Of the largest load: first looks where nothing is known. Most replicas are filled to a half."""
NEAR = 1.12
"""Half-width of the first look around a load that is expected."""
CHUNK_TOKENS = (8192, 4096, 2048, 1024, 512, 256)
"""Chunks worth trying: 8192 and 2048 are vLLM's defaults for large and small devices."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The last state at which all targets hold."""

    requests_per_second: float
    load: float
    limiting: str
    """``TTFT p99`` and the like, ``KV cache``, ``Batch`` (max_num_seqs) or ``Rate``."""


NOTHING = Capacity(0.0, 0.0, "")


def metric_percentile(times: Latencies, metric: Metric, percent: float) -> float:
    """Seconds of a metric at a percentile."""
    if metric is Metric.ITL:
        return times.token_percentile(percent)
    return (times.ttft if metric is Metric.TTFT else times.e2e).percentile(percent)


def capacity(served: Replica, targets: tuple[Target, ...], near: float = 0.0) -> Capacity:
    """Without targets: saturation. A load of 0 where a target fails even unloaded.

    ``near`` is a load that the answer is expected about; it changes only the time taken.
    """
    most = served.largest_load
    if most <= 0.0:
        return Capacity(0.0, 0.0, "KV cache")
    full = state(served, most)
    beyond = excess(served, full, targets)
    if beyond <= 0.0:
        return Capacity(full.requests_per_second, most, _ceiling(served))
    return _Search(served, targets).between(most, beyond, near)


@dataclass(frozen=True, slots=True)
class _Search:
    """The search for a load; its grid is one of logarithms."""

    served: Replica
    targets: tuple[Target, ...]

    def between(self, most: float, beyond: float, near: float) -> Capacity:
        """The last load of the grid at which all holds, known to be below ``most``."""
        outside = Known(math.floor(_step_of(most)) + 1, beyond)
        least = math.floor(_step_of(most * LEAST_LOAD))
        for step in self._looks(most, near):
            if not least <= step < outside.step:
                continue
            found = Known(step, self._excess(step))
            if found.excess <= 0.0:
                return self._reached(last_inside(self._excess, found, outside))
            outside = found
        return Capacity(0.0, 0.0, _limiting(self.served, _load_at(least), self.targets))

    def _looks(self, most: float, near: float) -> Iterator[int]:
        """Downwards; where an answer is expected, on both its sides first."""
        if near > 0.0:
            yield from (math.floor(_step_of(near * each)) for each in (NEAR, 1.0 / NEAR))
        yield from (math.floor(_step_of(most * share)) for share in DOWNWARDS)

    def _excess(self, step: int) -> float:
        return excess(self.served, state(self.served, _load_at(step)), self.targets)

    def _reached(self, step: int) -> Capacity:
        load = _load_at(step)
        beyond = min(_load_at(step + 1), self.served.largest_load)
        limiting = _limiting(self.served, beyond, self.targets)
        return Capacity(state(self.served, load).requests_per_second, load, limiting)


def _step_of(load: float) -> float:
    return math.log(load) / PRECISION


def _load_at(step: int) -> float:
    return math.exp(PRECISION * step)


def excess(served: Replica, at: State, targets: tuple[Target, ...]) -> float:
    """Above 0 where the engine reads prompts more slowly than they come, or a target is missed;
    grows with the load, from -1 to 1."""
    worst = _beyond(at.requests_per_second * at.prompt_service_seconds, 1.0)
    if worst > 0.0 or not targets:
        return worst
    times = latencies(served, at)
    return max(worst, *(_missed_by(times, target) for target in targets))


def _missed_by(times: Latencies, target: Target) -> float:
    """How far a tail is beyond its target; of tokens, how many are late beyond those that may be:
    that needs no search, as a percentile of theirs does."""
    if target.metric is not Metric.ITL:
        return _beyond(metric_percentile(times, target.metric, target.percentile), target.seconds)
    if times.longest_token_seconds <= target.seconds:
        return _beyond(times.longest_token_seconds, target.seconds)
    usual = times.usual_token.share_below(target.seconds)
    long = times.long_token.share_below(target.seconds)
    late = 1.0 - usual - times.long_token_share * (long - usual)
    return _beyond(late, 1.0 - target.percentile / 100.0)


def _beyond(value: float, allowed: float) -> float:
    """0 where they are equal, and straight around it. What grows without end towards saturation
    (a wait is ``1 / (1 - rho)``) is straight up to there as well."""
    if value <= allowed:
        return value / allowed - 1.0 if allowed > 0.0 else 0.0
    return 1.0 - allowed / value


def first_missed(times: Latencies, targets: tuple[Target, ...]) -> Target | None:
    """The first target that does not hold."""
    return next((target for target in targets if _missed_by(times, target) > 0.0), None)


def tuned(
    work: ServingWork, layout: ServingLayout, machine: Machine, calibration: Calibration
) -> tuple[ServingLayout, Capacity]:
    """The layout with the chunk of prompts that serves most inside the targets, and its capacity.

    A step that carries a chunk is the tail of the inter-token time, so a tight ITL target wants
    small chunks; everything else wants large ones. Only chunks that leave room for the cache of
    one longest request are considered; the layout comes back as it is when none does. Sequences
    are cut to the chunk: vLLM refuses to start with fewer batched tokens than sequences. Chunks are
    compared as they are, without a margin, so that looser targets never serve less.
    """
    best, most = layout, NOTHING
    for chunk in CHUNK_TOKENS:
        sequences = min(layout.max_num_seqs, chunk)
        tried = replace(layout, max_batched_tokens=chunk, max_num_seqs=sequences)
        if not surest_memory(work, tried, machine, calibration).fits:
            continue
        served = replica(work, tried, machine, calibration)
        if not _may_beat(served, work.targets, most):
            continue
        found = capacity(served, work.targets, near=most.load)
        if found.requests_per_second > most.requests_per_second * (1.0 + PRECISION):
            best, most = tried, found
    return best, most


def _may_beat(served: Replica, targets: tuple[Target, ...], best: Capacity) -> bool:
    """Whether a capacity can be above the best: not where every slot taken is below it, nor where
    a load that is no faster already misses a target."""
    if ceiling_requests_per_second(served) <= best.requests_per_second:
        return False
    load = min(best.load, served.largest_load)
    if load <= 0.0:
        return True
    at = state(served, load)
    return at.requests_per_second > best.requests_per_second or excess(served, at, targets) <= 0.0


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
