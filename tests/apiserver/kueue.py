"""Kueue's kinds on an API server without its controller: what Poolwise needs of its schema, and
nothing behind it."""

from __future__ import annotations

from collections.abc import Iterable

from e2e.controlplane.client import Client, Object
from tests.apiserver.played import crd

GROUP = "kueue.x-k8s.io"
NEWEST = "v1beta2"
PRODUCT = "nvidia.com/gpu.product"
GPU = "nvidia.com/gpu"
_KINDS = {
    "Workload": True,
    "LocalQueue": True,
    "ClusterQueue": False,
    "ResourceFlavor": False,
    "AdmissionCheck": False,
    "WorkloadPriorityClass": False,
}
"""Whether objects have a namespace."""


def crds(versions: Iterable[str] = ("v1beta2", "v1beta1")) -> list[Object]:
    """The definitions of all kinds; the first version is stored."""
    known = list(versions)
    return [crd(GROUP, kind, known, namespaced=within) for kind, within in _KINDS.items()]


def an_object(
    kind: str, name: str, spec: Object, namespace: str = "", version: str = NEWEST
) -> Object:
    """One of its kinds."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def queue(client: Client, namespace: str, labels: Object, version: str = NEWEST) -> None:
    """A LocalQueue ``research`` with 8 GPUs of one flavor, whose nodes have those labels."""
    flavors = [{"name": namespace, "resources": [{"name": GPU, "nominalQuota": 8}]}]
    group = {"coveredResources": [GPU], "flavors": flavors}
    local = {"clusterQueue": namespace}
    for made in (
        an_object("ResourceFlavor", namespace, {"nodeLabels": labels}, version=version),
        an_object("ClusterQueue", namespace, {"resourceGroups": [group]}, version=version),
        an_object("LocalQueue", "research", local, namespace, version),
    ):
        client.apply(made)


def workload(job: Object) -> Object:
    """What Kueue makes for a Job."""
    metadata = job["metadata"]
    made = an_object("Workload", f"job-{metadata['name']}", {"podSets": []}, metadata["namespace"])
    owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True}
    names = {"name": metadata["name"], "uid": metadata["uid"]}
    made["metadata"]["ownerReferences"] = [{**owner, **names}]
    return made
