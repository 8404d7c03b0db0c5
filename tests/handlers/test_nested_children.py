"""Pods and refusals below what a child made in turn: a TrainJob's JobSet, a JobSet's Job, a
LeaderWorkerSet's StatefulSets."""

from __future__ import annotations

import pytest

from poolwise.cluster.cache import Cache
from poolwise.cluster.resources import (
    FAILED_CREATIONS,
    JOB_SETS,
    JOBS,
    LEADER_WORKER_SETS,
    PODS,
    TRAIN_JOBS,
    TRAINING_JOBS,
    Resource,
)
from poolwise.handlers.routing import targets_of
from poolwise.handlers.seen import is_of_any, seen_of
from poolwise.plan.decision import Key, Kind
from poolwise.plan.observed import Object

OURS = {
    "app.kubernetes.io/managed-by": "poolwise",
    "poolwise.dev/owner-kind": "TrainingJob",
    "poolwise.dev/owner": "run",
}


def made(resource: Resource, name: str, owner: Object | None, **more: object) -> Object:
    """An object of a namespace with a controller."""
    references = [
        {
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
        for owner in ([owner] if owner else [])
    ]
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": name,
            "namespace": "research",
            "uid": f"{resource.kind}-{name}",
            "resourceVersion": "1",
            "labels": OURS,
            "ownerReferences": references,
        },
        **more,
    }


@pytest.fixture
def cache() -> Cache:
    """A run that Trainer started: its JobSet, that one's Job, and a pod of it."""
    cache = Cache()
    run = made(TRAINING_JOBS, "run", None)
    train_job = made(TRAIN_JOBS, "run", run)
    job_set = made(JOB_SETS, "run", train_job)
    job = made(JOBS, "run-node-0", job_set, spec={"parallelism": 2}, status={"active": 1})
    for resource, document in (
        (TRAINING_JOBS, run),
        (TRAIN_JOBS, train_job),
        (JOB_SETS, job_set),
        (JOBS, job),
        (PODS, made(PODS, "run-node-0-0", job)),
        (PODS, made(PODS, "stray", made(JOBS, "another", None))),
        (FAILED_CREATIONS, refusal(job)),
    ):
        cache.put(resource, document)
    return cache


def refusal(job: Object) -> Object:
    about = {"kind": "Job", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
    event = made(FAILED_CREATIONS, "e", None, regarding=about, reason="FailedCreate", note="quota")
    return {**event, "metadata": {**event["metadata"], "creationTimestamp": "2026-11-22T08:00:00Z"}}


def test_pods_of_what_a_child_made_are_seen(cache: Cache) -> None:
    run = cache.get(TRAINING_JOBS, "research", "run")
    assert run is not None
    children, pods = seen_of(cache, run)
    assert [pod["metadata"]["name"] for pod in pods] == ["run-node-0-0"]
    assert [child["kind"] for child in children] == ["TrainJob", "Event"]


def test_a_refusal_below_is_the_runs(cache: Cache) -> None:
    (event,) = cache.stores[FAILED_CREATIONS]
    assert list(targets_of(cache, FAILED_CREATIONS, event)) == [
        Key(Kind.TRAINING_JOB, "research", "run")
    ]


@pytest.mark.parametrize("resource", [JOB_SETS, JOBS])
def test_a_change_of_what_a_child_made_is_the_runs(cache: Cache, resource: Resource) -> None:
    (made_below,) = cache.stores[resource]
    assert list(targets_of(cache, resource, made_below)) == [
        Key(Kind.TRAINING_JOB, "research", "run")
    ]


@pytest.mark.parametrize(
    ("owner", "is_ours"),
    [("run-replica", True), ("run-replica-0", True), ("run-replica2-0", False), ("run", False)],
)
def test_pods_of_groups_name_stateful_sets(owner: str, is_ours: bool) -> None:
    cache = Cache()
    run = made(TRAINING_JOBS, "run", None)
    cache.put(TRAINING_JOBS, run)
    cache.put(LEADER_WORKER_SETS, made(LEADER_WORKER_SETS, "run-replica", run))
    sets = Resource("apps", "v1", "StatefulSet", "statefulsets")
    cache.put(PODS, made(PODS, "p", made(sets, owner, None)))
    assert bool(seen_of(cache, run)[1]) is is_ours


@pytest.mark.parametrize(
    ("status", "kinds"),
    [
        ({"active": 1}, ["TrainJob", "Event"]),
        ({"active": 2}, ["TrainJob"]),
        ({"active": 1, "succeeded": 1}, ["TrainJob"]),
    ],
    ids=["lacks one", "all run", "one has ended"],
)
def test_a_refusal_counts_while_a_job_lacks_pods(
    cache: Cache, status: Object, kinds: list[str]
) -> None:
    run, job_set = cache.get(TRAINING_JOBS, "research", "run"), made(JOB_SETS, "run", None)
    assert run is not None
    job = made(JOBS, "run-node-0", job_set, spec={"parallelism": 2}, status=status)
    cache.put(JOBS, job)
    assert [child["kind"] for child in seen_of(cache, run).children] == kinds


def test_a_pod_that_names_a_job_is_of_who_controls_it() -> None:
    """Anybody may be named as an owner; a controller there is but one."""
    job = made(JOBS, "run", None)
    pod = made(PODS, "run-0", job)
    assert is_of_any(pod, [job])
    (reference,) = pod["metadata"]["ownerReferences"]
    reference["controller"] = False
    assert not is_of_any(pod, [job])
