"""The kinds that Poolwise reads or writes, and where the API server keeps them.

The list is closed on purpose: an operator that can write only these cannot be talked into
writing another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from poolwise.plan.names import (
    GROUP,
    INFERENCE,
    INFERENCE_OLD,
    JOBSET,
    KUEUE,
    LEADER_WORKER_SET,
    MANAGED_BY,
    TRAINER,
)
from poolwise.plan.observed import Object


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of the API."""

    group: str
    version: str = field(compare=False)
    """How it is spoken, not what it is: an optional kind may be served in one of several."""
    kind: str
    plural: str
    namespaced: bool = True
    label_selector: str = ""
    """Which of them concern Poolwise."""
    field_selector: str = ""

    @property
    def api_version(self) -> str:
        """As objects write it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def at(self, version: str) -> Resource:
        """The same kind in another version."""
        return self if version == self.version else replace(self, version=version)

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """URL path of one object, or of the collection."""
        parts = ["/apis", self.group] if self.group else ["/api"]
        parts.append(self.version)
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        return "/".join(parts)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


_OURS = f"{MANAGED_BY}=poolwise"

TRAINING_JOBS = Resource(GROUP, "v1alpha1", "TrainingJob", "trainingjobs")
INFERENCE_SERVICES = Resource(GROUP, "v1alpha1", "InferenceService", "inferenceservices")
ACCELERATOR_POOLS = Resource(
    GROUP, "v1alpha1", "AcceleratorPool", "acceleratorpools", namespaced=False
)
NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
PODS = Resource("", "v1", "Pod", "pods")
JOBS = Resource("batch", "v1", "Job", "jobs", label_selector=_OURS)
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments", label_selector=_OURS)
SERVICES = Resource("", "v1", "Service", "services", label_selector=_OURS)
DISRUPTION_BUDGETS = Resource(
    "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", label_selector=_OURS
)
AUTOSCALERS = Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
"""Of others: Poolwise refuses to scale what one of them scales."""
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False
)
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases")
EVENTS = Resource("events.k8s.io", "v1", "Event", "events")

FAILED_CREATIONS = replace(EVENTS, field_selector="reason=FailedCreate,regarding.kind=Job")
"""Why a Job has no pods (quota, admission) is told by these alone; a Deployment says it itself."""

JOB_SETS = Resource(JOBSET, "v1alpha2", "JobSet", "jobsets", label_selector=_OURS)
LEADER_WORKER_SETS = Resource(
    LEADER_WORKER_SET, "v1", "LeaderWorkerSet", "leaderworkersets", label_selector=_OURS
)
TRAIN_JOBS = Resource(TRAINER, "v1alpha1", "TrainJob", "trainjobs", label_selector=_OURS)
TRAINING_RUNTIMES = Resource(TRAINER, "v1alpha1", "TrainingRuntime", "trainingruntimes")
CLUSTER_TRAINING_RUNTIMES = Resource(
    TRAINER, "v1alpha1", "ClusterTrainingRuntime", "clustertrainingruntimes", namespaced=False
)
LOCAL_QUEUES = Resource(KUEUE, "v1beta2", "LocalQueue", "localqueues")
CLUSTER_QUEUES = Resource(KUEUE, "v1beta2", "ClusterQueue", "clusterqueues", namespaced=False)
RESOURCE_FLAVORS = Resource(KUEUE, "v1beta2", "ResourceFlavor", "resourceflavors", namespaced=False)
QUEUE_PRIORITIES = Resource(
    KUEUE, "v1beta2", "WorkloadPriorityClass", "workloadpriorityclasses", namespaced=False
)
ADMISSION_CHECKS = Resource(KUEUE, "v1beta2", "AdmissionCheck", "admissionchecks", namespaced=False)
QUEUED = Resource(KUEUE, "v1beta2", "Workload", "workloads")
"""Kueue's Workloads: one for each Job, JobSet or other thing that waits in a queue."""

INFERENCE_POOLS = Resource(INFERENCE, "v1", "InferencePool", "inferencepools")
OLD_INFERENCE_POOLS = Resource(INFERENCE_OLD, "v1alpha2", "InferencePool", "inferencepools")
OTHER_SERVICES = replace(SERVICES, label_selector=f"{MANAGED_BY}!=poolwise")
"""Of others: endpoint pickers of InferencePools are found by them."""

WORKLOADS = (TRAINING_JOBS, INFERENCE_SERVICES)
RUNNERS = (JOBS, DEPLOYMENTS, JOB_SETS, LEADER_WORKER_SETS, TRAIN_JOBS)
"""Children that run pods, and bear the record of the placement."""
RUNS = (JOBS, JOB_SETS, TRAIN_JOBS)
"""Those whose pods cannot be changed once they exist."""
CHILDREN = (*RUNNERS, SERVICES, DISRUPTION_BUDGETS)
WATCHED = (
    *WORKLOADS,
    ACCELERATOR_POOLS,
    NODES,
    PRIORITY_CLASSES,
    PODS,
    JOBS,
    DEPLOYMENTS,
    SERVICES,
    DISRUPTION_BUDGETS,
    AUTOSCALERS,
    FAILED_CREATIONS,
)
"""Everything that must be there, watched from start to end."""


@dataclass(frozen=True, slots=True)
class OptionalApi:
    """An API of somebody else's that is used where it is served, and may come and go."""

    group: str
    product: str
    """As people call it."""
    versions: tuple[str, ...]
    """Those that Poolwise can speak, the preferred one first."""
    resources: tuple[Resource, ...]
    """All of them must be served in one version."""
    beside: tuple[Resource, ...] = ()
    """Of other APIs: what its objects point to, followed as long as this one is in use."""
    shares_group: bool = False
    """Whether the group is served for other kinds as well: that these are not is no mistake."""


OPTIONAL = (
    OptionalApi(JOBSET, "JobSet", ("v1alpha2",), (JOB_SETS,)),
    OptionalApi(LEADER_WORKER_SET, "LeaderWorkerSet", ("v1",), (LEADER_WORKER_SETS,)),
    OptionalApi(
        TRAINER,
        "Kubeflow Trainer",
        ("v1alpha1",),
        (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES),
    ),
    OptionalApi(
        KUEUE,
        "Kueue",
        ("v1beta2", "v1beta1"),
        (
            *(LOCAL_QUEUES, CLUSTER_QUEUES, RESOURCE_FLAVORS),
            *(QUEUE_PRIORITIES, ADMISSION_CHECKS, QUEUED),
        ),
    ),
    OptionalApi(
        INFERENCE,
        "Gateway API Inference Extension",
        ("v1",),
        (INFERENCE_POOLS,),
        beside=(OTHER_SERVICES,),
    ),
    OptionalApi(
        INFERENCE_OLD,
        "Gateway API Inference Extension (v1alpha2)",
        ("v1alpha2",),
        (OLD_INFERENCE_POOLS,),
        beside=(OTHER_SERVICES,),
        shares_group=True,
    ),
)
"""Children first: what waits in a queue is told by what it runs as."""

BESIDE = tuple({resource: None for api in OPTIONAL for resource in api.beside})
LOOKED_AT = (INFERENCE_POOLS, OLD_INFERENCE_POOLS, *BESIDE)
"""What the next look at services finds out: no plan depends on it."""
CACHED = (*WATCHED, *(resource for api in OPTIONAL for resource in api.resources), *BESIDE)
"""Everything that the cache can hold."""

_BY_KIND = {(each.group, each.kind): each for each in (*CACHED, LEASES, EVENTS, SERVICES)}
_VERSIONS = {(api.group, version) for api in OPTIONAL for version in api.versions} | {
    (each.group, each.version) for each in (*WATCHED, LEASES)
}


def resource_of(document: Object) -> Resource:
    """The kind of an object, in the version that it is written in.

    :raises KeyError: for a kind or a version that Poolwise has no business with.
    """
    group, _, version = document["apiVersion"].rpartition("/")
    if (group, version) not in _VERSIONS:
        raise KeyError(document["apiVersion"])
    return _BY_KIND[group, document["kind"]].at(version)


def controller(document: Object) -> Mapping[str, Any]:
    """The reference to the object's controller; empty where it has none."""
    owners: list[Mapping[str, Any]] = document["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), {})


def owner_uid(document: Object) -> str | None:
    """The uid of the object's controller, by which children are told from look-alikes."""
    return controller(document).get("uid")
