"""A small Kueue: one queue over all H100s, first come, first served."""

from __future__ import annotations

from typing import Any

from poolwise.cluster.resources import JOB_SETS, JOBS, QUEUED, owner_uid
from poolwise.plan.conditions import timestamp
from poolwise.plan.kueue.words import CONTROLLER, GATE, QUEUE_LABEL
from poolwise.plan.names import KUEUE
from tests.fake_kube import Document
from tests.handlers.histories.cluster import VERSIONS, Cluster
from tests.handlers.histories.virtual_time import VirtualLoop
from tests.plan.kueue.given import H100, cluster_queue, flavor, local_queue

QUEUE, QUOTA, CHECK = "research", 16, "poolwise"
NAMESPACE = "a"


class Kueue:
    """Installed when it is asked to be, and then at work with each step."""

    def __init__(self, cluster: Cluster, loop: VirtualLoop) -> None:
        self._cluster = cluster
        self._loop = loop
        self._seen: Any = None

    def install(self, with_check: bool) -> None:
        """Its API, a queue, and as the case may be our check before it."""
        self._cluster.serve(KUEUE)
        more: dict[str, Any] = {}
        if with_check:
            more["admissionChecksStrategy"] = {"admissionChecks": [{"name": CHECK}]}
            check = {"kind": "AdmissionCheck", "metadata": {"name": CHECK}}
            spec = {"controllerName": CONTROLLER}
            self._cluster.put({"apiVersion": f"{KUEUE}/v1beta2", **check, "spec": spec})
        self._cluster.put(flavor("h100", H100))
        self._cluster.put(cluster_queue("all", {"h100": QUOTA}, **more))
        self._cluster.put(local_queue(QUEUE, namespace=NAMESPACE))

    def step(self) -> None:
        """Make a Workload of each job that is queued, and let in who fits."""
        if KUEUE not in self._cluster.optional or self._seen == self._cluster.changes:
            return
        self._seen = self._cluster.changes
        for job in [*self._cluster.all(JOBS), *self._cluster.all(JOB_SETS)]:
            if QUEUE_LABEL in (job["metadata"].get("labels") or {}) and _is_top(job):
                self._look_at(job)

    def _look_at(self, job: Document) -> None:
        workload = self._workload_of(job)
        if workload is None:
            self._cluster.put(_made_for(job))
            return
        told = workload["status"].get("conditions", [])
        known = {each["type"] for each in told if each["status"] == "True"}
        if "Finished" in known or job["metadata"]["labels"][QUEUE_LABEL] != QUEUE:
            return
        if "QuotaReserved" not in known:
            self._reserve(job, workload)
        elif "Admitted" not in known and self._is_checked(workload):
            self._tell(workload, ("QuotaReserved", "True", "QuotaReserved"), _ADMITTED)
        elif "Admitted" in known and job["spec"].get("suspend"):
            self._start(job)

    def _reserve(self, job: Document, workload: Document) -> None:
        if (job["metadata"].get("annotations") or {}).get(GATE):
            self._tell(workload, ("QuotaReserved", "False", "AdmissionGated"))
        elif self._used() + _size(job) > QUOTA:
            self._tell(workload, ("QuotaReserved", "False", "Pending"))
        else:
            self._tell(workload, ("QuotaReserved", "True", "QuotaReserved"))
            if self._has_check:
                live = self._cluster.live(workload)
                assert live is not None
                state = {"name": CHECK, "state": "Pending", "message": ""}
                self._cluster.change(live, status={**live["status"], "admissionChecks": [state]})

    @property
    def _has_check(self) -> bool:
        return any(key.kind == "AdmissionCheck" for key, *_ in self._cluster.objects)

    def _is_checked(self, workload: Document) -> bool:
        states = workload["status"].get("admissionChecks") or []
        return all(each["state"] == "Ready" for each in states)

    def _start(self, job: Document) -> None:
        self._cluster.change(job, spec={**job["spec"], "suspend": False})

    def evict(self, index: int) -> None:
        """Stop one that was let in; it queues again."""
        running = [each for each in self._cluster.all(QUEUED) if _is(each, "Admitted")]
        if not running:
            return
        workload = running[index % len(running)]
        evicted = ("Evicted", "True", "Preempted")
        self._tell(workload, ("QuotaReserved", "False", "Preempted"), evicted)
        for job in [*self._cluster.all(JOBS), *self._cluster.all(JOB_SETS)]:
            if job["metadata"]["uid"] == owner_uid(workload):
                self._cluster.change(job, spec={**job["spec"], "suspend": True})

    def _used(self) -> int:
        jobs = {
            each["metadata"]["uid"]: each
            for each in [*self._cluster.all(JOBS), *self._cluster.all(JOB_SETS)]
        }
        reserved = (each for each in self._cluster.all(QUEUED) if _is(each, "QuotaReserved"))
        return sum(_size(jobs[uid]) for each in reserved if (uid := owner_uid(each)) in jobs)

    def _workload_of(self, job: Document) -> Document | None:
        uid = job["metadata"]["uid"]
        return next((each for each in self._cluster.all(QUEUED) if owner_uid(each) == uid), None)

    def _tell(self, workload: Document, *told: tuple[str, str, str]) -> None:
        """Conditions with their status and reason."""
        since = timestamp(self._loop.utc_now())
        known = {each["type"]: each for each in workload["status"].get("conditions", [])}
        after = []
        for word, status, reason in told:
            before = known.get(word, {})
            moved = before.get("status") != status
            at = since if moved else before["lastTransitionTime"]
            one = {"type": word, "status": status, "reason": reason, "message": "Kueue says so"}
            after.append({**one, "lastTransitionTime": at})
        after_all = {**workload["status"], "conditions": after}
        if any(word == "Evicted" for word, *_ in told):
            after_all["admissionChecks"] = []
        self._cluster.change(workload, status=after_all)


_ADMITTED = ("Admitted", "True", "Admitted")


def _is(workload: Document, word: str) -> bool:
    told = workload["status"].get("conditions", [])
    return any(each["type"] == word and each["status"] == "True" for each in told)


def _is_top(job: Document) -> bool:
    return any(each["kind"] == "TrainingJob" for each in job["metadata"]["ownerReferences"])


def _size(job: Document) -> int:
    spec = job["spec"]
    if job["kind"] == "JobSet":
        spec = spec["replicatedJobs"][0]["template"]["spec"]
    limits = spec["template"]["spec"]["containers"][0]["resources"]["limits"]
    return int(spec["parallelism"]) * int(limits["nvidia.com/gpu"])


def _made_for(job: Document) -> Document:
    metadata, kind = job["metadata"], job["kind"]
    owner = {"kind": kind, "name": metadata["name"], "uid": metadata["uid"], "controller": True}
    name = f"{kind.lower()}-{metadata['name']}"
    made = {"name": name, "namespace": metadata["namespace"], "ownerReferences": [owner]}
    return {
        "apiVersion": f"{KUEUE}/{VERSIONS[KUEUE]}",
        "kind": "Workload",
        "metadata": made,
        "spec": {"podSets": []},
        "status": {"conditions": []},
    }
