"""How long a decision takes among many accelerators: ``python -m bench.many_accelerators``.

100 pools of all accelerators that the shipped tables hold, no two pools with the same network,
storage and cores. Beside :mod:`bench.placement_speed`, whose 100 pools have eight products, this is
the harder case: nearly every pool asks for a search of its own. Processor time of the table of
candidates for a workload, and of the first look at it on a known cluster; the least of several,
since what else a machine computes slows these down. No bar is kept: that of the table is 50 ms.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from typing import Any

from bench.placement_speed import (
    CALIBRATION,
    MANY_POOLS,
    NOW,
    TABLES,
    candidate_table,
    declared_pool,
)
from poolwise.handlers.garbage import settle
from poolwise.plan.cluster import decide
from poolwise.plan.decision import Kind
from poolwise.plan.ledger.capacity import ledger
from poolwise.plan.memo import Memo
from poolwise.plan.observed import Observed
from poolwise.plan.requests.reading import workload
from poolwise.settings import Settings
from poolwise.tables import AcceleratorRow

Document = dict[str, Any]
PASSES = 5
NODES_PER_POOL = 2
DENSE, MIXTURE, LATENT, SMALL = "Llama-3.1-8B", "Qwen3-30B-A3B", "DeepSeek-V2-Lite", "Qwen2.5-0.5B"
"""One weight for all tokens, experts, latent attention (MLA), and what every accelerator holds."""
JOBS = {
    "dense": (DENSE, {"count": 8}),
    "dense, elastic": (DENSE, {"min": 1, "max": 16}),
    "dense, large": ("Llama-3.1-70B", {"count": 16}),
    "mixture": (MIXTURE, {"count": 8}),
    "latent": (LATENT, {"count": 8}),
    "small": (SMALL, {"min": 1, "max": 8}),
}
SERVICES = {
    "dense": (DENSE, "12"),
    "dense, large": ("Llama-3.1-70B", "2"),
    "mixture": (MIXTURE, "12"),
    "latent": (LATENT, "12"),
    "latent, large": ("DeepSeek-V3", "2"),
    "small": (SMALL, "50"),
}


def main() -> None:
    """One line per workload."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(f"{MANY_POOLS} pools of {len(set(rows()))} accelerators, the least of {PASSES}:")
    cluster = observed()
    for document in workloads():
        table_ms, cold_ms = (
            table_milliseconds(document, cluster),
            cold_milliseconds(document, cluster),
        )
        name = f"{document['kind']} {document['metadata']['name']}"
        print(f"{name:34} table {table_ms:6.1f} ms   cold {cold_ms:6.1f} ms", flush=True)


def table_milliseconds(document: Document, cluster: Observed) -> float:
    """Of the candidates for a workload, where nothing is remembered of any pool."""
    book = ledger(decide(cluster, TABLES, Settings(), CALIBRATION, NOW, Memo()).pools, {})
    request = workload(document, Kind(document["kind"]), TABLES, Settings(), {}).request
    ask = partial(candidate_table, request, book)
    return min(_milliseconds(ask) for _ in range(PASSES))


def cold_milliseconds(document: Document, cluster: Observed) -> float:
    """Of the pass over a known cluster that comes to know a workload."""
    times_ms = []
    for _ in range(PASSES):
        memo = Memo()
        decide(cluster, TABLES, Settings(), CALIBRATION, NOW, memo)
        settle()  # as the operator does once it knows the cluster
        seen = beside(cluster, document)
        times_ms.append(
            _milliseconds(partial(decide, seen, TABLES, Settings(), CALIBRATION, NOW, memo))
        )
    return min(times_ms)


def observed() -> Observed:
    """The cluster without any workload."""
    pools = list(islice(cycle(rows()), MANY_POOLS))
    return Observed(
        nodes=[node for index, row in enumerate(pools) for node in _nodes(index, row)],
        pools=[_declared(index, row) for index, row in enumerate(pools)],
    )


def beside(cluster: Observed, document: Document) -> Observed:
    """The cluster with one workload."""
    if document["kind"] == "TrainingJob":
        return replace(cluster, training_jobs=[document])
    return replace(cluster, inference_services=[document])


def rows() -> tuple[AcceleratorRow, ...]:
    """All accelerators."""
    return tuple(TABLES.accelerators)


def workloads() -> Iterator[Document]:
    """Dense models, mixtures of experts, latent attention and a small one, trained and served."""
    for name, (model, accelerators) in JOBS.items():
        yield _job(name, model, accelerators)
    for name, (model, rate) in SERVICES.items():
        yield _service(name, model, rate)


def _job(name: str, model: str, accelerators: dict[str, int]) -> Document:
    spec = {
        "model": {"preset": model},
        "training": {"globalBatchSize": 256, "sequenceLength": 4096, "tokens": "2G"},
        "accelerators": accelerators,
        "run": {"image": "train"},
    }
    return {"kind": "TrainingJob", "metadata": _metadata(name), "spec": spec}


def _service(name: str, model: str, rate: str) -> Document:
    lengths = {"inputTokens": {"p50": 300, "p95": 1200}, "outputTokens": {"p50": 350, "p95": 900}}
    spec = {
        "model": {"preset": model, "maxModelLength": 8192},
        "traffic": {"requestsPerSecond": rate, **lengths},
        "slo": [
            {"metric": "TTFT", "percentile": 99, "target": "2s"},
            {"metric": "ITL", "percentile": 99, "target": "80ms"},
        ],
        "scaling": {"minReplicas": 1, "maxReplicas": 20},
    }
    return {"kind": "InferenceService", "metadata": _metadata(name), "spec": spec}


def _metadata(name: str) -> Document:
    name = name.replace(", ", "-")
    return {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1}


def _nodes(pool: int, row: AcceleratorRow) -> Iterator[Document]:
    """As large as the usual machine, with cores of their own; of what, its pool says."""
    amounts = {"cpu": str(96 + pool), "memory": "2000Gi", "pods": "110"}
    amounts |= {row.resource: str(row.accelerators_per_node)}
    for index in range(NODES_PER_POOL):
        yield {
            "metadata": {
                "name": f"node-{pool}-{index}",
                "labels": {"pool": f"p{pool}", "kubernetes.io/arch": "amd64"},
            },
            "spec": {},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }


def _declared(index: int, row: AcceleratorRow) -> Document:
    pool = declared_pool(index)
    return {**pool, "spec": {**pool["spec"], "accelerator": row.name}}


def _milliseconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return 1e3 * (time.process_time() - started)


if __name__ == "__main__":
    main()
