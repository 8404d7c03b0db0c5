"""When pods were on nodes: from the earliest start to the latest end, and whether any still is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from poolwise.plan.ledger.capacity_pods import FINISHED_PHASES
from poolwise.plan.observed import Object
from poolwise.plan.reading import mapping, moment_of, true_condition


@dataclass(frozen=True, slots=True)
class Span:
    """Time during which a workload holds nodes. All of a gang's nodes are held while one is."""

    is_active: bool = False
    """Whether a pod is bound to a node and has not ended."""
    since: datetime | None = None
    """When the first of them was bound; once none is active, of those that have ended."""
    newest: datetime | None = None
    """When the last of those that are active was bound: a gang begins with it, and begins again
    where it takes another's place."""
    ended: datetime | None = None
    """When the last container ended, while none is active."""


def span(pods: Sequence[Object]) -> Span:
    """Of the pods that still exist."""
    bound = [pod for pod in pods if (pod.get("spec") or {}).get("nodeName")]
    active = [pod for pod in bound if mapping(pod, "status").get("phase") not in FINISHED_PHASES]
    starts = [moment for pod in active or bound if (moment := _start(pod)) is not None]
    ends = [] if active else [moment for pod in bound for moment in _ends(pod)]
    return Span(
        is_active=bool(active),
        since=min(starts, default=None),
        newest=max(starts, default=None) if active else None,
        ended=max(ends, default=None),
    )


def _start(pod: Object) -> datetime | None:
    """When the scheduler gave it a node, which the node's agent sees a moment later."""
    status = mapping(pod, "status")
    return true_since(status, "PodScheduled") or moment_of(status.get("startTime"))


def true_since(status: Mapping[str, Any], type_: str) -> datetime | None:
    """When a condition became True; None while it is not, or does not say."""
    return moment_of(true_condition(status, type_).get("lastTransitionTime"))


def _ends(pod: Object) -> Iterator[datetime]:
    for container in mapping(pod, "status").get("containerStatuses") or ():
        ended = (container.get("state") or {}).get("terminated") or {}
        moment = moment_of(ended.get("finishedAt"))
        if moment is not None:
            yield moment
