"""Nodes, pools and workloads of the histories: few of each, so that they meet."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from poolwise.plan.names import INFERENCE
from tests.fake_kube import Document
from tests.handlers.gateway import inference_pool, picker_pod, picker_service
from tests.handlers.histories.cluster import VERSIONS
from tests.handlers.histories.queues import NAMESPACE, QUEUE
from tests.handlers.shell import chat_service, h100_node, training_job

JOBS, SERVICES = ("j0", "j1", "j2", "j3"), ("s0", "s1", "s2")
NODES = ("h0", "h1", "h2", "h3", "a0", "a1", "x0")
A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.compute.major": "8"}
UNKNOWN = {"nvidia.com/gpu.product": "NVIDIA-Z9000", "nvidia.com/gpu.memory": "1"}
GPU = "nvidia.com/gpu"
GROUP_LABEL = "example.com/group"
_POOLWISE = "poolwise.dev/v1alpha1"


def node(name: str, **labels: str) -> Document:
    """Of H100s, of A100s, or of what nobody knows."""
    count, own = {"h": (8, {}), "a": (4, A100), "x": (4, UNKNOWN)}[name[0]]
    document = h100_node(count, {**own, GROUP_LABEL: name[0], **labels}, name)
    ready = {"type": "Ready", "status": "True"}
    return {**document, "status": {**document["status"], "conditions": [ready]}}


def declared_pool(name: str, **spec: Any) -> Document:
    """An AcceleratorPool that a person made."""
    metadata = {"name": name}
    return {"apiVersion": _POOLWISE, "kind": "AcceleratorPool", "metadata": metadata, "spec": spec}


def priority_class(name: str, value: int) -> Document:
    """As people make them."""
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value}


def autoscaler(kind: str, service: str) -> Document:
    """Of a Deployment, or of an InferenceService."""
    target = {"apiVersion": "apps/v1", "kind": kind, "name": service}
    if kind == "InferenceService":
        target["apiVersion"] = _POOLWISE
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": f"theirs-{service}", "namespace": NAMESPACE},
        "spec": {"scaleTargetRef": target},
    }


def gateway(service: str) -> list[Document]:
    """What stands before a service."""
    ours = {"poolwise.dev/owner": service, "poolwise.dev/owner-kind": "InferenceService"}
    name = f"{service}-epp"
    assert VERSIONS[INFERENCE] == "v1"
    return [inference_pool(service, **ours), picker_service(name), picker_pod(f"{name}-0")]


def foreign(name: str, kind: str) -> Document:
    """What has the name that a child of ours would get."""
    api, spec = {
        "Service": ("v1", {"ports": [{"port": 80}]}),
        "Job": ("batch/v1", {"parallelism": 0, "completions": 1, "template": {"spec": {}}}),
    }[kind]
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def foreign_pod(name: str, on: str, accelerators: int) -> Document:
    """What takes accelerators and asks nobody."""
    limits = {"nvidia.com/gpu": str(accelerators)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "b"},
        "spec": {"nodeName": on, "containers": [{"name": "c", "resources": {"limits": limits}}]},
        "status": {"phase": "Running"},
    }


_counts = st.sampled_from([{"count": each} for each in (1, 4, 8, 16, 24, 64)])
_ranges = st.sampled_from([{"min": 4, "max": 16}, {"min": 1, "max": 32}, {"min": 16, "max": 24}])
_objectives = st.fixed_dictionaries(
    {"goal": st.sampled_from(["Time", "Cost"])},
    optional={
        "deadline": st.sampled_from(["2026-11-21T06:00:00Z", "2026-11-21T00:00:00Z"]),
        "maxCost": st.sampled_from(["1", "2000"]),
    },
)
_placements = st.sampled_from(
    [{}, {"pools": ["mine"]}, {"topology": {"mode": "Required", "level": GROUP_LABEL}}]
)
_classes = st.sampled_from(["high", "low", "absent"])
_ports = st.just({"ports": [{"name": "metrics", "containerPort": 9000}]})

job_edits = st.fixed_dictionaries(
    {},
    optional={
        "suspend": st.booleans(),
        "objective": _objectives,
        "placement": _placements,
        "priorityClassName": _classes,
    },
)
"""What may change while a run has pods."""
job_specs = st.fixed_dictionaries(
    {"accelerators": st.one_of(_counts, _ranges)},
    optional={
        "training": st.sampled_from(
            [
                {"globalBatchSize": 64, "sequenceLength": 4096, "tokens": each}
                for each in ("1M", "1G", "100G")
            ]
        ),
        "model": st.sampled_from(
            [{"preset": "llama-3.1-8b"}, {"preset": "llama-3.1-70b"}, {"preset": "none-such"}]
        ),
        "queueName": st.sampled_from([QUEUE, QUEUE, "nowhere"]),
        "mode": st.just("Plan"),
        "suspend": st.just(True),
        "runtime": st.sampled_from(["Job", "JobSet"]),
        "startTimeout": st.just("10m"),
        "priorityClassName": _classes,
        "objective": _objectives,
        "placement": _placements,
        "checkpoint": st.just({"claimName": "c", "path": "/c", "interval": "5m"}),
        "run": _ports.map(lambda more: {"image": "train", **more}),
    },
)
service_specs = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from(
            [
                {"preset": "llama-3.1-8b", "maxModelLength": 8192},
                {"preset": "llama-3.1-70b", "maxModelLength": 8192},
                {"preset": "llama-3.1-405b", "uri": "pvc://models/405b"},
                {"preset": "none-such"},
            ]
        ),
        "traffic": st.sampled_from(
            [
                {
                    "requestsPerSecond": each,
                    "inputTokens": {"p50": 300, "p95": 1200},
                    "outputTokens": {"p50": 200, "p95": 600},
                }
                for each in ("1", "20", "150")
            ]
        ),
        "scaling": st.fixed_dictionaries(
            {
                "minReplicas": st.sampled_from([0, 1, 2]),
                "maxReplicas": st.sampled_from([2, 4, 12]),
                "mode": st.sampled_from(["Direct", "Direct", "External", "Off"]),
                "redundancy": st.sampled_from([0, 1]),
                "scaleToZero": st.booleans(),
            }
        ),
        "replicas": st.sampled_from([0, 1, 3, 9]),
        "mode": st.just("Plan"),
        "objective": st.sampled_from([{"maxCostPerHour": each} for each in ("1", "20", "60")]),
        "slo": st.sampled_from(
            [[{"metric": "TTFT", "percentile": 99, "target": each}] for each in ("1ms", "500ms")]
        ),
        "placement": _placements,
        "priorityClassName": _classes,
    },
)


def job(name: str, spec: dict[str, Any]) -> Document:
    """A run that fits on H100s, but for ``spec``."""
    return training_job(NAMESPACE, name, 4, **spec)


def service(name: str, spec: dict[str, Any]) -> Document:
    """A service of one H100, but for ``spec``."""
    return chat_service(NAMESPACE, name, **spec)
