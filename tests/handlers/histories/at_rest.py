"""What holds once nothing happens any more: of what the process knows, and of what it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from poolwise.cluster.cache import Cache
from poolwise.cluster.resources import (
    ACCELERATOR_POOLS,
    INFERENCE_SERVICES,
    NODES,
    PODS,
    RUNNERS,
    TRAINING_JOBS,
    WATCHED,
    owner_uid,
)
from poolwise.cluster.store import name_of
from poolwise.plan.decision import Key
from poolwise.plan.kueue.words import GATE
from poolwise.plan.observed import Object
from poolwise.plan.reading import mapping
from poolwise.plan.status.workload import is_paused
from tests.fake_kube import Document, _matches
from tests.handlers.histories.controllers import is_ready
from tests.handlers.histories.invariants import ENDED, is_of, is_true
from tests.handlers.histories.world import World

_OF_LOOKS = ("MetricsAvailable", "SLOMet", "ScalingActive", "AsPlanned")
"""Conditions that go by what was seen of replicas over minutes, which a new process sees anew."""

Words = Mapping[str, Mapping[str, tuple[str, str]]]


def at_rest(world: World) -> list[str]:
    """What is wrong once all should have been seen and done."""
    found = [*left_behind(world), *_misknown(world)]
    for workload in world.workloads():
        if not is_paused(workload):
            name = f"{workload['kind']} {workload['metadata']['name']}"
            found += [f"{name}: {problem}" for problem in _held_up(world, workload)]
    return found


def words(world: World) -> Words:
    """Status and reason of each condition of each workload, by workload, its pool and what an hour
    of it costs."""
    told = {}
    for workload in world.workloads():
        status = workload.get("status") or {}
        name = f"{workload['kind']} {workload['metadata']['name']}"
        told[name] = {
            each["type"]: (each["status"], each["reason"])
            for each in status.get("conditions", [])
            if each["type"] not in _OF_LOOKS
        } | {
            "plan": ("", str(mapping(status, "plan").get("pool"))),
            "per hour": ("", str(mapping(status, "observed", "accrued").get("perHour"))),
        }
    return told


def differences(before: Words, after: Words) -> list[str]:
    """Where a new process tells something else of what has not changed."""
    return [
        f"{name}: {word} was {before[name].get(word)}, by a new process {after[name].get(word)}"
        for name in before.keys() & after.keys()
        for word in before[name].keys() | after[name].keys()
        if before[name].get(word) != after[name].get(word)
    ]


def _misknown(world: World) -> Iterator[str]:
    """Where the cache is not the cluster."""
    cache = world.process.cache
    observed = cache.observed()
    views = {
        NODES: observed.nodes,
        PODS: observed.pods,
        TRAINING_JOBS: observed.training_jobs,
        INFERENCE_SERVICES: observed.inference_services,
    }
    for resource in WATCHED:
        if resource != ACCELERATOR_POOLS:
            there = {_who(e) for e in world.cluster.all(resource) if _matches(resource, e)}
            known = {_who(each) for each in views.get(resource, cache.stores[resource])}
            if there != known:
                yield f"{resource}: knows {known - there}, and not {there - known}"
    yield from (f"{what} is still expected" for what in _expected(cache, world))


def _who(document: Object) -> tuple[object, ...]:
    return *name_of(document), document["metadata"]["uid"]


def _expected(cache: Cache, world: World) -> Iterable[object]:
    is_any_paused = any(map(is_paused, world.workloads()))
    return () if is_any_paused else cache._expected


def _held_up(world: World, workload: Document) -> Iterator[str]:
    """Where it does not go on, though it could."""
    status = workload.get("status") or {}
    told = {each["type"]: each for each in status.get("conditions", [])}
    runners = [
        each
        for resource in RUNNERS
        for each in world.cluster.all(resource)
        if owner_uid(each) == workload["metadata"]["uid"]
        and not any(is_true(each, word) for word in ENDED)
    ]
    pods = [pod for pod in world.pods() if is_of(pod, workload)]
    placed = told.get("Placed", {}).get("status") == "True"
    is_all_there = bool(pods) and all(map(is_ready, pods)) and _wanted(runners) == len(pods)
    ready = told.get("PodsReady", {})
    is_told = ready.get("status") == "True" or ready.get("reason") == "Updating"
    if placed and is_all_there and not is_told:
        yield f"all {len(pods)} pods are ready: PodsReady is {ready.get('reason')}"
    for runner in runners:
        is_gated = (runner["metadata"].get("annotations") or {}).get(GATE)
        if is_gated and placed:
            yield f"is placed, and {runner['kind']} is held back by {is_gated}"


def _wanted(runners: Iterable[Document]) -> int:
    """Pods that there should be."""
    return sum(map(_pods, runners))


def _pods(runner: Document) -> int:
    spec = runner["spec"]
    match runner["kind"]:
        case "Job":
            return int(spec["parallelism"])
        case "JobSet":
            return int(spec["replicatedJobs"][0]["template"]["spec"]["parallelism"])
        case "LeaderWorkerSet":
            return int(spec["replicas"]) * int(spec["leaderWorkerTemplate"]["size"])
        case "Deployment":
            return int(spec["replicas"])
        case _:
            return 0


def left_behind(world: World) -> list[str]:
    """What the process still knows of workloads that are gone."""
    names = {
        (each["kind"], each["metadata"]["namespace"], each["metadata"]["name"])
        for each in world.workloads()
    }
    cache, engine = world.process.cache, world.process.engine
    places: dict[str, Iterable[Key]] = {
        "scaling": cache.scaling,
        "overflow": cache.overflow,
        "least_replicas": cache.least_replicas,
        "scaler": engine.scaler._known,
        "measurer": engine.measurer._known,
        "refusals": engine.planner._refusals,
        "fresh": engine.planner._fresh,
        "expected": engine.planner._expected,
    }
    return [
        f"{place} knows {key}, which is gone"
        for place, known in places.items()
        for key in known
        if (str(key.kind), key.namespace, key.name) not in names
    ]
