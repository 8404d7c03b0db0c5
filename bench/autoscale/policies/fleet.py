"""What Kubernetes and one scrape tell of a fleet, as most laws read it."""

from __future__ import annotations

from collections.abc import Callable

from bench.autoscale.policy import ReplicaView, View
from poolwise.plan.signals.sample import Sample

LOOKBACK_SECONDS = 300.0
"""Prometheus answers an instant query from no older sample."""

Gauge = Callable[[Sample], float | None]


def wanted(view: View) -> tuple[ReplicaView, ...]:
    """Replicas that count as ``spec.replicas``: starting ones included, draining ones not."""
    return tuple(each for each in view.replicas if not each.is_draining)


def ready(view: View) -> tuple[ReplicaView, ...]:
    """Replicas that take requests."""
    return tuple(each for each in wanted(view) if each.is_ready)


def instant(view: View, gauge: Gauge) -> dict[str, float]:
    """The newest value of a gauge by replica, of those that are wanted and told it."""
    told = {
        each.name: gauge(view.samples[each.name])
        for each in wanted(view)
        if each.name in view.samples and _is_fresh(view, view.samples[each.name])
    }
    return {name: value for name, value in told.items() if value is not None}


def _is_fresh(view: View, sample: Sample) -> bool:
    return view.now_seconds - sample.at_seconds < LOOKBACK_SECONDS


def waiting(sample: Sample) -> float | None:
    """``vllm:num_requests_waiting``."""
    return sample.waiting


def kv_cache_usage(sample: Sample) -> float | None:
    """``vllm:kv_cache_usage_perc``."""
    return sample.kv_cache_usage


def in_flight(sample: Sample) -> float | None:
    """``vllm:num_requests_running + vllm:num_requests_waiting``."""
    if sample.running is None or sample.waiting is None:
        return None
    return sample.running + sample.waiting
