"""How long a replica may take to start and to stop, and how much memory its engine may fill."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

from poolwise.api import InferenceServiceSpec
from poolwise.model.prediction import ServingPrediction
from poolwise.model.serving.prediction import REPORTED_PERCENTILE
from poolwise.model.work import Metric
from poolwise.plan.decision import Candidate, PlacementRecord, Plan
from poolwise.plan.pool import Pool
from poolwise.plan.records.runtimes import Runtime
from poolwise.settings import Settings

STEP_SECONDS = (15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
"""Budgets are rounded up to these: a prediction that moves a little must not restart replicas."""


def record_of(
    plan: Plan, pool: Pool, settings: Settings, longest_over_told: float = 1.0
) -> PlacementRecord:
    """The record of a placed plan: the one that was written where it is kept, else a new one.

    A service that is planned again onto the same pool in the same shape keeps its budgets, so
    that a change of its replicas does not restart them.

    :param longest_over_told: see :func:`longest_over_told`.

    :raises ValueError: for a plan that is not placed.
    """
    if plan.kept and plan.record is not None:
        return plan.record
    if plan.chosen is None or plan.claim is None or plan.chosen.layout is None:
        raise ValueError(f"{plan.key} is not placed, so there is nothing to record")
    fresh = _fresh(plan, plan.chosen, pool)
    if not isinstance(plan.chosen.prediction, ServingPrediction):
        return fresh
    earlier = plan.record
    if earlier and (earlier.pool, earlier.layout) == (fresh.pool, fresh.layout):
        return replace(
            fresh,
            start_budget_seconds=earlier.start_budget_seconds,
            drain_seconds=earlier.drain_seconds,
            memory_fraction=earlier.memory_fraction,
            kv_cache_bytes=earlier.kv_cache_bytes,
        )
    tail = plan.chosen.prediction.e2e_seconds.scaled(longest_over_told)
    prediction = replace(plan.chosen.prediction, e2e_seconds=tail)
    return _with_budgets(fresh, prediction, pool, settings)


def longest_over_told(spec: InferenceServiceSpec, settings: Settings) -> float:
    """How much longer the 99th percentile of requests is than the one that predictions tell.

    Time in flight grows with the length of the answer, which is log-normal: from one percentile
    to another it grows by ``exp(sigma * (z99 - z))``.
    """
    asked = [target.percentile for target in spec.slo if target.metric == Metric.E2E]
    told = statistics.NormalDist().inv_cdf(max(asked, default=REPORTED_PERCENTILE) / 100.0)
    lengths = spec.traffic.output_tokens
    p50, p95 = (lengths.p50, lengths.p95) if lengths else settings.default_output_tokens
    sigma = math.log(max(p95 / p50, 1.0)) / statistics.NormalDist().inv_cdf(0.95)
    return max(1.0, math.exp(sigma * (statistics.NormalDist().inv_cdf(0.99) - told)))


def _fresh(plan: Plan, chosen: Candidate, pool: Pool) -> PlacementRecord:
    assert plan.claim is not None and chosen.layout is not None
    nodes = 1 if chosen.replicas is None else pool.nodes_of(chosen.count)
    return PlacementRecord(
        generation=plan.generation,
        accelerator=chosen.accelerator or "",
        resource=pool.resource,
        count=chosen.count,
        replicas=chosen.replicas,
        layout=chosen.layout,
        claim=plan.claim,
        may_surge=plan.may_surge,
        hub_id=plan.hub_id,
        domain=plan.domain,
        queue=plan.queue,
        nodes_per_replica=nodes,
        runtime=Runtime.LEADER_WORKER_SET.value if nodes > 1 else None,
    )


def _with_budgets(
    record: PlacementRecord, prediction: ServingPrediction, pool: Pool, settings: Settings
) -> PlacementRecord:
    layout, memory = record.serving_layout, prediction.memory
    on_cpu = bool(layout.cpu_cores)
    return replace(
        record,
        start_budget_seconds=_start_seconds(record, prediction, pool, settings),
        drain_seconds=_drain_seconds(prediction, settings),
        memory_fraction=None if on_cpu else _memory_fraction(prediction, pool),
        kv_cache_bytes=math.ceil(memory.kv_cache_bytes) if on_cpu else None,
    )


def _start_seconds(
    record: PlacementRecord, prediction: ServingPrediction, pool: Pool, settings: Settings
) -> int:
    """Weights on each node over its load bandwidth, times a margin, and the engine."""
    assert pool.machine is not None
    devices = max(1, record.count // record.nodes_per_replica)
    weights_bytes = prediction.memory.weights_bytes * devices
    load_seconds = weights_bytes / pool.machine.host.model_load_bytes_per_second
    return _step(settings.engine_start_seconds + settings.load_margin * load_seconds)


def _drain_seconds(prediction: ServingPrediction, settings: Settings) -> int:
    """The 99th percentile of a whole request, at its pessimistic end."""
    tail_seconds = prediction.e2e_seconds.high
    if not math.isfinite(tail_seconds):
        return settings.drain_limit_seconds
    return min(_step(tail_seconds), settings.drain_limit_seconds)


def _memory_fraction(prediction: ServingPrediction, pool: Pool) -> float | None:
    assert pool.machine is not None
    share = prediction.memory.usable_bytes / pool.machine.device.memory_bytes
    return math.floor(100 * share) / 100 if 0.01 <= share < 1 else None


def _step(seconds: float) -> int:
    return next((step for step in STEP_SECONDS if seconds <= step), math.ceil(seconds))
