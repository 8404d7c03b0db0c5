"""A training job's child where its spec names a runtime of Kubeflow Trainer: one TrainJob.

The runtime is the template: its image where the spec has none, its command, its restarts. What
Poolwise decided goes on top: the number of nodes and of processes, the accelerators, variables,
and as a patch of our own the pool's selector and tolerations, labels and mounts. A runtime that
starts torchrun sets torchrun's own variables itself, and Trainer refuses them from anybody else.

What a TrainJob cannot carry: ``backoffLimit`` and a time to live (the runtime says how often it
restarts), ``imagePullPolicy``, and the PriorityClass of pods, which still orders Poolwise's queue.
``runtimePatches`` exist since Trainer 2.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from poolwise.errors import InvalidInput
from poolwise.plan import names
from poolwise.plan.children.job_set import ATTEMPT, job_set_name
from poolwise.plan.children.metadata import recorded_metadata, without_empty
from poolwise.plan.children.ranks import Rendezvous, TrainingRun, rank_template
from poolwise.plan.decision import PlacementRecord
from poolwise.plan.observed import Manifest, Object
from poolwise.plan.reading import mapping, objects

MANAGER = f"{names.GROUP}/planner"
"""Who answers for our patch, beside Kueue's and others'."""
NODE = "node"
"""The container that every runtime of Kubeflow Trainer trains in."""
OF_TORCH = frozenset(
    {"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"}
)
"""Variables that Trainer's torch runtimes set, and refuse to be given."""
_JOB_SET = ("spec", "template", "spec")
"""Of a runtime: where its JobSet is."""
_POD = ("template", "spec", "template", "spec")
"""Of a replicated job: where its pod is."""
PATCHED = (
    *("affinity", "imagePullSecrets", "nodeSelector", "securityContext", "serviceAccountName"),
    *("tolerations", "volumes"),
)
"""Fields of our pods that a runtime can be patched with."""


def train_job_children(run: TrainingRun, version: str, runtime: Object) -> tuple[Manifest, ...]:
    """The TrainJob for a runtime; Trainer makes a JobSet from it.

    :raises InvalidInput: for a runtime without a container to train in.
    """
    name = job_set_name(run.name)
    roles = _roles(runtime)
    meets = Rendezvous(_subdomain(runtime) or name, f"{name}-{roles[0]}-0-0", ATTEMPT)
    template = rank_template(run, meets)
    child = recorded_metadata(run.resource, run.record, name)
    return (
        {
            "apiVersion": f"{names.TRAINER}/{version}",
            "kind": "TrainJob",
            "metadata": child,
            "spec": without_empty(
                {
                    "runtimeRef": _reference(run.spec.runtime_ref),
                    "trainer": _trainer(template, run.record, _is_torch(runtime)),
                    "runtimePatches": [_patch(template, roles, child["labels"])],
                    "activeDeadlineSeconds": run.spec.active_deadline_seconds,
                }
            ),
        },
    )


def _reference(runtime_ref: Any) -> Manifest:
    return {"apiGroup": names.TRAINER, "kind": runtime_ref.kind, "name": runtime_ref.name}


def _trainer(template: Manifest, record: PlacementRecord, is_torch: bool) -> Manifest:
    container = _container(template)
    processes = next(v["value"] for v in container["env"] if v["name"] == "PET_NPROC_PER_NODE")
    reserved = OF_TORCH if is_torch else frozenset()
    return {
        **{field: container[field] for field in ("image", "command", "args") if field in container},
        "env": [each for each in container["env"] if each["name"] not in reserved],
        "numNodes": record.pods,
        "numProcPerNode": int(processes),
        "resourcesPerNode": container["resources"],
    }


def _patch(template: Manifest, roles: Sequence[str], labels: Mapping[str, str]) -> Manifest:
    """Labels on all levels, so that JobSet and Jobs are known for ours."""
    jobs = [
        {
            "name": role,
            "template": {
                "metadata": {"labels": dict(labels)},
                "spec": {"template": _pod_patch(template)},
            },
        }
        for role in roles
    ]
    job_set = {"metadata": {"labels": dict(labels)}, "spec": {"replicatedJobs": jobs}}
    return {"manager": MANAGER, "trainingRuntimeSpec": {"template": job_set}}


def _pod_patch(template: Manifest) -> Manifest:
    container = {
        "name": NODE,
        **{field: _container(template)[field] for field in ("securityContext", "volumeMounts")},
    }
    pod = {field: template["spec"][field] for field in PATCHED if field in template["spec"]}
    return {"metadata": template["metadata"], "spec": {**pod, "containers": [container]}}


def _container(template: Manifest) -> Manifest:
    container: Manifest = template["spec"]["containers"][0]
    return container


def _roles(runtime: Object) -> list[str]:
    """Replicated jobs whose pods train; the first has rank 0."""
    found = [
        str(job["name"])
        for job in objects(runtime, *_JOB_SET, "replicatedJobs")
        if any(each.get("name") == NODE for each in objects(job, *_POD, "containers"))
    ]
    if not found:
        name = runtime["metadata"]["name"]
        told = f"names {runtime['kind']} {name}, which has no container {NODE} to train in"
        raise InvalidInput("spec.runtimeRef", told)
    return found


def _subdomain(runtime: Object) -> str:
    return str(mapping(runtime, *_JOB_SET, "network").get("subdomain") or "")


def _is_torch(runtime: Object) -> bool:
    """Whether its nodes are started by torchrun; an empty policy counts."""
    return "torch" in mapping(runtime, "spec", "mlPolicy")
