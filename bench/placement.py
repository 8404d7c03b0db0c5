"""How long a decision takes: ``python -m bench.placement``.

Processor time, so that a busy machine tells the same; the median of several passes. ``cold`` is
the first look at a workload, ``warm`` every later one. The bars: 50 ms for one workload on 5 to 10
pools, 1 s for a cluster of 1,000 nodes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from e2e import profiles
from poolwise import tables
from poolwise.model.efficiency import Calibration
from poolwise.plan.candidates.memo import Memo
from poolwise.plan.cluster import decide
from poolwise.plan.observed import Decisions, Observed
from poolwise.settings import Settings

EXAMPLES = Path(__file__).parent.parent / "examples"
MIXED = ("demo", "mixed-mi300x-nvidia")
"""Profiles whose nodes together make 8 pools."""
PASSES = 5
LARGE = 1000
TABLES = tables.load()
CALIBRATION = Calibration(TABLES.efficiencies)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    """Print one line per example, and one for a large cluster."""
    nodes = _renamed(node for name in MIXED for node in profiles.render(name))
    empty_ms = _milliseconds(partial(_decide, Observed(nodes=nodes)))
    pools = len(_decide(Observed(nodes=nodes)).pools)
    print(f"{len(nodes)} nodes in {pools} pools, nothing to place: {empty_ms:.1f} ms")
    for workload in _workloads():
        seen, memo = _observed(nodes, workload), Memo()
        cold_ms = _milliseconds(partial(_decide, seen)) - empty_ms
        _decide(seen, memo)
        warm_ms = _milliseconds(partial(_decide, seen, memo)) - empty_ms
        name = workload["metadata"]["name"]
        print(f"{name:20} cold {cold_ms:6.1f} ms   warm {max(warm_ms, 0.0):5.1f} ms")
    one = profiles.render(MIXED[0])
    many = _renamed(one[index % len(one)] for index in range(LARGE))
    large_ms = _milliseconds(partial(_decide, Observed(nodes=many)))
    print(f"{LARGE} nodes read, pooled and counted: {large_ms:.0f} ms")


def _decide(seen: Observed, memo: Memo | None = None) -> Decisions:
    return decide(seen, TABLES, Settings(), CALIBRATION, NOW, memo)


def _milliseconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(PASSES):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return 1e3 * statistics.median(times)


def _workloads() -> list[dict[str, Any]]:
    documents = [yaml.safe_load(path.read_text()) for path in sorted(EXAMPLES.glob("*.yaml"))]
    return [each for each in documents if each["kind"] in ("TrainingJob", "InferenceService")]


def _observed(nodes: list[dict[str, Any]], workload: dict[str, Any]) -> Observed:
    is_job = workload["kind"] == "TrainingJob"
    return Observed(
        nodes=nodes,
        training_jobs=[workload] if is_job else [],
        inference_services=[] if is_job else [workload],
    )


def _renamed(nodes: Any) -> list[dict[str, Any]]:
    """Nodes of several profiles in one cluster, where each name is given once."""
    return [
        {**node, "metadata": {**node["metadata"], "name": f"{node['metadata']['name']}-{index}"}}
        for index, node in enumerate(nodes)
    ]


if __name__ == "__main__":
    main()
