"""The pods of a gang, one per node: alike in every kind of object that runs them.

Rank 0 is found by its stable name behind a headless Service, which lists pods before they are
ready. Objects differ in that name, and in what they write on a pod about its attempt.
"""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.api import TrainingJobSpec
from poolwise.plan.children import pods
from poolwise.plan.children.affinity import of_rank
from poolwise.plan.children.environment import RENDEZVOUS_PORT, training_environment
from poolwise.plan.children.metadata import (
    gang_metadata,
    key_of,
    selector_labels,
    without_empty,
)
from poolwise.plan.decision import PlacementRecord
from poolwise.plan.names import child_name
from poolwise.plan.observed import Manifest, Object
from poolwise.plan.pool import Pool

CONTAINER = "train"


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """What the pods of a training job follow from."""

    resource: Object
    spec: TrainingJobSpec
    record: PlacementRecord
    pool: Pool

    @property
    def name(self) -> str:
        """Of the TrainingJob."""
        return str(self.resource["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """How the pods of one object find each other."""

    subdomain: str
    """Name of the headless Service."""
    master: str
    """Host name of rank 0 within it."""
    attempt_annotation: str
    """Where a pod reads how often it was started before."""

    @property
    def master_address(self) -> str:
        """Name of rank 0 for the namespace's pods."""
        return f"{self.master}.{self.subdomain}"


def service_name(name: str) -> str:
    """Name of the headless Service of a TrainingJob's ranks."""
    return child_name(name, "-ranks")


def rank_template(run: TrainingRun, meets: Rendezvous) -> Manifest:
    """Metadata and spec of the pods; who makes them sets hostname and subdomain as it likes."""
    spec, record, pool, key = run.spec, run.record, run.pool, key_of(run.resource)
    shm_volume, shm_mount = pods.shared_memory()
    volumes, mounts = [shm_volume], [shm_mount]
    if spec.checkpoint:
        volume, mount = pods.claim(
            "checkpoint", spec.checkpoint.claim_name, spec.checkpoint.path, read_only=False
        )
        volumes, mounts = [*volumes, volume], [*mounts, mount]
    variables = training_environment(spec, record, meets.master_address, meets.attempt_annotation)
    container = pods.container_of(
        spec.run,
        CONTAINER,
        mounts,
        image=spec.run.image,
        command=list(spec.run.command),
        args=list(spec.run.args),
        env=pods.environment(spec.run, variables),
        ports=pods.ports(spec.run, [pods.port("rendezvous", RENDEZVOUS_PORT)]),
        resources=pods.resources(spec.run, pool, record.accelerators_per_pod, {}),
    )
    used = pods.mounted(container, volumes)
    pod = pods.pod_spec(spec.run, pool, container, used, spec.priority_class_name, record.selector)
    affinity = of_rank(record, pool, selector_labels(key))
    placed = without_empty({"affinity": affinity, "restartPolicy": "Never"})
    return {"metadata": gang_metadata(key, record.pool), "spec": {**pod, **placed}}


def disruption_rule(action: str) -> Manifest:
    """What becomes of a Job whose pod was taken from it (preemption, drain, node loss)."""
    disrupted = {"type": "DisruptionTarget", "status": "True"}
    return {"rules": [{"action": action, "onPodConditions": [disrupted]}]}
