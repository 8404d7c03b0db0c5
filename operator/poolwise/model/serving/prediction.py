"""Serving: latencies of one replica at a rate, and the highest rate inside its targets.

Ledger of one request, whose terms sum to its mean time from arrival to last token:

===================== ==========================================================================
``Queue``             waiting for earlier prompts and for the running step; the fixed part
``KvCapacity``        waiting for a slot: cache (or batch) full
``Prefill``           its own prompt
``MemoryBandwidth``   tokens: weights and cache through the memory bus
``Compute``           tokens: arithmetic
``Interconnect``      tokens: all-reduces and hand-overs between stages
``Latency``           tokens: launch and drain of kernels, layer by layer
``Host``              tokens: scheduling and sampling
``Interference``      tokens: steps made longer by the prompts of others
===================== ==========================================================================

A model that only reads prompts has its step under ``MemoryBandwidth`` to ``Host``, no ``Prefill``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from poolwise.model.efficiency import Calibration, Efficiency, Provenance
from poolwise.model.hardware import Device, Machine
from poolwise.model.prediction import Interval, Memory, ServingPrediction, Term
from poolwise.model.roofline import ridge_point
from poolwise.model.serving.capacity import Capacity, capacity
from poolwise.model.serving.front_end import REQUESTS
from poolwise.model.serving.latency import Latencies, latencies
from poolwise.model.serving.load import Replica, State, state, state_at_rate
from poolwise.model.serving.memory import (
    PHASE,
    footprint,
    replica_machine,
    request_cache_bytes,
)
from poolwise.model.serving.rates import arithmetic
from poolwise.model.serving.replica import (
    arithmetic_intensity,
    context_tokens,
    replica,
    served_tokens,
)
from poolwise.model.serving.site import serving_site
from poolwise.model.serving.slowness import FIRST_TOKEN, TOKEN
from poolwise.model.serving.targets import metric_percentile
from poolwise.model.site import Site
from poolwise.model.work import Metric, ServingLayout, ServingWork, Target

REPORTED_PERCENTILE = 95.0
"""Of a latency that no target names."""
IDLE_POWER, TOKEN_POWER, PROMPT_POWER = 0.2, 0.60, 1.0
"""Shares of a device's power limit: waiting, generating (0.60 average of 41 A100 runs that mostly
generate) and reading prompts (1.01 peak of the same runs; Splitwise, arXiv 2311.18677)."""


@dataclass(frozen=True, slots=True)
class SearchedLayout:
    """What a search has worked out of a layout."""

    served: Replica
    capacity: Capacity


def predict_serving(
    work: ServingWork,
    layout: ServingLayout,
    machine: Machine,
    calibration: Calibration,
    requests_per_second: float,
    known: SearchedLayout | None = None,
) -> ServingPrediction:
    """One replica at a rate. Beyond saturation latencies are infinite, at the saturated state.

    Who knows the capacity already saves its search.
    """
    served = known.served if known else replica(work, layout, machine, calibration)
    most = known.capacity if known else capacity(served, work.targets)
    at = state_at_rate(served, requests_per_second)
    is_overloaded = at is None
    at = at or state(served, max(served.largest_load, 1.0))
    times = latencies(served, at)
    device = replica_machine(layout, machine).device
    where = serving_site(work, layout, device, served, at.in_flight)
    spreads = _Spreads(work, device, where, calibration)
    tokens = served_tokens(work, layout)

    def told(metric: Metric, is_overloaded: bool) -> Interval:
        return spreads.interval(metric, _reported(work, times, metric, is_overloaded))

    return ServingPrediction(
        requests_per_second=requests_per_second,
        capacity_requests_per_second=most.requests_per_second,
        ttft_seconds=told(Metric.TTFT, is_overloaded),
        itl_seconds=told(Metric.ITL, False),
        e2e_seconds=told(Metric.E2E, is_overloaded),
        tpot_seconds=told(Metric.TPOT, False) if _is_asked(work, Metric.TPOT) else None,
        limiting=most.limiting,
        concurrency=at.requests_per_second * times.e2e.mean_seconds,
        ledger=_ledger(served, at, times),
        memory=_memory(work, layout, machine, calibration, at),
        tokens_per_second=None if tokens is None else tokens * at.requests_per_second,
        arithmetic_intensity=arithmetic_intensity(work, layout, served, at),
        ridge_point=ridge_point(device, arithmetic(layout.weight_format, device)),
        power_watts=_power_watts(device, served, at),
        provenance=spreads.provenance(),
    )


FIGURES = {each: FIRST_TOKEN if each is Metric.TTFT else TOKEN for each in Metric}
"""Whose residual tells how sure a metric is."""


class _Spreads:
    """How far predictions were off where they could be checked, and what stands behind them."""

    def __init__(
        self,
        work: ServingWork,
        device: Device,
        where: Site,
        calibration: Calibration,
    ) -> None:
        self._site = where
        self._work, self._device, self._calibration = work, device, calibration

    def interval(self, metric: Metric, seconds: float) -> Interval:
        """Nine in ten, log-normal around the prediction."""
        if math.isinf(seconds):
            return Interval(seconds, seconds, seconds)
        constant = self._constant(metric)
        residual = self._calibration.residual(FIGURES[metric])
        if residual is None or not self._work.model.generates:
            return Interval.around(seconds, constant.spread)
        return Interval.around(seconds, residual.at(self._site).spread_beside(constant))

    def provenance(self) -> str:
        """Own where runs of this accelerator set the range; models that only read had none."""
        found = self._constant(Metric.ITL).provenance
        if self._work.model.generates:
            return found
        return Provenance.weakest((found, Provenance.INHERITED))

    def _constant(self, metric: Metric) -> Efficiency:
        phase = REQUESTS if metric is Metric.TTFT else PHASE
        # One constant for both: what is published of tokens are means of gaps.
        term = "itl_ratio" if metric is Metric.TPOT else f"{metric.lower()}_ratio"
        return self._calibration.efficiency(phase, term, self._device, self._work.engine)


def _reported(work: ServingWork, times: Latencies, metric: Metric, is_overloaded: bool) -> float:
    """At the percentile of the strictest target on this metric, else at p95; 0 without tokens."""
    if metric is not Metric.E2E and not work.model.generates:
        return 0.0
    if is_overloaded:
        return math.inf
    asked = [each.percentile for each in _told(work) if each.metric is metric]
    return metric_percentile(times, metric, max(asked, default=REPORTED_PERCENTILE))


def _is_asked(work: ServingWork, metric: Metric) -> bool:
    return any(target.metric is metric for target in _told(work))


def _told(work: ServingWork) -> tuple[Target, ...]:
    return work.targets or work.reported


def _ledger(served: Replica, at: State, times: Latencies) -> tuple[Term, ...]:
    prefill, slots = times.prefill.mean_seconds, times.slot_wait.mean_seconds
    step = at.decode if served.generates else at.mixed
    steps = served.generated.mean if served.generates else at.chunks
    tokens = served.generated.mean * at.token_seconds
    terms = {
        "Queue": times.queue.mean_seconds,
        "KvCapacity": slots,
        "Prefill": prefill if served.generates else 0.0,
        "MemoryBandwidth": steps * step.memory_bandwidth,
        "Compute": steps * step.compute,
        "Interconnect": steps * step.interconnect,
        "Latency": steps * step.latency,
        "Host": steps * step.host,
        "Interference": tokens - steps * step.seconds if served.generates else 0.0,
    }
    return tuple(Term(name, seconds) for name, seconds in terms.items())


def _memory(
    work: ServingWork,
    layout: ServingLayout,
    machine: Machine,
    calibration: Calibration,
    at: State,
) -> Memory:
    """Need at this load: the cache of what is in flight, and of the longest request at least."""
    one = request_cache_bytes(work, layout, context_tokens(work, layout))
    longest = request_cache_bytes(work, layout, layout.max_model_tokens)
    cache = max(at.in_flight * one, longest)
    return footprint(work, layout, machine, calibration).under_load(cache)


def _power_watts(device: Device, served: Replica, at: State) -> float:
    """Per device, by how the time divides into prompts, tokens and waiting."""
    prompts = min(1.0, at.requests_per_second * at.prompt_service_seconds)
    tokens = min(1.0, at.in_flight) * (1.0 - prompts) if served.generates else 0.0
    waiting = 1.0 - prompts - tokens
    load = PROMPT_POWER * prompts + TOKEN_POWER * tokens + IDLE_POWER * waiting
    return device.power_watts * load
