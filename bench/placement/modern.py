"""Truth T3: the operator's own analytic model, bent by errors that the engine never sees.

Five pools of today; six kinds of training run at the sizes and lengths of Philly's jobs; run times
from the planner's own candidates. The truth of a replay is a run time times exp(0.15 z) for each
(kind, pool), with z normal, times 1.3 or 1/1.3 for one pool: a systematic error of one accelerator,
which no other pool tells of. A length in seconds is that of the mean pool: the geometric mean over
those that can run it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.files import BadInput
from bench.placement import traces
from bench.placement.engine import exactly
from poolwise import tables
from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import Interval, TrainingPrediction
from poolwise.plan.candidates.assessment import candidates
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.decision import Candidate, Kind
from poolwise.plan.learning.corrections import Corrections
from poolwise.plan.ledger.capacity import ledger
from poolwise.plan.memo import Memo
from poolwise.plan.pools.gathering import pools as gathered
from poolwise.plan.requests.reading import workload
from poolwise.settings import Settings
from poolwise.sim.fleet import Placement, Pool
from poolwise.sim.jobs import Job

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPREAD = 0.15
BIAS = 1.3
LENGTHS = {"gpus": traces.count, "duration_s": traces.seconds}


@dataclass(frozen=True, slots=True)
class Kindred:
    """Nodes of one pool."""

    name: str
    product: str
    accelerators: int
    nodes: int
    fabric: str
    """Bytes per second between nodes."""
    dollars_per_node_hour: str
    cores: int = 96


SMALL = (
    Kindred("a10-eth", "NVIDIA-A10", 1, 2, "3G", "0.75", cores=16),
    Kindred("l40s-eth", "NVIDIA-L40S", 8, 3, "12500M", "8"),
    Kindred("a100-ib", "NVIDIA-A100-SXM4-80GB", 8, 4, "200G", "12"),
    Kindred("h100-ib", "NVIDIA-H100-80GB-HBM3", 8, 4, "400G", "24"),
    Kindred("h200-eth", "NVIDIA-H200", 8, 3, "50G", "30"),
)
"""``modern-S``: 16 nodes, the oldest first. Prices of one node an hour on the market of 2025/26."""
WORK: Mapping[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "bert": ((1, 2, 4, 8), {
        "model": {"preset": "bert-large"},
        "training": {"globalBatchSize": 256, "sequenceLength": 512, "steps": 1000},
    }),
    "vit": ((1, 2, 4, 8), {
        "model": {"preset": "vit-l-16"},
        "training": {"globalBatchSize": 1024, "steps": 1000},
        "data": {"bytesPerSample": "110k", "cpuTimePerSample": "4ms"},
    }),
    "dlrm": ((1, 2, 4), {
        "model": {"custom": {"parameters": "540M", "forwardFlopsPerSample": "5M",
                             "activationBytesPerSample": "20k"}},
        "training": {"globalBatchSize": 65536, "steps": 1000, "optimizer": "Sgd"},
        "data": {"bytesPerSample": "640", "cpuTimePerSample": "5us"},
    }),
    "lora-13b": ((1, 2, 4), {
        "model": {"preset": "llama-2-13b"},
        "training": {"globalBatchSize": 64, "sequenceLength": 2048, "method": "Lora",
                     "steps": 1000},
    }),
    "sft-8b": ((8, 16), {
        "model": {"preset": "llama-3.1-8b"},
        "training": {"globalBatchSize": 128, "sequenceLength": 4096, "steps": 1000},
    }),
    "fsdp-70b": ((16, 32), {
        "model": {"preset": "llama-3.1-70b"},
        "training": {"globalBatchSize": 256, "sequenceLength": 4096, "steps": 1000},
    }),
}  # fmt: skip
"""Kinds of run: the sizes they come in, and their spec."""

Times = Mapping[tuple[str, int], Mapping[str, Interval]]


@dataclass(frozen=True, slots=True)
class Modern:
    """Pools, and what the model says of every kind at every size on them."""

    pools: tuple[Pool, ...]
    times: Times
    """Run time relative to the mean pool; without pools that cannot run it."""
    candidates: Mapping[tuple[str, int], Mapping[str, Candidate]]
    """The operator's own, by pool: what it knows beside the time."""
    lengths: Sequence[tuple[int, float]]
    """Accelerators and seconds of the trace's jobs."""


def modern(folder: Path, scale: int = 1) -> Modern:
    """``modern-S``, or so many times as many nodes."""
    settings, known = Settings(), tables.load()
    nodes = [node for each in SMALL for node in _nodes(each, scale * each.nodes)]
    found = gathered(nodes, [_declared(each) for each in SMALL], known, settings)
    situation = Situation(
        ledger(found, {}), Calibration(known.efficiencies), Memo(), settings, NOW, Corrections()
    )
    judged = {}
    for kind, (sizes, spec) in WORK.items():
        for size in sizes:
            request = workload(
                _document(kind, size, spec), Kind.TRAINING_JOB, known, settings, {}
            ).request
            judged[kind, size] = candidates(request, found, situation)
    pools = tuple(
        Pool(
            each.name,
            (each.accelerators,) * (scale * each.nodes),
            float(each.dollars_per_node_hour) / each.accelerators,
        )
        for each in SMALL
    )
    times = {key: _relative(each) for key, each in judged.items()}
    by_pool = {key: {each.pool: each for each in found} for key, found in judged.items()}
    known_times = {key: each for key, each in times.items() if each}
    return Modern(pools, known_times, by_pool, _lengths(folder))


def jobs(found: Modern, count: int, seed: int) -> tuple[Job, ...]:
    """Sizes and lengths from the trace, kinds evenly among those of the size, one a second."""
    draw, now, drawn = random.Random(seed), 0.0, []
    for index in range(count):
        now += draw.expovariate(1.0)
        size, seconds = draw.choice(found.lengths)
        kind = draw.choice([kind for kind, count in found.times if count == size])
        drawn.append(Job(f"{index:05}", now, size, kind, seconds, f"team-{index % 4}"))
    return tuple(drawn)


@dataclass(frozen=True, slots=True)
class Bent:
    """The hidden truth of one seed."""

    found: Modern
    factors: Mapping[tuple[str, str], float]
    """By kind and pool."""

    def seconds(self, job: Job, placement: Placement) -> float:
        """Of the whole job."""
        return self.in_pool(job, placement.pool)

    def in_pool(self, job: Job, pool: str) -> float:
        """Infinite where it cannot run."""
        times = self.found.times[job.kind, job.accelerators]
        if pool not in times:
            return math.inf
        return job.work * times[pool].mid * self.factors[job.kind, pool]


def bent(found: Modern, seed: int) -> Bent:
    """The errors of one seed."""
    draw = random.Random(f"truth {seed}")
    names = [pool.name for pool in found.pools]
    biased, bias = draw.choice(names), draw.choice((BIAS, 1.0 / BIAS))
    return Bent(
        found,
        {
            (kind, name): math.exp(draw.gauss(0.0, SPREAD)) * (bias if name == biased else 1.0)
            for kind in WORK
            for name in names
        },
    )


def told(found: Modern, truth: Bent) -> Modern:
    """What the engine would know had it seen the errors: every time, and no doubt."""
    times = {
        (kind, size): {
            name: exactly(each.mid * truth.factors[kind, name]) for name, each in by_pool.items()
        }
        for (kind, size), by_pool in found.times.items()
    }
    return replace(found, times=times)


def _relative(found: Sequence[Any]) -> dict[str, Interval]:
    steps = {
        each.pool: each.prediction.step_seconds
        for each in found
        if each.feasible and isinstance(each.prediction, TrainingPrediction)
    }
    if not steps:
        return {}
    mean = math.exp(sum(math.log(each.mid) for each in steps.values()) / len(steps))
    return {name: each.scaled(1.0 / mean) for name, each in steps.items()}


def _lengths(folder: Path) -> list[tuple[int, float]]:
    """Sizes rounded to powers of two, as far as any kind comes in."""
    largest = max(max(sizes) for sizes, _ in WORK.values())
    rows = traces.read(folder, "philly_jobs", LENGTHS)
    found = ((2 ** round(math.log2(int(r["gpus"]))), float(r["duration_s"])) for r in rows)
    lengths = [(min(size, largest), seconds) for size, seconds in found if seconds > 0]
    if not lengths:
        raise BadInput(f"{folder}: every duration_s of philly_jobs* is 0")
    return lengths


def _document(kind: str, size: int, spec: Mapping[str, Any]) -> dict[str, Any]:
    run = {"image": "registry.example.com/train:1", "command": ["torchrun", "train"]}
    return {
        "apiVersion": "poolwise.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": kind, "namespace": "default"},
        "spec": {**spec, "accelerators": {"count": size}, "run": run},
    }


def _nodes(each: Kindred, count: int) -> list[dict[str, Any]]:
    amounts = {
        "cpu": str(each.cores),
        "memory": f"{each.cores * 8}Gi",
        "nvidia.com/gpu": str(each.accelerators),
    }
    labels = {
        "pool": each.name,
        "nvidia.com/gpu.product": each.product,
        "nvidia.com/gpu.count": str(each.accelerators),
    }
    ready = {"type": "Ready", "status": "True"}
    return [
        {
            "metadata": {"name": f"{each.name}-{index}", "labels": labels},
            "spec": {},
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
        }
        for index in range(count)
    ]


def _declared(each: Kindred) -> dict[str, Any]:
    return {
        "metadata": {"name": each.name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "nodeSelector": {"pool": each.name},
            "interconnect": {"interNodeBytesPerSecond": each.fabric},
            "price": {"perNodeHour": each.dollars_per_node_hour, "currency": "USD"},
        },
    }
