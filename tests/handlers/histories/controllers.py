"""What Kubernetes does with what the operator writes: its controllers, the scheduler, kubelets."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from poolwise.cluster.resources import (
    DEPLOYMENTS,
    JOB_SETS,
    JOBS,
    LEADER_WORKER_SETS,
    NODES,
    PODS,
    owner_uid,
)
from poolwise.plan.children.environment import INDEX
from poolwise.plan.children.metadata import WORKER_INDEX
from poolwise.plan.conditions import timestamp
from poolwise.plan.ledger.capacity_pods import requests
from tests.fake_kube import Document
from tests.handlers.histories.cluster import Cluster
from tests.handlers.histories.scheduling import may_take
from tests.handlers.histories.virtual_time import VirtualLoop

GPU = "nvidia.com/gpu"
_HASH = "pod-template-hash"
_DONE = ("Succeeded", "Failed")


class Controllers:
    """One step of each, as often as it is called."""

    def __init__(self, cluster: Cluster, loop: VirtualLoop) -> None:
        self._cluster = cluster
        self._loop = loop
        self.start_seconds = 20.0
        """From a node to readiness."""
        self.is_scheduling = True
        self._bound_at: dict[str, float] = {}
        self._is_starting = False
        """Whether time alone will make a pod ready."""
        self._seen: Any = None

    def step(self) -> None:
        """Nothing, where nothing has changed since the last one and nothing starts."""
        now = self._cluster.changes, self.is_scheduling
        if self._seen == now and not self._is_starting:
            return
        self._seen, self._is_starting = now, False
        self._cluster.collect_garbage()
        for job_set in self._cluster.all(JOB_SETS):
            self._job_set(job_set)
        for job in self._cluster.all(JOBS):
            self._job(job)
        for deployment in self._cluster.all(DEPLOYMENTS):
            self._deployment(deployment)
        for groups in self._cluster.all(LEADER_WORKER_SETS):
            self._groups(groups)
        for pod in self._cluster.all(PODS):
            self._pod(pod)

    # Runs

    def _job_set(self, job_set: Document) -> None:
        (replicated,) = job_set["spec"]["replicatedJobs"]
        name = f"{job_set['metadata']['name']}-{replicated['name']}-0"
        template, is_suspended = replicated["template"], job_set["spec"].get("suspend", False)
        jobs = self._owned(job_set, "Job")
        if not jobs and not _has_ended(job_set):
            metadata: Document = {**_place(job_set, name), "labels": template["metadata"]["labels"]}
            made: Document = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}
            made["spec"] = {**template["spec"], "suspend": is_suspended}
            self._cluster.put(made)
        for job in jobs:
            spec = {
                **job["spec"],
                "suspend": is_suspended,
                "template": template["spec"]["template"],
            }
            self._cluster.change(job, spec=spec)
            if _has_ended(job) and not _has_ended(job_set):
                word = "Completed" if _condition(job, "Complete") else "Failed"
                self._cluster.change(job_set, status={"conditions": [self._true(word)]})

    def _job(self, job: Document) -> None:
        pods, spec = self._owned(job, "Pod"), job["spec"]
        if _has_ended(job):
            return
        if spec.get("suspend"):
            for pod in pods:
                self._cluster.terminate(pod)
        else:
            there = {
                pod["metadata"]["annotations"][INDEX] for pod in pods if _phase(pod) != "Failed"
            }
            for index in range(spec["parallelism"]):
                if str(index) not in there:
                    self._make(job, spec["template"], job["kind"], note={INDEX: str(index)})
        succeeded = sum(_phase(pod) == "Succeeded" for pod in pods)
        failed = sum(_phase(pod) == "Failed" for pod in pods)
        status: dict[str, Any] = {
            "active": sum(_phase(pod) in ("Pending", "Running") for pod in pods),
            "ready": sum(map(is_ready, pods)),
            "succeeded": succeeded,
            "failed": failed,
        }
        if succeeded and succeeded == spec["completions"]:
            status["conditions"] = [self._true("Complete")]
            status["completionTime"] = self._now
        elif failed > spec["parallelism"] * 2:
            status["conditions"] = [self._true("Failed")]
        begun = self._begun(job)
        status["conditions"] = [*status.get("conditions", ()), *begun.pop("conditions", ())]
        self._cluster.change(job, status={**status, **begun})

    def _begun(self, job: Document) -> Document:
        """Since when it runs, and if it did not before it was let in."""
        known, is_suspended = job.get("status") or {}, bool(job["spec"].get("suspend"))
        before = next((e for e in known.get("conditions", ()) if e["type"] == "Suspended"), None)
        if before is None and not is_suspended:
            return {"startTime": known.get("startTime") or self._now}
        word = "True" if is_suspended else "False"
        if before is None or before["status"] != word:
            before = {**self._true("Suspended"), "status": word}
            known = {} if is_suspended else {"startTime": self._now}
        told = {"conditions": [before]}
        return {**told, "startTime": known["startTime"]} if "startTime" in known else told

    # Services

    def _deployment(self, deployment: Document) -> None:
        spec, version = deployment["spec"], _version(deployment["spec"]["template"])
        pods = [pod for pod in self._owned(deployment, "Pod") if _phase(pod) not in _DONE]
        new = [pod for pod in pods if pod["metadata"]["labels"][_HASH] == version]
        old = [pod for pod in pods if pod not in new]
        if old:
            self._cluster.terminate(old[0])
        new.sort(key=is_ready, reverse=True)
        for pod in new[spec["replicas"] :]:
            self._cluster.terminate(pod)
        for _ in range(spec["replicas"] - len(new)):
            self._make(deployment, spec["template"], "ReplicaSet", {_HASH: version})
        ready = sum(map(is_ready, pods))
        status = {
            "replicas": len(pods),
            "updatedReplicas": len(new),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "observedGeneration": deployment["metadata"]["generation"],
        }
        self._cluster.change(deployment, status=status)

    def _groups(self, groups: Document) -> None:
        template, replicas = groups["spec"]["leaderWorkerTemplate"], groups["spec"]["replicas"]
        version, ready = _version(template), 0
        pods = [pod for pod in self._owned(groups, "Pod") if _phase(pod) not in _DONE]
        for pod in pods:
            labels = pod["metadata"]["labels"]
            if labels[_HASH] != version or int(labels["group"]) >= replicas:
                self._cluster.terminate(pod)
        for group in range(replicas):
            ours = [pod for pod in pods if pod["metadata"]["labels"]["group"] == str(group)]
            there = {pod["metadata"]["labels"][WORKER_INDEX] for pod in ours}
            ready += sum(map(is_ready, ours)) == template["size"]
            for worker in range(template["size"]):
                if str(worker) not in there:
                    kind = "workerTemplate" if worker else "leaderTemplate"
                    more = {_HASH: version, "group": str(group), WORKER_INDEX: str(worker)}
                    self._make(groups, template[kind], "StatefulSet", more)
        status = {
            "replicas": len({pod["metadata"]["labels"]["group"] for pod in pods}),
            "readyReplicas": ready,
            "updatedReplicas": replicas,
            "observedGeneration": groups["metadata"]["generation"],
        }
        self._cluster.change(groups, status=status)

    # Pods

    def _make(
        self,
        owner: Document,
        template: Document,
        kind: str,
        more_labels: dict[str, str] | None = None,
        note: dict[str, str] | None = None,
    ) -> None:
        metadata = _place(owner, f"{owner['metadata']['name']}-{self._cluster.next_number()}")
        told = template["metadata"]
        metadata["labels"] = {**told["labels"], **(more_labels or {})}
        metadata["annotations"] = {**told.get("annotations", {}), **(note or {})}
        (reference,) = metadata["ownerReferences"]
        if kind != owner["kind"]:
            reference |= {"kind": kind, "name": f"{reference['name']}-1"}
            reference["uid"] = f"between-{reference['uid']}"
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        self._cluster.put({**pod, "status": {"phase": "Pending"}})

    def _pod(self, pod: Document) -> None:
        node = pod["spec"].get("nodeName")
        if _phase(pod) in _DONE or "deletionTimestamp" in pod["metadata"]:
            return
        if "ownerReferences" not in pod["metadata"]:
            return  # somebody else's, which stays as it is
        if node is None:
            chosen = next(self._nodes_for(pod), None) if self.is_scheduling else None
            if chosen is not None:
                self._cluster.change(pod, spec={**pod["spec"], "nodeName": chosen})
                self._bound_at[pod["metadata"]["uid"]] = self._loop.time()
                self._is_starting = True
        elif not any(each["metadata"]["name"] == node for each in self._cluster.all(NODES)):
            self._cluster.terminate(pod)
        elif _phase(pod) == "Pending":
            since = self._bound_at.get(pod["metadata"]["uid"], 0.0)
            if self._loop.time() >= since + self.start_seconds:
                self.set_ready(pod, True)
            else:
                self._is_starting = True

    def set_ready(self, pod: Document, is_now: bool) -> None:
        """Whether it passes its probe from now on."""
        word = "True" if is_now else "False"
        ready = {"type": "Ready", "status": word, "lastTransitionTime": self._now}
        status = {"phase": "Running", "startTime": self._now, **pod.get("status", {})}
        status |= {"phase": "Running", "podIP": "127.0.0.1", "conditions": [ready]}
        self._cluster.change(pod, status=status)

    def _nodes_for(self, pod: Document) -> Iterator[str]:
        asked, held = requests(pod).accelerators.get(GPU, 0), Counter[str]()
        for each in self._cluster.all(PODS):
            node = each["spec"].get("nodeName")
            if node and _phase(each) not in _DONE:
                held[node] += requests(each).accelerators.get(GPU, 0)
        for node in self._cluster.all(NODES):
            free = int(node["status"]["allocatable"].get(GPU, 0)) - held[node["metadata"]["name"]]
            if free >= asked and may_take(node, pod["spec"]):
                yield node["metadata"]["name"]

    # Words

    def _owned(self, owner: Document, kind: str) -> list[Document]:
        uid = owner["metadata"]["uid"]
        resource = {"Pod": PODS, "Job": JOBS}[kind]
        return [
            each
            for each in self._cluster.all(resource)
            if owner_uid(each) in (uid, f"between-{uid}")
            and "deletionTimestamp" not in each["metadata"]
        ]

    def _true(self, word: str) -> Document:
        return {
            "type": word,
            "status": "True",
            "reason": word,
            "message": "so it is",
            "lastTransitionTime": self._now,
        }

    @property
    def _now(self) -> str:
        return timestamp(self._loop.utc_now())


def is_ready(pod: Document) -> bool:
    """Whether it passes its probe."""
    return bool(_condition(pod, "Ready")) and _phase(pod) == "Running"


def _phase(pod: Document) -> str:
    return str((pod.get("status") or {}).get("phase"))


def _condition(document: Document, word: str) -> bool:
    conditions = (document.get("status") or {}).get("conditions") or []
    return any(each["type"] == word and each["status"] == "True" for each in conditions)


def _has_ended(run: Document) -> bool:
    return any(_condition(run, word) for word in ("Complete", "Completed", "Failed"))


def _place(owner: Document, name: str) -> Document:
    metadata = owner["metadata"]
    reference = {"kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "name": name,
        "namespace": metadata["namespace"],
        "ownerReferences": [{**reference, "controller": True}],
    }


def _version(template: Document) -> str:
    return hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:8]
