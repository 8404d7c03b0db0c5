"""A training job's children: an Indexed Job with one pod per node, and a headless Service.

The pods form one gang. Rank 0 is found by its stable name behind the headless Service, which lists
pods before they are ready. A failed rank is replaced ``backoffLimit`` times, counted by rank: when
one rank fails, the others lose their rendezvous and fail once each, and a limit over the sum of
failures would be used up by the first incident of a large gang. Pods that were disrupted
(preemption, drain, node loss) do not count at all.
"""

from __future__ import annotations

from typing import Any

from poolwise.api import TrainingJob, TrainingJobSpec
from poolwise.plan.children import pods
from poolwise.plan.children.affinity import of_rank
from poolwise.plan.children.environment import RENDEZVOUS_PORT, training_environment
from poolwise.plan.children.metadata import (
    JOB_NAME_LIMIT,
    key_of,
    metadata,
    pod_metadata,
    recorded_metadata,
    selector_labels,
    without_empty,
)
from poolwise.plan.decision import PlacementRecord
from poolwise.plan.names import child_name
from poolwise.plan.observed import Object
from poolwise.plan.pool import Pool

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"

Manifest = dict[str, Any]


def job_name(name: str) -> str:
    """Name of the Job of a TrainingJob."""
    return child_name(name, limit=JOB_NAME_LIMIT)


def service_name(name: str) -> str:
    """Name of the headless Service of a TrainingJob."""
    return child_name(name, "-ranks")


def training_children(
    resource: Object, record: PlacementRecord, pool: Pool
) -> tuple[Manifest, ...]:
    """Job and Service. Raises what pydantic raises for a spec that admission would refuse."""
    return _service(resource, record), _job(resource, record, pool)


def changes_to_job(resource: Object) -> Manifest:
    """What may still change on a Job that exists, as a merge patch: its pods cannot."""
    spec = TrainingJob.model_validate(resource).spec
    return {"spec": _limits(spec)}


def _service(resource: Object, record: PlacementRecord) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(resource, record, service_name(resource["metadata"]["name"])),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": selector_labels(key_of(resource)),
            "ports": [
                {"name": "rendezvous", "port": RENDEZVOUS_PORT, "targetPort": RENDEZVOUS_PORT}
            ],
        },
    }


def _job(resource: Object, record: PlacementRecord, pool: Pool) -> Manifest:
    spec = TrainingJob.model_validate(resource).spec
    child = recorded_metadata(resource, record, job_name(resource["metadata"]["name"]))
    if spec.queue_name:
        child["labels"][QUEUE_LABEL] = spec.queue_name
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": child,
        "spec": {
            "completionMode": "Indexed",
            "completions": record.pods,
            "parallelism": record.pods,
            "backoffLimitPerIndex": spec.backoff_limit,
            "maxFailedIndexes": 0,
            **without_empty(_limits(spec)),
            "podFailurePolicy": {
                "rules": [
                    {
                        "action": "Ignore",
                        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
                    }
                ]
            },
            "podReplacementPolicy": "Failed",
            "template": _template(resource, spec, record, pool),
        },
    }


def _limits(spec: TrainingJobSpec) -> Manifest:
    return {
        "activeDeadlineSeconds": spec.active_deadline_seconds,
        "ttlSecondsAfterFinished": spec.ttl_seconds_after_finished,
    }


def _template(
    resource: Object, spec: TrainingJobSpec, record: PlacementRecord, pool: Pool
) -> Manifest:
    key = key_of(resource)
    master = f"{job_name(key.name)}-0.{service_name(key.name)}"
    shm_volume, shm_mount = pods.shared_memory()
    volumes, mounts = [shm_volume], [shm_mount]
    if spec.checkpoint:
        volume, mount = pods.claim(
            "checkpoint", spec.checkpoint.claim_name, spec.checkpoint.path, read_only=False
        )
        volumes, mounts = [*volumes, volume], [*mounts, mount]
    container = pods.container_of(
        spec.run,
        "train",
        mounts,
        image=spec.run.image,
        command=list(spec.run.command),
        args=list(spec.run.args),
        env=pods.environment(spec.run, training_environment(spec, record, master)),
        ports=pods.ports(spec.run, [pods.port("rendezvous", RENDEZVOUS_PORT)]),
        resources=pods.resources(spec.run, pool, record.accelerators_per_pod, {}),
    )
    used = pods.mounted(container, volumes)
    pod = pods.pod_spec(spec.run, pool, container, used, spec.priority_class_name)
    gang = {
        "affinity": of_rank(record, pool, selector_labels(key)),
        "restartPolicy": "Never",
        "subdomain": service_name(key.name),
    }
    return {"metadata": pod_metadata(key, record.pool), "spec": {**pod, **without_empty(gang)}}
