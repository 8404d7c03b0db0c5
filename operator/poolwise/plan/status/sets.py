"""Pods of what is neither a Job nor a Deployment: counted themselves, since a JobSet, a TrainJob
and a LeaderWorkerSet count Jobs and groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poolwise.plan.conditions import Type
from poolwise.plan.ledger.capacity_pods import FINISHED_PHASES
from poolwise.plan.observed import Object
from poolwise.plan.reading import is_true, mapping


@dataclass(frozen=True, slots=True)
class Counts:
    """Pods by what has become of them."""

    ready: int
    existing: int
    """Ready or not, and not ended."""
    succeeded: int
    failed: int


def desired_pods(child: Object) -> int:
    """How many pods the child is to run."""
    spec = child.get("spec") or {}
    match child.get("kind"):
        case "JobSet":
            return sum(_pods_of(each) for each in spec.get("replicatedJobs") or ())
        case "TrainJob":
            return int((spec.get("trainer") or {}).get("numNodes") or 1)
        case "LeaderWorkerSet":
            return int(spec.get("replicas") or 0) * group_size(child)
    return 0


def group_size(child: Object) -> int:
    """Pods of each replica of a LeaderWorkerSet."""
    template = (child.get("spec") or {}).get("leaderWorkerTemplate") or {}
    return int(template.get("size") or 1)


def counts(pods: Sequence[Object]) -> Counts:
    """All pods of a child."""
    phases = [str(mapping(pod, "status").get("phase")) for pod in pods]
    return Counts(
        ready=sum(map(_is_ready, pods)),
        existing=sum(phase not in FINISHED_PHASES for phase in phases),
        succeeded=phases.count("Succeeded"),
        failed=phases.count("Failed"),
    )


def start_time(pods: Sequence[Object]) -> str | None:
    """When the first pod of those that there are was taken up by its node."""
    times = (mapping(pod, "status").get("startTime") for pod in pods)
    return min(filter(None, times), default=None)


def _pods_of(replicated_job: Mapping[str, Any]) -> int:
    job = (replicated_job.get("template") or {}).get("spec") or {}
    return int(replicated_job.get("replicas", 1)) * int(job.get("completions") or 1)


def _is_ready(pod: Object) -> bool:
    is_leaving = "deletionTimestamp" in pod["metadata"]
    return not is_leaving and is_true(mapping(pod, "status"), Type.READY)
