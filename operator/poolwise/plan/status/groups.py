"""Updates of replicas that span nodes, as their LeaderWorkerSet tells of them.

It counts groups: all, ready ones, and those of the newest template. It replaces them from the last
to the first, down to its ``partition``, by which people hold an update back. It knows no deadline:
a start that hangs is judged here, by the one that a Deployment would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from poolwise.plan.conditions import Reason, timestamp
from poolwise.plan.observed import Object
from poolwise.plan.reading import mapping
from poolwise.plan.status.problems import Problem
from poolwise.plan.status.span import true_since
from poolwise.plan.wording import duration


def outdated(child: Object) -> int:
    """Groups, or pods of a Deployment, that do not have the newest template yet."""
    status = mapping(child, "status")
    return max((status.get("replicas") or 0) - (status.get("updatedReplicas") or 0), 0)


def partition(child: Object) -> int:
    """Groups that somebody holds back, from the first on."""
    strategy = (child.get("spec") or {}).get("rolloutStrategy") or {}
    return int((strategy.get("rollingUpdateConfiguration") or {}).get("partition") or 0)


def hung(
    child: Object, pods: Sequence[Object], limit_seconds: float, now: datetime
) -> Problem | None:
    """Of an update, or a start from nothing, that for so long has made no pod ready."""
    moments = [_began(child), *map(_ready_since, pods)]
    since = max((each for each in moments if each is not None), default=None)
    if moments[0] is None or since is None or now - since < timedelta(seconds=limit_seconds):
        return None
    name, limit = child["metadata"]["name"], duration(limit_seconds)
    message = f"LeaderWorkerSet {name}: no pod has become ready since {timestamp(since)}"
    told = f"{message}; a replica may take {limit}"
    return Problem(Reason.PROGRESS_DEADLINE_EXCEEDED, told)


def _began(child: Object) -> datetime | None:
    """Since when it replaces groups, or has started without a ready one; None: it does neither."""
    if outdated(child) and outdated(child) <= partition(child):
        return None
    update = true_since(mapping(child, "status"), "UpdateInProgress")
    if update is None and not mapping(child, "status").get("readyReplicas"):
        return true_since(mapping(child, "status"), "Progressing")
    return update


def _ready_since(pod: Object) -> datetime | None:
    return true_since(mapping(pod, "status"), "Ready")
