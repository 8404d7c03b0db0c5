"""How long a pass over a long queue takes: ``python -m bench.queue_speed``.

The operator's own pass (:func:`poolwise.plan.cluster.decide`) for 500 jobs that wait for 20 pools,
and for 1,000 jobs and 1,000 services: ``joint`` is the part of
:func:`poolwise.plan.joint.planning.plan` in all rounds of the pass, the rest reads objects, judges
candidates and writes plans. Processor time. The bar: 2 s for the joint part.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from unittest import mock

from poolwise import tables
from poolwise.model.calibration import shipped
from poolwise.plan.cluster import decide
from poolwise.plan.joint.planning import plan
from poolwise.plan.memo import Memo
from poolwise.plan.observed import Decisions, Observed
from poolwise.plan.queueing import queue
from poolwise.plan.wording import plural
from poolwise.settings import Settings

QUEUES = {"500 jobs": (500, 0), "1,000 jobs, 1,000 services": (1000, 1000)}
"""Jobs and services."""
POOLS, NODES = 20, 10
PRODUCTS = ("NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H200",
            "NVIDIA-B200")  # fmt: skip
COUNTS = (1, 2, 4, 8, 16)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TABLES = tables.load()
CALIBRATION = shipped(TABLES)


@dataclass
class Stopwatch:
    """Processor seconds inside one function."""

    seconds: float = 0.0
    calls: int = 0

    def around(self, function: Any) -> Any:
        """The function, timed."""

        def timed(*args: Any, **more: Any) -> Any:
            started = time.process_time()
            try:
                return function(*args, **more)
            finally:
                self.seconds += time.process_time() - started
                self.calls += 1

        return timed


def main() -> None:
    """Each queue: a first pass, one that finds all as the first left it, and one without the
    optimiser."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    for name, (jobs, services) in QUEUES.items():
        print(name)
        _print_passes(
            Observed(
                nodes=list(_nodes()),
                training_jobs=list(_jobs(jobs)),
                inference_services=list(_services(services)),
            )
        )


def _print_passes(seen: Observed) -> None:
    memo, last = Memo(), Decisions((), {})
    passes = {
        "first": lambda _: seen,
        "optimised again": lambda _: seen,
        "in between": lambda last: replace(seen, standing=last.standing),
    }
    for name, observe in passes.items():
        joint = Stopwatch()
        started = time.process_time()
        with mock.patch.object(queue, "plan", joint.around(plan)):
            last = decide(observe(last), TABLES, Settings(), CALIBRATION, NOW, memo)
        total = time.process_time() - started
        placed = sum(getattr(each, "placed", False) for each in last.outcomes.values())
        rounds = plural(joint.calls, "round")
        print(
            f"{name:16} {total:5.2f} s, of which joint {joint.seconds:5.2f} s in {rounds}:"
            f" {placed} of {len(last.outcomes)} start on {len(last.pools)} pools"
        )


def _nodes() -> Iterator[dict[str, Any]]:
    amounts = {"cpu": "192", "memory": "2000Gi", "pods": "110", "nvidia.com/gpu": "8"}
    for at in range(POOLS * NODES):
        pool = at // NODES
        labels = {
            "kubernetes.io/arch": "amd64",
            "nvidia.com/gpu.product": PRODUCTS[pool % len(PRODUCTS)],
            "nvidia.com/gpu.count": "8",
            "node.kubernetes.io/instance-type": f"type-{pool}",
        }
        yield {
            "metadata": {"name": f"node-{at}", "labels": labels},
            "spec": {},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }


def _jobs(count: int) -> Iterator[dict[str, Any]]:
    for at in range(count):
        training = {"globalBatchSize": 256, "sequenceLength": 4096, "tokens": f"{1 + at % 7}G"}
        yield {
            "metadata": _metadata(f"job-{at}"),
            "spec": {
                "model": {"preset": "llama-3.1-8b"},
                "training": training,
                "accelerators": {"count": COUNTS[at % len(COUNTS)]},
                "run": {"image": "train"},
            },
        }


def _services(count: int) -> Iterator[dict[str, Any]]:
    for at in range(count):
        lengths = {
            "inputTokens": {"p50": 300, "p95": 1200},
            "outputTokens": {"p50": 350, "p95": 900},
        }
        yield {
            "metadata": _metadata(f"service-{at}"),
            "spec": {
                "model": {"preset": "llama-3.1-8b", "maxModelLength": 8192},
                "traffic": {"requestsPerSecond": str(1 + at % 7), **lengths},
                "slo": [{"metric": "ITL", "percentile": 99, "target": "80ms"}],
            },
        }


def _metadata(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": "research",
        "uid": f"uid-{name}",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }


if __name__ == "__main__":
    main()
