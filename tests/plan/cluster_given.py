"""Clusters and workloads for tests of decisions: a few nodes as platforms label them."""

import copy
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from poolwise.plan.children.manifests import children
from poolwise.plan.cluster import decide
from poolwise.plan.decision import Key, Kind, Plan
from poolwise.plan.observed import Observed
from poolwise.settings import Settings
from tests.plan.machines import CALIBRATION, TABLES

NOW = datetime(2026, 11, 21, tzinfo=UTC)
GPU = "nvidia.com/gpu"
OWN_TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}


def gpu_nodes(name, count, product, per_node=8, cores=192, **labels):
    """Nodes that GPU Feature Discovery has labelled."""
    own = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(per_node), **labels}
    return [
        _node(f"{name}-{index}", cores, {GPU: str(per_node)}, own, [OWN_TAINT])
        for index in range(count)
    ]


def cpu_nodes(name, count, machine_type="m7i.8xlarge", cores=32):
    labels = {"node.kubernetes.io/instance-type": machine_type}
    return [_node(f"{name}-{index}", cores, {}, labels, []) for index in range(count)]


def h100(count, **more):
    return gpu_nodes("h100", count, "NVIDIA-H100-80GB-HBM3", **more)


def l40s(count, **more):
    return gpu_nodes("l40s", count, "NVIDIA-L40S", cores=128, **more)


def _node(name, cores, devices, labels, taints):
    amounts = {"cpu": str(cores), "memory": "1000Gi", "pods": "110", **devices}
    return {
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name, **labels},
        },
        "spec": {"taints": taints},
        "status": {
            "capacity": amounts,
            "allocatable": dict(amounts),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def job(name="job", count=8, age_seconds=0, **spec):
    """A training run of 8 billion parameters; keys of ``spec`` replace whole fields."""
    return _object(
        "TrainingJob",
        name,
        age_seconds,
        {
            "model": {"preset": "llama-3.1-8b"},
            "training": {"globalBatchSize": 256, "sequenceLength": 4096, "tokens": "1G"},
            "accelerators": {"count": count},
            "run": {"image": "train"},
            **spec,
        },
    )


def service(name="chat", requests_per_second="2", age_seconds=0, **spec):
    """A chat with an 8-billion-parameter model."""
    return _object(
        "InferenceService",
        name,
        age_seconds,
        {
            "model": {"preset": "llama-3.1-8b", "maxModelLength": 8192},
            "traffic": {
                "requestsPerSecond": requests_per_second,
                "inputTokens": {"p50": 300, "p95": 1200},
                "outputTokens": {"p50": 350, "p95": 900},
            },
            "slo": [
                {"metric": "TTFT", "percentile": 99, "target": "2s"},
                {"metric": "ITL", "percentile": 99, "target": "80ms"},
            ],
            **spec,
        },
    )


def _object(kind, name, age_seconds, spec):
    created = NOW - timedelta(seconds=age_seconds)
    return {
        "apiVersion": "poolwise.dev/v1alpha1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "research",
            "uid": f"uid-{name}",
            "generation": 1,
            "creationTimestamp": created.isoformat(),
        },
        "spec": spec,
    }


def changed(document, **spec):
    """The same object after an edit of its spec."""
    result = copy.deepcopy(document)
    result["spec"].update(spec)
    result["metadata"]["generation"] += 1
    return result


def observed(nodes, *workloads, **more):
    return Observed(
        nodes=nodes,
        training_jobs=[each for each in workloads if each["kind"] == "TrainingJob"],
        inference_services=[each for each in workloads if each["kind"] == "InferenceService"],
        **more,
    )


def decided(nodes, *workloads, **more):
    return decide(observed(nodes, *workloads, **more), TABLES, Settings(), CALIBRATION, NOW)


def outcomes(nodes, *workloads, **more):
    """Outcomes by the name of the workload."""
    answer = decided(nodes, *workloads, **more)
    return {key.name: outcome for key, outcome in answer.outcomes.items()}


def plan_of(nodes, workload, **more):
    outcome = outcomes(nodes, workload, **more)[workload["metadata"]["name"]]
    assert isinstance(outcome, Plan), outcome
    return outcome


def candidate(plan, accelerator):
    return next(each for each in plan.candidates if each.accelerator == accelerator)


def key(name, kind=Kind.TRAINING_JOB):
    return Key(kind, "research", name)


def running(nodes, *workloads, **more):
    """What an operator has created for these workloads: its Jobs and Deployments."""
    answer = decided(nodes, *workloads, **more)
    pools = {pool.name: pool for pool in answer.pools}
    by_name = {each["metadata"]["name"]: each for each in workloads}
    made: list[Any] = []
    for at, outcome in answer.outcomes.items():
        if isinstance(outcome, Plan) and outcome.placed:
            assert outcome.chosen is not None
            pool = pools[outcome.chosen.pool]
            made += children(by_name[at.name], outcome, pool, Settings())
    return [child for child in made if child["kind"] in ("Job", "Deployment")]


def pods_of(child, node_names):
    """Pods of a child, bound to these nodes, as its controller would make them."""
    template = child["spec"]["template"]
    return [
        {
            "metadata": {
                "name": f"{child['metadata']['name']}-{index}",
                "namespace": child["metadata"]["namespace"],
                "labels": template["metadata"]["labels"],
            },
            "spec": {**template["spec"], "nodeName": node},
            "status": {"phase": "Running"},
        }
        for index, node in enumerate(node_names)
    ]


def foreign_pod(node, gpus, name="other"):
    container = {"name": "main", "resources": {"limits": {GPU: str(gpus)}}}
    return {
        "metadata": {"name": name, "namespace": "elsewhere"},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": "Running"},
    }


def finished(child, how="Complete"):
    return {**child, "status": {"conditions": [{"type": how, "status": "True"}]}}


def held(decisions):
    """Accelerators that placed workloads hold, by node."""
    total: Counter[str] = Counter()
    for outcome in decisions.outcomes.values():
        if isinstance(outcome, Plan) and outcome.claim:
            total.update(outcome.claim.accelerators_by_node)
    return total
