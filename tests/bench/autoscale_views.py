"""Views and samples for the tests of scaling laws."""

from __future__ import annotations

from bench.autoscale.policies.service import Bounds, ForwardPass, Service
from bench.autoscale.policy import ReplicaView, View
from poolwise.plan.signals.sample import Histogram, Sample

SERVICE = Service(
    bounds=Bounds(1, 100),
    ttft_target_seconds=3.0,
    tpot_target_seconds=0.1,
    batched_tokens=8192,
    sequences=256,
    kv_tokens=100_000,
    profile=tuple(
        ForwardPass(prefill, kv, 0.01 + prefill * 5e-5 + kv * 2e-7)
        for prefill in (0.0, 1000.0, 4000.0)
        for kv in (0.0, 30_000.0, 90_000.0)
    ),
)


def replica(number: int, ready: bool = True, draining: bool = False) -> ReplicaView:
    """One replica by its number, asked for at 0."""
    return ReplicaView(f"r{number}", ready, draining, 0.0, 0.0 if ready else None)


def view(
    now_seconds: float, ready: int, samples: dict[str, Sample] | None = None, starting: int = 0
) -> View:
    """A fleet at a moment."""
    replicas = [replica(each) for each in range(ready)]
    replicas += [replica(ready + each, ready=False) for each in range(starting)]
    return View(now_seconds, tuple(replicas), samples or {}, 60.0)


def gauges(
    now_seconds: float, count: int, running: float = 0.0, waiting: float = 0.0, kv: float = 0.0
) -> dict[str, Sample]:
    """The same gauges of replicas 0 to ``count`` - 1."""
    return {
        f"r{each}": Sample(f"r{each}", now_seconds, running, waiting, kv) for each in range(count)
    }


def histogram(bounds: tuple[float, ...], values: list[float]) -> Histogram:
    """Of the values, with a last bucket to infinity."""
    every = (*bounds, float("inf"))
    counts = tuple(float(sum(value <= bound for value in values)) for bound in every)
    return Histogram(every, counts, sum(values))
