"""Replicas of a service, as their pods show them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from poolwise.plan.children.metadata import LEADER, WORKER_INDEX
from poolwise.plan.children.resizing import RUNNERS
from poolwise.plan.ledger.capacity_pods import FINISHED_PHASES
from poolwise.plan.names import overflow_name
from poolwise.plan.observed import Object
from poolwise.plan.reading import condition_of, mapping, moment_of, true_condition
from poolwise.plan.scaling.seen import Phase, ReplicaSeen

LEAST_START_SECONDS = 1.0
MOST_AHEAD_SECONDS = 10.0
"""By which clocks of machines that are kept in time may differ."""
LATE = 2.0
"""Times as long as a start may take: Kubernetes or Poolwise would have given it up before."""


def serving_pods(pods: Iterable[Object]) -> Iterator[Object]:
    """One pod for each replica: of a group its leader, and none that has ended."""
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        has_ended = mapping(pod, "status").get("phase") in FINISHED_PHASES
        if not has_ended and labels.get(WORKER_INDEX, LEADER) == LEADER:
            yield pod


def pool_by_maker(service: str, pools: Iterable[str]) -> dict[str, str]:
    """Pools by the name of the Deployment that runs replicas of a service beyond its first."""
    return {overflow_name(service, pool): pool for pool in pools}


def pool_of(pod: Object, by_maker: Mapping[str, str], first: str) -> str:
    """The pool that a replica was made for: by its Deployment, whose name its ReplicaSet bears."""
    for owner in pod["metadata"].get("ownerReferences") or []:
        pool = by_maker.get(str(owner.get("name")).rpartition("-")[0])
        if owner.get("controller") and pool is not None:
            return pool
    return first


def replica_seen(pod: Object, pool: str) -> ReplicaSeen:
    """What one pod shows."""
    metadata = pod["metadata"]
    requested = _seconds(metadata.get("creationTimestamp")) or 0.0
    ready = ready_at(pod)
    phase = Phase.STARTING if ready is None else Phase.READY
    if "deletionTimestamp" in metadata:
        phase = Phase.DRAINING
    return ReplicaSeen(metadata["name"], pool, phase, requested, ready)


def by_our_clock(replica: ReplicaSeen, now_seconds: float) -> ReplicaSeen:
    """A pod's times are of other machines' clocks. What is ahead of ours tells nothing: who serves
    has done so for long, as far as anybody can tell, and who starts has only just begun to."""
    latest = now_seconds + MOST_AHEAD_SECONDS
    ready = replica.ready_at_seconds
    if max(replica.requested_at_seconds, ready or 0.0) <= latest:
        return replica
    if replica.phase is Phase.STARTING:
        return replace(replica, requested_at_seconds=now_seconds)
    requested = replica.requested_at_seconds if replica.requested_at_seconds <= latest else 0.0
    return replace(replica, requested_at_seconds=requested, ready_at_seconds=ready and 0.0)


def asked_for(
    children: Iterable[Object], by_maker: Mapping[str, str], first: str
) -> dict[str, int]:
    """Replicas by pool, as what runs them is told now, by whomever."""
    found: dict[str, int] = {}
    for child in children:
        if child.get("kind") in RUNNERS:
            pool = by_maker.get(str(child["metadata"]["name"]), first)
            found[pool] = found.get(pool, 0) + int((child.get("spec") or {}).get("replicas") or 0)
    return found


def without_surge(
    replicas: Iterable[ReplicaSeen], asked: Mapping[str, int]
) -> Iterator[ReplicaSeen]:
    """Those that an update has beside the number that is asked for, as about to leave: each takes
    another one's place, and is no replica more.

    Who is ready counts before who starts, and of those the newest, since the oldest go.
    """
    ordered = sorted(
        replicas, key=lambda each: (each.phase is not Phase.READY, -each.requested_at_seconds)
    )
    counted: dict[str, int] = {}
    for each in ordered:
        if each.phase is not Phase.DRAINING:
            counted[each.pool] = counted.get(each.pool, 0) + 1
            if counted[each.pool] > asked.get(each.pool, counted[each.pool]):
                each = replace(each, phase=Phase.DRAINING)
        yield each


def ready_at(pod: Object) -> float | None:
    """Since when it is ready, as Unix time; None: it is not."""
    ready = true_condition(mapping(pod, "status"), "Ready")
    return (_seconds(ready.get("lastTransitionTime")) or 0.0) if ready else None


def not_ready_since(pod: Object) -> float:
    """Unix time from which a pod that is not ready has not been: since it was made, or lost it."""
    made = _seconds(pod["metadata"].get("creationTimestamp")) or 0.0
    ready = condition_of(mapping(pod, "status"), "Ready")
    lost = _seconds(ready.get("lastTransitionTime")) if ready.get("status") == "False" else None
    return max(made, lost or 0.0)


def start_seconds(
    pods: Iterable[Object], budget_seconds: float, known_seconds: float | None = None
) -> float:
    """What a start takes: as those that are ready show it, else as it was known before, else half
    of what it may take."""
    told = measured_start_seconds(pods, budget_seconds)
    if told is not None:
        return told
    usual = budget_seconds / 2.0 if known_seconds is None else known_seconds
    return max(min(usual, budget_seconds), LEAST_START_SECONDS)


def measured_start_seconds(pods: Iterable[Object], budget_seconds: float) -> float | None:
    """The median of those that are ready; None where none shows it.

    Who became ready long after a start may take lost its readiness since, and has it again.
    """
    most = max(budget_seconds, LEAST_START_SECONDS)
    told = [
        seconds
        for replica in (replica_seen(pod, "") for pod in pods if not _restarts(pod))
        if replica.ready_at_seconds
        and replica.requested_at_seconds
        and (seconds := replica.ready_at_seconds - replica.requested_at_seconds) <= LATE * most
    ]
    if not told:
        return None
    return min(max(statistics.median(told), LEAST_START_SECONDS), most)


def _restarts(pod: Object) -> int:
    """What restarted became ready again later than its start took."""
    told = (pod.get("status") or {}).get("containerStatuses") or []
    return sum(each.get("restartCount") or 0 for each in told)


def _seconds(text: Any) -> float | None:
    moment: datetime | None = moment_of(text)
    return moment.timestamp() if moment else None
