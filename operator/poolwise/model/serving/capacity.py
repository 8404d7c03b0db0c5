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
from poolwise.model.serving.latency import Latencies, latencies
from poolwise.model.serving.load import Replica, State, state
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
PROBED = 0.25
"""Of the largest load: where chunks are compared to guess which is the best."""
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
_Option = tuple[ServingLayout, Replica]


def metric_percentile(times: Latencies, metric: Metric, percent: float) -> float:
    """Seconds of a metric at a percentile."""
    if metric is Metric.ITL:
        return times.token_percentile(percent)
    return (times.ttft if metric is Metric.TTFT else times.e2e).percentile(percent)


def capacity(served: Replica, targets: tuple[Target, ...]) -> Capacity:
    """Without targets: saturation. A load of 0 where a target fails even unloaded."""
    return told(served, targets, highest(served, targets))


@dataclass(frozen=True, slots=True)
class Highest:
    """The highest load at which all targets hold."""

    load: float
    requests_per_second: float


def highest(
    served: Replica, targets: tuple[Target, ...], near: float = 0.0, worth: float = 0.0
) -> Highest:
    """That load, or 0.

    ``near`` is a load that is expected, and changes only the time taken. A rate below ``worth`` is
    of no use: then nothing need be found.
    """
    if served.largest_load <= 0.0:
        return Highest(0.0, 0.0)
    load = _Search(served, targets, worth).load(near)
    return Highest(load, state(served, load).requests_per_second if load else 0.0)


def told(served: Replica, targets: tuple[Target, ...], found: Highest) -> Capacity:
    """With what stops it."""
    return Capacity(found.requests_per_second, found.load, _stopped_by(served, targets, found.load))


def _stopped_by(served: Replica, targets: tuple[Target, ...], load: float) -> str:
    most = served.largest_load
    if most <= 0.0:
        return "KV cache"
    if load == most:
        return _ceiling(served)
    just_above = load * math.exp(PRECISION) if load else most * LEAST_LOAD
    return _limiting(served, min(just_above, most), targets)


@dataclass(frozen=True, slots=True)
class _Search:
    """The search for a load on a grid of logarithms, whose last step is the largest load."""

    served: Replica
    targets: tuple[Target, ...]
    worth: float

    def load(self, near: float) -> float:
        inside, outside = None, None
        for step in self._looks(near):
            if (inside and step <= inside.step) or (outside and step >= outside.step):
                continue
            found = Known(step, self._excess(step))
            inside, outside = (found, outside) if found.excess <= 0.0 else (inside, found)
            if outside is found and self._rate(step) < self.worth:
                return 0.0
            if inside and outside:
                return self._load_at(last_inside(self._excess, inside, outside))
        return self._load_at(inside.step) if inside else 0.0

    def _looks(self, near: float) -> Iterator[int]:
        """An expected load and its surroundings, then the largest load and downwards."""
        if near > 0.0:
            around = (_step_of(near * each) for each in (1.0, NEAR, 1.0 / NEAR))
            yield from (min(step, self._last) for step in around)
        yield self._last
        yield from (_step_of(self.served.largest_load * share) for share in DOWNWARDS)

    @property
    def _last(self) -> int:
        return _step_of(self.served.largest_load) + 1

    def _excess(self, step: int) -> float:
        return excess(self.served, state(self.served, self._load_at(step)), self.targets)

    def _rate(self, step: int) -> float:
        return state(self.served, self._load_at(step)).requests_per_second

    def _load_at(self, step: int) -> float:
        return min(math.exp(PRECISION * step), self.served.largest_load)


def _step_of(load: float) -> int:
    """The last step up to a load; one that lies on a step is its own, whatever the rounding."""
    return math.floor(math.log(load) / PRECISION + 1e-6)


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
    if times.tokens.longest_seconds <= target.seconds:
        return _beyond(times.tokens.longest_seconds, target.seconds)
    return _beyond(times.tokens.share_later(target.seconds), 1.0 - target.percentile / 100.0)


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
    are cut to the chunk: vLLM refuses to start with fewer batched tokens than sequences. Of chunks
    that serve alike, to the precision of a capacity, it is the largest.
    """
    options = list(_options(work, layout, machine, calibration))
    best, reached = Highest(0.0, 0.0), []
    for tried, served in _likeliest_first(options, work.targets):
        worth = best.requests_per_second * (1.0 - PRECISION)
        if ceiling_requests_per_second(served) >= worth:
            found = highest(served, work.targets, best.load, worth)
            reached.append((tried, served, found))
            best = max(best, found, key=lambda each: each.requests_per_second)
    least = best.requests_per_second * (1.0 - PRECISION)
    alike = [each for each in reached if each[2].requests_per_second >= least > 0.0]
    if not alike:
        return layout, NOTHING
    chosen, served, found = max(alike, key=lambda each: each[0].max_batched_tokens)
    return chosen, told(served, work.targets, found)


def _options(
    work: ServingWork, layout: ServingLayout, machine: Machine, calibration: Calibration
) -> Iterator[_Option]:
    for chunk in CHUNK_TOKENS:
        sequences = min(layout.max_num_seqs, chunk)
        tried = replace(layout, max_batched_tokens=chunk, max_num_seqs=sequences)
        if surest_memory(work, tried, machine, calibration).fits:
            yield tried, replica(work, tried, machine, calibration)


def _likeliest_first(options: list[_Option], targets: tuple[Target, ...]) -> list[_Option]:
    """By how far they are from missing a target at one load; the largest chunk without a target
    for tokens, as they come."""
    if not any(target.metric is Metric.ITL for target in targets):
        return options
    probe = PROBED * max((served.largest_load for _, served in options), default=0.0)

    def strain(option: _Option) -> float:
        served = option[1]
        load = min(probe, served.largest_load)
        return excess(served, state(served, load), targets) if load else math.inf

    return sorted(options, key=strain)


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
