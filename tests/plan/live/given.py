"""Pods of a service that runs, and looks at them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from poolwise.model.work import Metric, Target
from poolwise.plan.conditions import timestamp
from poolwise.plan.live.keeping import Signal
from poolwise.plan.live.look import Look, Mode
from poolwise.plan.scaling.decision import Decision, Forecast, Tail
from poolwise.plan.scaling.memory import Memory

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
TTFT = Target(Metric.TTFT, 99, 2.0)
ITL = Target(Metric.ITL, 99, 0.08)


def pod(name="chat-0", ready_after_seconds: float | None = 60.0, leaves=False, **more: Any):
    """One that was requested ten minutes ago."""
    requested = NOW - timedelta(minutes=10)
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": timestamp(requested)}
    if leaves:
        metadata["deletionTimestamp"] = timestamp(NOW)
    ready = {"type": "Ready", "status": "False"}
    if ready_after_seconds is not None:
        since = requested + timedelta(seconds=ready_after_seconds)
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": timestamp(since)}
    status = {"phase": "Running", "conditions": [ready]}
    return {"metadata": {**metadata, **more.get("metadata", {})}, "status": status}


def signal(target=TTFT, low=0.5, high=0.75, samples=5000.0, late=(0.001, 0.004)):
    return Signal(target, low, high, samples, late)


def decision(replicas=3, **more: Any):
    values: dict[str, Any] = {
        "reason": f"{replicas} replicas",
        "limiting": "TTFT p99",
        "forecast": Forecast(NOW.timestamp() + 60, 3.0, 4.0, 5.0),
        "tails": (Tail(TTFT, {2: float("inf"), 3: 1.2, 4: 0.7}),),
        "capacity_requests_per_second": 1.8,
        "cost_per_hour": 33.0,
        **more,
    }
    return Decision(replicas, Memory(), **values)


def look(replicas=3, held=3, now=NOW, **more: Any):
    fields: dict[str, Any] = {"mode": Mode.DIRECT, "told": held, "failing": {}, "conflict": None}
    fields["signals"] = (signal(), signal(ITL, 0.02, 0.025))
    fields |= {"mismatches": (), "memory": "", "by_pool": {"near": held}, "gateway": {}}
    given = {name: more.pop(name, value) for name, value in fields.items()}
    return Look(decision=decision(replicas, **more), declared=held, now=now, **given)
