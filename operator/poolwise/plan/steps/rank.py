"""Rank 0 of a run: which pod it is, and which life of it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from poolwise.plan.children.environment import INDEX
from poolwise.plan.observed import Object
from poolwise.plan.reading import moment_of

_NEVER = datetime.min.replace(tzinfo=UTC)


def rank_zero(pods: Iterable[Object]) -> Object | None:
    """The newest pod of index 0 that runs, if any."""
    running = [pod for pod in pods if _is_zero(pod) and _runs(pod)]
    return max(running, key=_created, default=None)


def life(pod: Object) -> str:
    """Names this life of the pod's processes: another pod, or a restart, is another."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    restarts = sum(each.get("restartCount") or 0 for each in statuses)
    return f"{pod['metadata']['uid']}/{restarts}"


def _is_zero(pod: Object) -> bool:
    metadata = pod["metadata"]
    told = {**(metadata.get("annotations") or {}), **(metadata.get("labels") or {})}
    return told.get(INDEX) == "0"


def _runs(pod: Object) -> bool:
    is_leaving = "deletionTimestamp" in pod["metadata"]
    return not is_leaving and (pod.get("status") or {}).get("phase") == "Running"


def _created(pod: Object) -> tuple[datetime, str]:
    metadata = pod["metadata"]
    return moment_of(metadata.get("creationTimestamp")) or _NEVER, str(metadata.get("name"))
