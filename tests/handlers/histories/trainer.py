"""What Kubeflow Trainer does: a JobSet of each TrainJob, whose end is the TrainJob's."""

from __future__ import annotations

from poolwise.cluster.resources import JOB_SETS, TRAIN_JOBS, owner_uid
from poolwise.plan.conditions import timestamp
from poolwise.plan.names import JOBSET
from tests.fake_kube import Document
from tests.handlers.histories.cluster import VERSIONS, Cluster
from tests.handlers.histories.virtual_time import VirtualLoop

ENDS = {"Completed": "Complete", "Failed": "Failed"}
"""Conditions of a TrainJob by those of its JobSet."""


class Trainer:
    """One step, as often as it is called."""

    def __init__(self, cluster: Cluster, loop: VirtualLoop) -> None:
        self._cluster = cluster
        self._loop = loop

    def step(self) -> None:
        job_sets = {owner_uid(each): each for each in self._cluster.all(JOB_SETS)}
        for train_job in self._cluster.all(TRAIN_JOBS):
            job_set = job_sets.get(train_job["metadata"]["uid"])
            if job_set is not None:
                self._tell(train_job, job_set)
            elif JOBSET in self._cluster.optional and not _has_ended(train_job):
                self._cluster.put(_made_for(train_job))

    def _tell(self, train_job: Document, job_set: Document) -> None:
        is_suspended = bool(train_job["spec"].get("suspend"))
        self._cluster.change(job_set, spec={**job_set["spec"], "suspend": is_suspended})
        for each in (job_set.get("status") or {}).get("conditions", ()):
            if each["type"] in ENDS and each["status"] == "True" and not _has_ended(train_job):
                end = {**each, "type": ENDS[each["type"]]}
                end["lastTransitionTime"] = timestamp(self._loop.utc_now())
                self._cluster.change(train_job, status={"conditions": [end]})


def _has_ended(train_job: Document) -> bool:
    return bool((train_job.get("status") or {}).get("conditions"))


def _made_for(train_job: Document) -> Document:
    metadata, spec = train_job["metadata"], train_job["spec"]
    owner = {"kind": "TrainJob", "name": metadata["name"], "uid": metadata["uid"]}
    told = spec["runtimePatches"][0]["trainingRuntimeSpec"]["template"]
    (role,) = told["spec"]["replicatedJobs"]
    pod = role["template"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    container = {**container, "resources": spec["trainer"]["resourcesPerNode"]}
    ranks = spec["trainer"]["numNodes"]
    job = {
        "parallelism": ranks,
        "completions": ranks,
        "template": {**pod, "spec": {**pod["spec"], "containers": [container]}},
    }
    template = {**role["template"], "spec": job}
    return {
        "apiVersion": f"{JOBSET}/{VERSIONS[JOBSET]}",
        "kind": "JobSet",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": told["metadata"]["labels"],
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {
            "replicatedJobs": [{"name": role["name"], "replicas": 1, "template": template}],
            "suspend": bool(spec.get("suspend")),
        },
    }
