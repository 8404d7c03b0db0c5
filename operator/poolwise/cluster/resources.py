"""The kinds that Poolwise reads or writes, and where the API server keeps them.

The list is closed on purpose: an operator that can write only these cannot be talked into
writing another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from poolwise.plan.names import GROUP, MANAGED_BY
from poolwise.plan.observed import Object


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of the API."""

    group: str
    version: str
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
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False
)
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases")
EVENTS = Resource("events.k8s.io", "v1", "Event", "events")

FAILED_CREATIONS = replace(EVENTS, field_selector="reason=FailedCreate,regarding.kind=Job")
"""Why a Job has no pods (quota, admission) is told by these alone; a Deployment says it itself."""

WORKLOADS = (TRAINING_JOBS, INFERENCE_SERVICES)
CHILDREN = (JOBS, DEPLOYMENTS, SERVICES, DISRUPTION_BUDGETS)
WATCHED = (
    *WORKLOADS,
    ACCELERATOR_POOLS,
    NODES,
    PRIORITY_CLASSES,
    PODS,
    *CHILDREN,
    FAILED_CREATIONS,
)
"""Everything that the cache holds."""

_BY_KIND = {(each.api_version, each.kind): each for each in (*WATCHED, LEASES, EVENTS)}


def resource_of(document: Object) -> Resource:
    """The kind of an object.

    :raises KeyError: for a kind that Poolwise has no business with.
    """
    return _BY_KIND[document["apiVersion"], document["kind"]]


def owner_uid(document: Object) -> str | None:
    """The uid of the object's controller, by which children are told from look-alikes."""
    owners: list[Mapping[str, Any]] = document["metadata"].get("ownerReferences") or []
    return next((owner["uid"] for owner in owners if owner.get("controller")), None)
