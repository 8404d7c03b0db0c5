"""Cases that need an API of somebody else's: JobSet, LeaderWorkerSet, Kubeflow Trainer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from poolwise.model.work import ServingLayout
from poolwise.plan.children.manifests import children
from poolwise.plan.decision import Claim, Plan
from poolwise.plan.pool import Pool
from poolwise.plan.records.runtimes import Served
from poolwise.settings import Settings
from tests.plan.children.cases import FULL_RUN, Case
from tests.plan.children.given import (
    SERVICE,
    h100_pool,
    placed_job,
    placed_service,
    service,
    training_job,
)

APIS = {
    "jobset.x-k8s.io": "v1alpha2",
    "leaderworkerset.x-k8s.io": "v1",
    "trainer.kubeflow.org": "v1alpha1",
}
RACK = "network.topology.nvidia.com/leaf"
TORCH = "torch-distributed"


def runtime(name: str = TORCH, policy: Any = "torch", **job_set: Any) -> dict[str, Any]:
    """A ClusterTrainingRuntime like those that Kubeflow Trainer ships."""
    node = {"spec": {"template": {"spec": {"containers": [{"name": "node", "image": "i"}]}}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name},
        "spec": {
            "mlPolicy": {"numNodes": 1, **({policy: {}} if policy else {})},
            "template": {
                "spec": {"replicatedJobs": [{"name": "node", "template": node}], **job_set}
            },
        },
    }


def fabric_pool(link_level: str = "") -> Pool:
    """Nodes with one level of fabric."""
    return replace(h100_pool(), topology_keys=(RACK,), link_level=link_level)


def spanning(pool: Pool, layout: ServingLayout, replicas: int = 2, **plan: Any) -> Plan:
    """A service whose replicas take whole nodes of eight."""
    placed = placed_service(pool, layout, replicas, **plan)
    names = [node.name for node in pool.nodes[: replicas * layout.count // 8]]
    return replace(placed, claim=Claim(SERVICE, pool.name, dict.fromkeys(names, 8), {}, {}))


def job_set() -> Case:
    job = training_job(
        run=FULL_RUN,
        checkpoint={"claimName": "ckpt"},
        priorityClassName="production",
        activeDeadlineSeconds=86400,
        ttlSecondsAfterFinished=3600,
        backoffLimit=5,
    )
    plan = replace(placed_job(), domain={RACK: "r1"})
    return job, plan, h100_pool()


def train_job() -> Case:
    run = {name: value for name, value in FULL_RUN.items() if name not in ("envFrom", "ports")}
    job = training_job(run=run, runtimeRef={"name": TORCH}, checkpoint={"claimName": "ckpt"})
    return job, placed_job(), h100_pool()


def vllm_over_two_nodes() -> Case:
    layout = ServingLayout(tensor=8, pipeline=2, max_num_seqs=64)
    pool = fabric_pool()
    asked = service(model={"preset": "llama-3.1-405b", "uri": "pvc://models/405b"})
    return asked, spanning(pool, layout, may_surge=True), pool


def sglang_over_two_nodes() -> Case:
    layout = ServingLayout(tensor=16, max_num_seqs=64)
    pool = fabric_pool(link_level=RACK)
    asked = service(
        model={"preset": "llama-3.1-405b", "uri": "pvc://models/405b"}, engine={"type": "sglang"}
    )
    return asked, spanning(pool, layout, replicas=1), pool


SET_CASES: Mapping[str, Callable[[], Case]] = {
    "job-set": job_set,
    "train-job": train_job,
    "vllm-two-nodes": vllm_over_two_nodes,
    "sglang-two-nodes": sglang_over_two_nodes,
}


def set_manifests(case: Case) -> tuple[dict[str, Any], ...]:
    """The children of a case, where everything is served."""
    resource, plan, pool = case
    return children(resource, plan, pool, Settings(), Served(APIS, [runtime()]))
