"""How long a decision takes: ``python -m bench.placement_speed``.

Processor time, so that a busy machine tells the same; the median of several passes. ``cold`` is
the first look at a workload on a known cluster, ``warm`` every later one. The bars: 50 ms for one
workload on 5 to 10 pools and for the table of candidates of 100 that differ in accelerator,
network, storage and cores, 5 ms for one prediction, 1 s for a cluster of 1,000 nodes that nobody
knows yet, and 50 ms for 99 of 100 passes over one with 10,000 pods: in each another workload has
come and one pod has changed. 100 pools of all accelerators there are, which no bar is kept for yet,
are :mod:`bench.many_accelerators`, and decisions on replicas :mod:`bench.scaling_speed`.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from e2e import profiles
from poolwise import tables
from poolwise.handlers.garbage import settle
from poolwise.model.calibration import shipped
from poolwise.model.hardware import Machine
from poolwise.model.prediction import ServingPrediction
from poolwise.model.serving.prediction import predict_serving
from poolwise.model.training.step import predict_training
from poolwise.model.work import ServingLayout, TrainingLayout
from poolwise.plan.candidates.assessment import candidates
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.cluster import decide
from poolwise.plan.decision import Candidate, Kind, Plan
from poolwise.plan.learning.corrections import Corrections
from poolwise.plan.ledger.capacity import Ledger, ledger
from poolwise.plan.memo import Memo
from poolwise.plan.observed import Decisions, Observed
from poolwise.plan.requests.reading import workload
from poolwise.plan.requests.request import Request, TrainingRequest
from poolwise.plan.standing import Standing
from poolwise.settings import Settings

EXAMPLES = Path(__file__).parent.parent / "examples"
MIXED = ("demo", "mixed-mi300x-nvidia")
"""Profiles whose nodes together make 8 pools."""
PASSES = 5
TABLE_PASSES = 15
LARGE = 1000
PODS = 10_000
ARRIVALS = 100
LEAF, LEAF_NODES = "network.topology.nvidia.com/leaf", 32
PRODUCTS = (
    ("NVIDIA-H100-80GB-HBM3", 8), ("NVIDIA-L40S", 8), ("NVIDIA-A100-SXM4-80GB", 8),
    ("NVIDIA-H200", 8), ("Tesla-T4", 4), ("NVIDIA-L4", 4), ("NVIDIA-A10G", 4), ("NVIDIA-B200", 8),
)  # fmt: skip
"""Labels and accelerators per node of the many pools."""
MANY_POOLS = 100
TABLES = tables.load()
CALIBRATION = shipped(TABLES)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    """Print one line per example, and one for a large cluster."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    nodes = _renamed(node for name in MIXED for node in profiles.render(name))
    empty_ms = _milliseconds(partial(_decide, Observed(nodes=nodes)))
    pools = len(_decide(Observed(nodes=nodes)).pools)
    print(f"{len(nodes)} nodes in {pools} pools, nothing to place: {empty_ms:.1f} ms")
    for document in _workloads():
        seen, memo = _observed(nodes, document), Memo()
        _decide(seen, memo)
        warm_ms = _milliseconds(partial(_decide, seen, memo))
        name = document["metadata"]["name"]
        print(f"{name:20} cold {_cold_ms(seen):6.1f} ms   warm {warm_ms:5.1f} ms")
    _print_predictions()
    _print_many_pools()
    one = profiles.render(MIXED[0])
    many = _renamed(one[index % len(one)] for index in range(LARGE))
    large_ms = _milliseconds(partial(_decide, Observed(nodes=many)))
    print(f"{LARGE} nodes read, pooled and counted: {large_ms:.0f} ms")
    _print_arrivals(many)


def _print_arrivals(nodes: list[dict[str, Any]]) -> None:
    """Passes over a large cluster that is known, each with a workload that is not."""
    for index, node in enumerate(nodes):
        node["metadata"]["labels"][LEAF] = f"leaf-{index // LEAF_NODES}"
    pods, every = [_pod(index, nodes) for index in range(PODS)], list[float]()
    for document in _workloads():
        first_ms, *times_ms = _arrivals_ms(document, nodes, pods)
        name = document["metadata"]["name"]
        print(f"{name:20} one more {_told(times_ms)}; the first {first_ms:.0f} ms, optimised")
        every += times_ms
    print(f"{LARGE} nodes, {PODS} pods, one workload more: {_told(every)}")


def _told(times_ms: list[float]) -> str:
    last_ms = sorted(times_ms)[len(times_ms) * 99 // 100 - 1]
    return f"{statistics.median(times_ms):.0f} ms, 99 of 100 in {last_ms:.0f} ms"


def _arrivals_ms(
    document: dict[str, Any], nodes: list[dict[str, Any]], pods: list[dict[str, Any]]
) -> list[float]:
    """The first pass reads the cluster."""
    memo, times_ms, standing = Memo(), list[float](), Standing()
    for index in range(ARRIVALS + 1):
        pods[index] = copy.deepcopy(pods[index])
        seen = _observed(nodes, _arrival(document, index))
        seen = replace(seen, pods=tuple(pods), standing=standing)
        started = time.process_time()
        standing = _decide(seen, memo).standing
        times_ms.append(1e3 * (time.process_time() - started))
        if not index:
            settle()  # as the operator does once it knows the cluster
    return times_ms


def _arrival(document: dict[str, Any], index: int) -> dict[str, Any]:
    """A workload that the memory has not seen: no two ask for the same amount of work."""
    spec = copy.deepcopy(document["spec"])
    if document["kind"] == "TrainingJob":
        spec["training"]["globalBatchSize"] += 64 * index
    else:
        told = float(spec["traffic"]["requestsPerSecond"])
        spec["traffic"]["requestsPerSecond"] = str(told * (1.0 + index / ARRIVALS))
    metadata = {**document["metadata"], "name": f"one-{index}", "uid": f"uid-{index}"}
    return {**document, "metadata": metadata, "spec": spec}


def _pod(index: int, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """A pod of somebody else, which asks for cores and memory."""
    asked = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}}
    return {
        "metadata": {"name": f"pod-{index}", "namespace": "other", "labels": {"app": "other"}},
        "spec": {
            "nodeName": nodes[index % len(nodes)]["metadata"]["name"],
            "containers": [{"name": "main", "resources": asked}],
        },
        "status": {"phase": "Running"},
    }


def _print_many_pools() -> None:
    """A decision among many pools, and the table of candidates alone, at the first look."""
    nodes = list(_pool_nodes())
    declared = [declared_pool(index) for index in range(MANY_POOLS)]
    empty_ms = _milliseconds(partial(_decide, Observed(nodes=nodes, pools=declared)))
    print(f"{len(nodes)} nodes in {MANY_POOLS} pools, nothing to place: {empty_ms:.1f} ms")
    known = _decide(Observed(nodes=nodes, pools=declared)).pools
    book = ledger(known, {})
    for document in _workloads():
        cold_ms = _cold_ms(replace(_observed(nodes, document), pools=declared))
        request = workload(document, Kind(document["kind"]), TABLES, Settings(), {}).request
        table_ms = _milliseconds(partial(candidate_table, request, book), TABLE_PASSES)
        name = document["metadata"]["name"]
        print(
            f"{name:20} cold {cold_ms:6.1f} ms on {MANY_POOLS} pools,"
            f" their table of candidates {table_ms:6.1f} ms"
        )


def candidate_table(request: Request, book: Ledger) -> tuple[Candidate, ...]:
    """Every pool as a candidate for a workload, where nothing is remembered of any."""
    situation = Situation(book, CALIBRATION, Memo(), Settings(), NOW, Corrections())
    return candidates(request, book.pools.values(), situation)


def _pool_nodes() -> Iterator[dict[str, Any]]:
    """Two nodes of each pool, no two pools with the same cores."""
    node = next(node for node in profiles.render(MIXED[0]) if _gpus(node))
    for index in range(2 * MANY_POOLS):
        pool = index // 2
        product, count = PRODUCTS[pool % len(PRODUCTS)]
        one = copy.deepcopy(node)
        one["metadata"]["name"] = f"node-{index}"
        labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(count)}
        one["metadata"]["labels"] = {"pool": f"p{pool}", **labels}
        for amounts in (one["status"]["capacity"], one["status"]["allocatable"]):
            amounts |= {"nvidia.com/gpu": str(count), "cpu": str(96 + pool)}
        yield one


def _gpus(node: dict[str, Any]) -> bool:
    return "nvidia.com/gpu" in node["status"]["allocatable"]


def declared_pool(index: int) -> dict[str, Any]:
    """A pool with a network and a storage of its own."""
    return {
        "metadata": {"name": f"p{index}", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "nodeSelector": {"pool": f"p{index}"},
            "interconnect": {"interNodeBytesPerSecond": f"{50 + index}G"},
            "storage": {"readBytesPerSecond": f"{10 + index}G"},
        },
    }


def _print_predictions() -> None:
    """One prediction of each kind, of the first layout that an example is placed in."""
    nodes = _renamed(node for name in MIXED for node in profiles.render(name))
    for document in _workloads():
        decisions = _decide(_observed(nodes, document))
        (outcome,) = decisions.outcomes.values()
        assert isinstance(outcome, Plan), "examples can be planned"
        assert outcome.chosen is not None, "examples can be placed"
        (pool,) = (pool for pool in decisions.pools if pool.name == outcome.chosen.pool)
        request = workload(document, outcome.key.kind, TABLES, Settings(), {}).request
        assert pool.machine is not None, "what is placed has a machine"
        ms = _milliseconds(partial(_predict, request, outcome.chosen, pool.machine))
        print(f"{document['metadata']['name']:20} one prediction {ms:.2f} ms")


def _predict(request: Request, chosen: Candidate, machine: Machine) -> None:
    layout, prediction = chosen.layout, chosen.prediction
    if isinstance(request, TrainingRequest):
        assert isinstance(layout, TrainingLayout), "runs have training layouts"
        predict_training(request.work, layout, machine, CALIBRATION)
    else:
        assert isinstance(layout, ServingLayout), "services have serving layouts"
        assert isinstance(prediction, ServingPrediction), "and serving predictions"
        rate = prediction.requests_per_second
        predict_serving(request.work, layout, machine, CALIBRATION, rate)


def _cold_ms(seen: Observed) -> float:
    """Of a pass over a known cluster that comes to know a workload."""
    times_ms, alone = [], replace(seen, training_jobs=[], inference_services=[])
    for _ in range(PASSES):
        memo = Memo()
        _decide(alone, memo)
        times_ms.append(_milliseconds(partial(_decide, seen, memo), passes=1))
    return statistics.median(times_ms)


def _decide(seen: Observed, memo: Memo | None = None) -> Decisions:
    return decide(seen, TABLES, Settings(), CALIBRATION, NOW, memo)


def _milliseconds(work: Callable[[], object], passes: int = PASSES) -> float:
    times = []
    for _ in range(passes):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return 1e3 * statistics.median(times)


def _workloads() -> list[dict[str, Any]]:
    documents = [yaml.safe_load(path.read_text()) for path in sorted(EXAMPLES.glob("*.yaml"))]
    return [each for each in documents if each["kind"] in ("TrainingJob", "InferenceService")]


def _observed(nodes: list[dict[str, Any]], document: dict[str, Any]) -> Observed:
    is_job = document["kind"] == "TrainingJob"
    return Observed(
        nodes=nodes,
        training_jobs=[document] if is_job else [],
        inference_services=[] if is_job else [document],
    )


def _renamed(nodes: Any) -> list[dict[str, Any]]:
    """Nodes of several profiles in one cluster, where each name is given once."""
    return [
        {**node, "metadata": {**node["metadata"], "name": f"{node['metadata']['name']}-{index}"}}
        for index, node in enumerate(nodes)
    ]


if __name__ == "__main__":
    main()
