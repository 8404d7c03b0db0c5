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
from tests.plan.children.set_cases import TORCH

JOBS, SERVICES = ("j0", "j1", "j2", "j3"), ("s0", "s1", "s2")
NODES = ("h0", "h1", "h2", "h3", "a0", "a1", "x0")
A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.compute.major": "8"}
UNKNOWN = {"nvidia.com/gpu.product": "NVIDIA-Z9000", "nvidia.com/gpu.memory": "1"}
DEVICES = {"h": 8, "a": 4, "x": 4}
"""Of a node, by the first letter of its name."""
GPU = "nvidia.com/gpu"
GROUP_LABEL = "example.com/group"
TAINT = {"key": "example.com/reserved", "effect": "NoSchedule"}
_POOLWISE = "poolwise.dev/v1alpha1"


def node(name: str, **labels: str) -> Document:
    """Of H100s, of A100s, or of what nobody knows."""
    count, own = DEVICES[name[0]], {"h": {}, "a": A100, "x": UNKNOWN}[name[0]]
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


_PLACEMENTS = [
    {"placement": each}
    for each in (
        {},
        {"pools": ["mine"]},
        {"topology": {"mode": "Required", "level": GROUP_LABEL}},
    )
]
_CLASSES = [{"priorityClassName": each} for each in ("high", "low", "absent")]
_OBJECTIVES = [
    {"objective": each}
    for each in (
        {"goal": "Cost"},
        {"deadline": "2026-11-21T06:00:00Z"},
        {"deadline": "2026-11-21T00:00:00Z"},
        {"maxCost": "2000"},
        {"maxCost": "1"},
    )
]
_COUNTS = [{"accelerators": {"count": each}} for each in (1, 4, 8, 16, 24, 64)]
_RANGES = [
    {"accelerators": {"min": least, "max": most}} for least, most in ((4, 16), (1, 32), (16, 24))
]
LENGTHS = [
    {"training": {"globalBatchSize": 64, "sequenceLength": 4096, "tokens": each}}
    for each in ("1M", "100G")
]
CHECKPOINTS = {"checkpoint": {"claimName": "c", "path": "/c", "interval": "5m"}}
RATES = [
    {
        "traffic": {
            "requestsPerSecond": each,
            "inputTokens": {"p50": 300, "p95": 1200},
            "outputTokens": {"p50": 200, "p95": 600},
        }
    }
    for each in ("1", "20", "150")
]


def _specs(*twists: list[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """A few of these on top of each other: what each does is seen, and what they do together."""
    one = st.sampled_from([each for many in twists for each in many])
    return st.lists(one, max_size=4).map(
        lambda few: {k: v for each in few for k, v in each.items()}
    )


job_edits = _specs(
    [{"suspend": True}, {"suspend": False}], _OBJECTIVES, _PLACEMENTS, _CLASSES
).filter(bool)
"""What may change while a run has pods."""
job_specs = _specs(
    _COUNTS,
    _RANGES,
    LENGTHS,
    _PLACEMENTS,
    _CLASSES,
    _OBJECTIVES,
    [{"queueName": QUEUE}, {"queueName": QUEUE}, {"queueName": QUEUE}, {"queueName": "nowhere"}],
    [{"model": {"preset": "llama-3.1-70b"}}, {"model": {"preset": "none-such"}}],
    [{"mode": "Plan"}, {"suspend": True}, {"startTimeout": "10m"}],
    [{"runtime": "Job"}, {"runtime": "JobSet"}, {"runtimeRef": {"name": TORCH}}],
    [CHECKPOINTS],
    [{"run": {"image": "train", "ports": [{"name": "metrics", "containerPort": 9000}]}}],
)
_SCALING = [
    {"scaling": each}
    for each in (
        {"minReplicas": 0, "maxReplicas": 4, "scaleToZero": True},
        {"minReplicas": 0, "maxReplicas": 2},
        {"minReplicas": 2, "maxReplicas": 12, "redundancy": 1},
        {"minReplicas": 1, "maxReplicas": 4, "mode": "External"},
        {"minReplicas": 1, "maxReplicas": 4, "mode": "Off"},
    )
]
service_specs = _specs(
    RATES,
    _SCALING,
    _PLACEMENTS,
    _CLASSES,
    [{"replicas": each} for each in (0, 1, 3, 9)],
    [{"objective": {"maxCostPerHour": each}} for each in ("1", "20", "60")],
    [{"slo": [{"metric": "TTFT", "percentile": 99, "target": each}]} for each in ("1ms", "500ms")],
    [
        {"model": {"preset": "llama-3.1-70b", "maxModelLength": 8192}},
        {"model": {"preset": "llama-3.1-405b", "uri": "pvc://models/405b"}},
        {"model": {"preset": "none-such"}},
        {"mode": "Plan"},
    ],
)


def job(name: str, spec: dict[str, Any]) -> Document:
    """A run that takes a node of H100s, but for ``spec``."""
    return training_job(NAMESPACE, name, 8, **spec)


def service(name: str, spec: dict[str, Any]) -> Document:
    """A service of one H100, but for ``spec``."""
    return chat_service(NAMESPACE, name, **spec)
