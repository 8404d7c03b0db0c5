"""Resources, pools and placed plans for the tests of children, status and report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from poolwise.model.hardware import Device, Host, Interconnect, Machine, Resource
from poolwise.model.prediction import (
    Bottleneck,
    Interval,
    Memory,
    ServingPrediction,
    Term,
    TrainingPrediction,
)
from poolwise.model.work import Recompute, ServingLayout, TrainingLayout
from poolwise.plan.decision import Candidate, Claim, Key, Kind, Plan
from poolwise.plan.pool import CPU, Node, Pool, Price

GIB = 2.0**30
JOB = Key(Kind.TRAINING_JOB, "research", "llama-70b")
SERVICE = Key(Kind.INFERENCE_SERVICE, "chat", "assistant")
JOB_UID = "6f1f0a64-7a45-4d4e-9d3f-1a2b3c4d5e6f"
SERVICE_UID = "0b4b7f3e-52d6-4f9a-8a1c-9f8e7d6c5b4a"

H100 = Machine(
    Device(
        name="H100-SXM5-80GB",
        is_cpu=False,
        family="hopper",
        memory_bytes=79.6 * GIB,
        memory_bandwidth_bytes_per_second=3.35e12,
        peak_flops_per_second={"bf16": 989e12, "fp8": 1979e12},
        power_watts=700,
        matmul_flops_per_second={},
    ),
    Interconnect(8, 450e9, 400e9, 8, True),
    Host(192, 2048 * GIB, 10e9, 100e9, 5e9),
)
XEON = Machine(
    Device("Xeon-8481C", True, "cpu", 128 * GIB, 300e9, {"bf16": 40e12}, 350, {}, cores=32),
    Interconnect(1, 1.0, 12.5e9, 1, False),
    Host(32, 128 * GIB, 2e9, 20e9, 2e9),
)


def h100_pool(nodes: int = 8) -> Pool:
    """Eight accelerators a node, tainted as GKE does."""
    selector = {"cloud.google.com/gke-nodepool": "a3"}
    toleration = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    return Pool(
        name="h100-ib",
        is_discovered=False,
        accelerator="H100-SXM5-80GB",
        resource="nvidia.com/gpu",
        machine=H100,
        nodes=tuple(
            Node(f"a3-{i}", {**selector, "kubernetes.io/hostname": f"a3-{i}"}, 8, 192, 2048 * GIB)
            for i in range(nodes)
        ),
        accelerators_per_node=8,
        node_selector=selector,
        tolerations=(toleration,),
        price=Price(55.0, "USD", "spec.price"),
        capacity_type="OnDemand",
        role="Interconnect",
        role_reason="450 GB/s between accelerators",
        ridge_points={"bf16": 295.2},
    )


def cpu_pool() -> Pool:
    """Four nodes without accelerators."""
    selector = {"node.kubernetes.io/instance-type": "c3-standard-44"}
    return Pool(
        name="cpu",
        is_discovered=True,
        accelerator=CPU,
        resource=None,
        machine=XEON,
        nodes=tuple(Node(f"c3-{i}", selector, 0, 43.0, 160 * GIB) for i in range(4)),
        accelerators_per_node=0,
        node_selector=selector,
        tolerations=(),
        price=Price(2.2, "USD", "table"),
        capacity_type="OnDemand",
        role="Cpu",
    )


def training_job(name: str = JOB.name, **spec: Any) -> dict[str, Any]:
    """A valid TrainingJob as the API server would hand it out."""
    return {
        "apiVersion": "poolwise.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name, "namespace": JOB.namespace, "uid": JOB_UID, "generation": 1},
        "spec": {
            "model": {"preset": "llama-3.1-70b"},
            "training": {"globalBatchSize": 512, "sequenceLength": 8192, "tokens": "2G"},
            "accelerators": {"count": 16},
            "run": {"image": "registry.example.com/pretrain:1.4", "command": ["torchrun", "train"]},
            **spec,
        },
    }


def service(name: str = SERVICE.name, **spec: Any) -> dict[str, Any]:
    """A valid InferenceService as the API server would hand it out."""
    return {
        "apiVersion": "poolwise.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {
            "name": name,
            "namespace": SERVICE.namespace,
            "uid": SERVICE_UID,
            "generation": 1,
        },
        "spec": {
            "model": {"preset": "llama-3.1-8b", "uri": "hf://meta-llama/Llama-3.1-8B-Instruct"},
            "traffic": {"requestsPerSecond": "12"},
            "slo": [{"metric": "TTFT", "percentile": 99, "target": "2s"}],
            **spec,
        },
    }


def training_prediction() -> TrainingPrediction:
    """A step of 125 s, mostly compute."""
    return TrainingPrediction(
        step_seconds=Interval(125.0374, 116.2, 136.1),
        ledger=(Term("Compute", 92.0374), Term("Interconnect", 17.5), Term("Bubble", 15.5)),
        memory=Memory(
            usable_bytes=79 * GIB,
            weights_bytes=17 * GIB,
            gradients_bytes=17 * GIB,
            optimizer_bytes=13 * GIB,
            activations_bytes=12 * GIB,
            reserve_bytes=2 * GIB,
            more_bytes=3.5 * GIB,
        ),
        samples_per_second=8.19,
        tokens_per_second=67_123.4,
        arithmetic_intensity=1210.0,
        ridge_point=295.2,
        power_watts=640.0,
        provenance="fitted",
    )


def serving_prediction(weights_bytes: float = 15 * GIB) -> ServingPrediction:
    """A replica at 4 requests per second."""
    return ServingPrediction(
        requests_per_second=4.0,
        capacity_requests_per_second=5.1,
        ttft_seconds=Interval(0.31, 0.24, 0.42),
        itl_seconds=Interval(0.0173, 0.014, 0.022),
        e2e_seconds=Interval(6.1, 5.2, 7.9),
        limiting="ITL p99",
        concurrency=24.0,
        ledger=(Term("Prefill", 0.21), Term("Decode", 5.7), Term("Queue", 0.19)),
        memory=Memory(
            usable_bytes=0.9 * 79.6 * GIB,
            weights_bytes=weights_bytes,
            kv_cache_bytes=9 * GIB,
            reserve_bytes=2 * GIB,
            more_bytes=1.5 * GIB,
        ),
        tokens_per_second=1400.0,
        arithmetic_intensity=41.0,
        ridge_point=295.2,
        power_watts=510.0,
        provenance="measured",
    )


def bottleneck(resource: Resource, gain: float) -> Bottleneck:
    """One resource ahead of all others."""
    gains = {each: 0.004 for each in Resource if each is not Resource.LATENCY}
    return Bottleneck(resource, gains | {resource: gain})


def placed_job(nodes: Mapping[str, int] | None = None, **chosen: Any) -> Plan:
    """A job on H100s, two whole nodes unless said otherwise."""
    held = dict(nodes or {"a3-0": 8, "a3-1": 8})
    count = sum(held.values())
    layout = TrainingLayout(data=count // 8 or 1, tensor=min(8, count))
    fields = {"layout": TrainingLayout(**_fields(layout), recompute=Recompute.SELECTIVE), **chosen}
    candidate = Candidate(
        pool="h100-ib",
        accelerator="H100-SXM5-80GB",
        feasible=True,
        reason="finishes first of 3 pools",
        reason_code="Fastest",
        count=count,
        prediction=training_prediction(),
        bottleneck=bottleneck(Resource.COMPUTE, 0.0712),
        cost_per_hour=110.0,
        total_cost=36_400.0,
        total_seconds=83 * 3600.0,
        energy_joules=3.1e10,
        objective_value=83 * 3600.0,
        chosen=True,
        **fields,
    )
    return Plan(
        key=JOB,
        uid=JOB_UID,
        generation=1,
        placed=True,
        reason="h100-ib finishes first",
        reason_code="PlanReady",
        chosen=candidate,
        candidates=(candidate, *losers()),
        claim=Claim(JOB, "h100-ib", held, {}, {}),
    )


def losers() -> tuple[Candidate, ...]:
    """A pool that is too small, one that has no room, and one that nobody knows."""
    return (
        Candidate(
            pool="l40s-eth",
            accelerator="L40S",
            feasible=False,
            reason="needs 91.2 GiB per accelerator at the smallest shape, L40S has 44.0 usable",
            reason_code="MemoryDoesNotFit",
            count=16,
        ),
        Candidate(
            pool="mi300x",
            accelerator="MI300X",
            feasible=False,
            waits=True,
            reason="no free block of 16 (largest 8)",
            reason_code="InsufficientCapacity",
            count=16,
            prediction=training_prediction(),
            total_seconds=90 * 3600.0,
            total_cost=41_000.0,
        ),
        Candidate(
            pool="odd",
            accelerator=None,
            feasible=False,
            reason="no label names the accelerator",
            reason_code="UnknownHardware",
        ),
    )


def placed_service(pool: Pool, layout: ServingLayout, replicas: int = 3, **plan: Any) -> Plan:
    """A service with every replica on a node of its own."""
    nodes = [node.name for node in pool.nodes[:replicas]]
    candidate = Candidate(
        pool=pool.name,
        accelerator=pool.accelerator,
        feasible=True,
        reason="cheapest of 3 pools that meet every target",
        reason_code="Cheapest",
        count=layout.count,
        replicas=replicas,
        layout=layout,
        prediction=serving_prediction(),
        bottleneck=bottleneck(Resource.MEMORY_BANDWIDTH, 0.083),
        cost_per_hour=20.6,
        energy_joules=5.5e6,
        objective_value=20.6,
        chosen=True,
    )
    return Plan(
        key=SERVICE,
        uid=SERVICE_UID,
        generation=1,
        placed=True,
        reason="h100-ib is the cheapest that meets every target",
        reason_code="PlanReady",
        chosen=candidate,
        candidates=(candidate, *losers()),
        claim=_service_claim(pool, layout, nodes),
        **plan,
    )


def _service_claim(pool: Pool, layout: ServingLayout, nodes: list[str]) -> Claim:
    return Claim(
        SERVICE,
        pool.name,
        dict.fromkeys(nodes, layout.count) if layout.count else {},
        dict.fromkeys(nodes, layout.cpu_cores) if layout.cpu_cores else {},
        dict.fromkeys(nodes, layout.cpu_memory_bytes) if layout.cpu_cores else {},
    )


def _fields(layout: TrainingLayout) -> dict[str, Any]:
    return {"data": layout.data, "tensor": layout.tensor}
