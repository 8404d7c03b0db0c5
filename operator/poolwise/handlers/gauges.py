"""Gauges of what the statuses say: workloads by state, and what the placed ones cost and give."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import Gauge

from poolwise.cluster.cache import Cache
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.resources import ACCELERATOR_POOLS, WORKLOADS
from poolwise.plan.observed import Object

UNTOLD = "Untold"
"""Reason of a workload without a status."""


def measure(cache: Cache, metrics: Metrics) -> None:
    """Set all gauges anew, so that what is gone leaves no series behind."""
    states: Counter[tuple[str, str]] = Counter()
    cost: defaultdict[tuple[str, str], float] = defaultdict(float)
    tokens: defaultdict[tuple[str, str], float] = defaultdict(float)
    for workload in _workloads(cache):
        status = workload.get("status") or {}
        states[workload["kind"], _reason(status)] += 1
        plan = status.get("plan") or {}
        if plan.get("placed") and plan.get("pool"):
            where = workload["kind"], str(plan["pool"])
            cost[where] += float(plan.get("costPerHour") or 0)
            tokens[where] += _tokens_per_second(plan)
    _set(metrics.workloads, states)
    _set(metrics.cost_per_hour, cost)
    _set(metrics.tokens_per_second, tokens)
    _set(metrics.accelerators, dict(_accelerators(cache)))


def _workloads(cache: Cache) -> Iterator[Object]:
    for resource in WORKLOADS:
        yield from cache.stores[resource]


def _reason(status: Mapping[str, Any]) -> str:
    conditions = status.get("conditions") or []
    return next((str(each["reason"]) for each in conditions if each["type"] == "Ready"), UNTOLD)


def _tokens_per_second(plan: Mapping[str, Any]) -> float:
    predicted = plan.get("predicted") or {}
    return float(predicted.get("tokensPerSecond") or 0) * (plan.get("replicas") or 1)


def _accelerators(cache: Cache) -> Iterator[tuple[tuple[str, str], float]]:
    for pool in cache.stores[ACCELERATOR_POOLS]:
        status, name = pool.get("status") or {}, pool["metadata"]["name"]
        for state, field in (("all", "capacity"), ("free", "free")):
            if field in status:
                yield (name, state), float(status[field])


def _set(gauge: Gauge, values: Mapping[tuple[str, str], float]) -> None:
    gauge.clear()
    for labels, value in values.items():
        gauge.labels(*labels).set(value)
