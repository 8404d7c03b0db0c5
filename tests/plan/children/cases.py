"""One case for each way to run: for the golden manifests, and for a real API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from poolwise.model.work import ServingLayout
from poolwise.plan.children.manifests import children
from poolwise.plan.decision import Plan
from poolwise.plan.pool import Pool
from poolwise.settings import Settings
from tests.plan.children.given import (
    GIB,
    cpu_pool,
    h100_pool,
    placed_job,
    placed_service,
    service,
    training_job,
)

Case = tuple[dict[str, Any], Plan, Pool]

FULL_RUN = {
    "image": "registry.example.com/pretrain:1.4",
    "imagePullPolicy": "IfNotPresent",
    "command": ["torchrun"],
    "args": ["--no-python", "train", "--dp=$(POOLWISE_DATA_PARALLEL)"],
    "env": [
        {"name": "NCCL_DEBUG", "value": "INFO"},
        {"name": "WANDB_API_KEY", "valueFrom": {"secretKeyRef": {"name": "wandb", "key": "key"}}},
        {"name": "MASTER_PORT", "value": "12345"},
    ],
    "envFrom": [{"configMapRef": {"name": "train-config"}}],
    "resources": {"requests": {"cpu": "64", "memory": "512Gi", "rdma/hca": "8"}},
    "volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "corpus", "readOnly": True}},
        {"name": "scratch", "emptyDir": {"sizeLimit": "1Ti"}},
    ],
    "volumeMounts": [
        {"name": "data", "mountPath": "/data"},
        {"name": "scratch", "mountPath": "/scratch"},
    ],
    "ports": [{"name": "metrics", "containerPort": 9090}],
    "serviceAccountName": "trainer",
    "imagePullSecrets": [{"name": "registry"}],
}


def multi_node_job() -> Case:
    return training_job(), placed_job(), h100_pool()


def full_job() -> Case:
    job = training_job(
        run=FULL_RUN,
        checkpoint={"claimName": "ckpt"},
        queueName="research",
        priorityClassName="production",
        activeDeadlineSeconds=86400,
        ttlSecondsAfterFinished=3600,
        backoffLimit=5,
    )
    return job, placed_job(), h100_pool()


def one_accelerator_job() -> Case:
    return training_job(), placed_job({"a3-3": 1}), h100_pool()


def vllm() -> Case:
    layout = ServingLayout(tensor=2, max_num_seqs=128, max_model_tokens=8192)
    cached = service(modelCache={"claimName": "models"})
    return cached, placed_service(h100_pool(), layout, may_surge=True), h100_pool()


def vllm_fp8_from_claim() -> Case:
    model = {"preset": "llama-3.1-8b", "uri": "pvc://models/llama-8b", "quantization": "fp8"}
    layout = ServingLayout(weight_format="fp8")
    asked = service(
        model=model,
        engine={"args": ["--max-num-seqs=64", "--enable-prefix-caching"]},
        scaling={"redundancy": 1},
    )
    return asked, placed_service(h100_pool(), layout), h100_pool()


def vllm_on_cpu() -> Case:
    layout = ServingLayout(cpu_cores=7.5, cpu_memory_bytes=24 * GIB, max_num_seqs=8)
    return service(), placed_service(cpu_pool(), layout), cpu_pool()


def sglang_from_image() -> Case:
    model = {"preset": "llama-3.1-70b", "uri": "oci://registry.example.com/models/llama:70b"}
    layout = ServingLayout(tensor=8, expert=8)
    asked = service(model=model, engine={"type": "sglang", "metricsPort": 30000})
    return asked, placed_service(h100_pool(), layout, replicas=1), h100_pool()


def tgi() -> Case:
    plan = placed_service(h100_pool(), ServingLayout())
    return service(engine={"type": "tgi"}), plan, h100_pool()


def triton() -> Case:
    model = {"preset": "llama-3.1-8b", "uri": "pvc://repository"}
    asked = service(model=model, engine={"type": "triton"})
    return asked, placed_service(h100_pool(), ServingLayout()), h100_pool()


def custom_on_cpu() -> Case:
    model = {"custom": {"parameters": "22M", "forwardFlopsPerSample": "5500M"}}
    run = {
        "image": "registry.example.com/embedder:1",
        "ports": [{"name": "http", "containerPort": 9000}],
    }
    asked = service(
        model={"custom": {**model["custom"], "activationBytesPerSample": "10M"}},
        engine={"type": "custom"},
        run=run,
    )
    layout = ServingLayout(cpu_cores=2, cpu_memory_bytes=2 * GIB)
    return asked, placed_service(cpu_pool(), layout), cpu_pool()


CASES: Mapping[str, Callable[[], Case]] = {
    "training-two-nodes": multi_node_job,
    "training-everything-set": full_job,
    "training-one-accelerator": one_accelerator_job,
    "vllm": vllm,
    "vllm-fp8-from-claim": vllm_fp8_from_claim,
    "vllm-cpu": vllm_on_cpu,
    "sglang-from-image": sglang_from_image,
    "tgi": tgi,
    "triton": triton,
    "custom-cpu": custom_on_cpu,
}


def manifests(case: Case) -> tuple[dict[str, Any], ...]:
    """The children of a case."""
    resource, plan, pool = case
    return children(resource, plan, pool, Settings())
