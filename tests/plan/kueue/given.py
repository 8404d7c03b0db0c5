"""Queues, flavors and Workloads of Kueue as its API server has them."""

import copy

from poolwise.plan.names import KUEUE
from poolwise.plan.observed import Queues
from tests.plan.cluster_given import GPU, running

PRODUCT = "nvidia.com/gpu.product"
H100 = {PRODUCT: "NVIDIA-H100-80GB-HBM3"}
L40S = {PRODUCT: "NVIDIA-L40S"}
APIS = {KUEUE: "v1beta2"}


def flavor(name, labels=None, **spec):
    return _object("ResourceFlavor", name, {"nodeLabels": dict(labels or {}), **spec})


def cluster_queue(name, quotas, used=None, resources=(GPU,), **spec):
    """``quotas`` and ``used`` are GPUs by flavor."""
    flavors = [
        {
            "name": each,
            "resources": [{"name": one, "nominalQuota": str(quota)} for one in resources],
        }
        for each, quota in quotas.items()
    ]
    group = {"coveredResources": list(resources), "flavors": flavors}
    reserved = [
        {"name": each, "resources": [{"name": GPU, "total": str(count)}]}
        for each, count in (used or {}).items()
    ]
    status = {"flavorsReservation": reserved}
    return {**_object("ClusterQueue", name, {"resourceGroups": [group], **spec}), "status": status}


def local_queue(name="research", cluster="all", namespace="research"):
    queue = _object("LocalQueue", name, {"clusterQueue": cluster})
    queue["metadata"]["namespace"] = namespace
    return queue


def queues(flavors, cluster, *more_local, **more):
    return Queues(
        local_queues=(local_queue(cluster=cluster["metadata"]["name"]), *more_local),
        cluster_queues=(cluster,),
        flavors=tuple(flavors),
        **more,
    )


def made(nodes, job, at="2026-11-20T23:59:00Z", **more):
    """The child of a job, as Kueue sees it after its creation; a minute before NOW."""
    (child,) = running(nodes, job, **more)
    child = copy.deepcopy(child)
    child["metadata"]["uid"] = f"uid-of-{child['metadata']['name']}"
    child["metadata"]["resourceVersion"] = "1"
    child["metadata"]["creationTimestamp"] = at
    return child


def started(child):
    """What Kueue makes of it when it lets it in."""
    child = copy.deepcopy(child)
    child["spec"]["suspend"] = False
    return child


def workload(child, *conditions, **status):
    """Kueue's Workload of a child; conditions as (type, status, reason, message)."""
    names = ("type", "status", "reason", "message")
    shown = [dict(zip(names, each, strict=True)) for each in conditions]
    owner = {"kind": child["kind"], "uid": child["metadata"]["uid"], "controller": True}
    metadata = {
        "name": f"job-{child['metadata']['name']}-1a2b3",
        "namespace": child["metadata"]["namespace"],
        "uid": f"uid-workload-{child['metadata']['name']}",
        "resourceVersion": "7",
        "ownerReferences": [{**owner, "name": child["metadata"]["name"]}],
    }
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": metadata,
        "spec": {"podSets": []},
        "status": {"conditions": shown, **status},
    }


def _object(kind, name, spec):
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
