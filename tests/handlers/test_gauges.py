"""Gauges follow the statuses, and what is gone leaves no series behind."""

from __future__ import annotations

from poolwise.cluster.cache import Cache
from poolwise.cluster.metrics import Metrics
from poolwise.cluster.resources import ACCELERATOR_POOLS, TRAINING_JOBS
from poolwise.handlers.gauges import measure


def placed(name, cost, tokens):
    return {
        "apiVersion": "poolwise.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name, "namespace": "a", "uid": name, "resourceVersion": "1"},
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "Running"}],
            "plan": {
                "placed": True,
                "pool": "h100",
                "costPerHour": cost,
                "predicted": {"tokensPerSecond": tokens},
            },
        },
    }


def value(metrics, name, **labels):
    return metrics.registry.get_sample_value(f"poolwise_{name}", labels)


def test_gauges_are_sums_over_workloads_and_forget_the_gone():
    cache, metrics = Cache(), Metrics()
    cache.put(TRAINING_JOBS, placed("one", 50.0, 1000))
    cache.put(TRAINING_JOBS, placed("two", 25.0, 500))
    cache.put(
        ACCELERATOR_POOLS,
        {
            "apiVersion": "poolwise.dev/v1alpha1",
            "kind": "AcceleratorPool",
            "metadata": {"name": "h100", "uid": "p", "resourceVersion": "1"},
            "status": {"capacity": 64, "free": 48},
        },
    )
    measure(cache, metrics)
    assert value(metrics, "workloads", kind="TrainingJob", reason="Running") == 2
    assert value(metrics, "cost_per_hour", kind="TrainingJob", pool="h100") == 75
    assert value(metrics, "predicted_tokens_per_second", kind="TrainingJob", pool="h100") == 1500
    assert value(metrics, "pool_accelerators", pool="h100", state="free") == 48

    for name in ("one", "two"):
        cache.remove(TRAINING_JOBS, placed(name, 0, 0))
    measure(cache, metrics)
    assert value(metrics, "workloads", kind="TrainingJob", reason="Running") is None
    assert value(metrics, "cost_per_hour", kind="TrainingJob", pool="h100") is None
