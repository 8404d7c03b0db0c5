"""What Kueue says of one job in a queue, as its Workload and the job itself tell it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from poolwise.plan.conditions import Reason
from poolwise.plan.kueue.record import Admission
from poolwise.plan.kueue.words import GATE, PLANNER, QUEUE_LABEL, Mirror
from poolwise.plan.observed import Object
from poolwise.plan.pool import Condition
from poolwise.plan.reading import mapping, moment_of, objects

_STATUS = {"True": True, "False": False}
_WHY = (Mirror.EVICTED, Mirror.QUOTA_RESERVED, Mirror.ADMITTED)
"""What keeps a job from running, the first that does."""


def is_queued(child: Object) -> bool:
    """Whether Kueue decides when this child runs."""
    return bool(mapping(child, "metadata", "labels").get(QUEUE_LABEL))


def is_held(child: Object) -> bool:
    """Whether a child is in a queue and does not run."""
    return is_queued(child) and mapping(child, "spec").get("suspend") is True


def admission(child: Object, workload: Object | None) -> Admission:
    """Of a child that is queued; ``workload`` is Kueue's, once there is one."""
    runs = not is_held(child)
    metadata = mapping(child, "metadata")
    gates = str(mapping(metadata, "annotations").get(GATE, "")).split(",")
    seen = Admission(
        is_reserved=runs,
        reason=Reason.QUEUED,
        message=_unseen(metadata),
        is_gated=PLANNER in gates,
        created=moment_of(metadata.get("creationTimestamp")),
    )
    if workload is None:
        return seen
    shown = tuple(_mirrored(objects(workload, "status", "conditions")))
    by_type = {each.type: each for each in shown}
    reserved = by_type.get(Mirror.QUOTA_RESERVED)
    is_reserved = runs or (reserved is not None and reserved.status is True)
    reason, message = _why(by_type)
    return replace(seen, is_reserved=is_reserved, reason=reason, message=message, conditions=shown)


def _why(conditions: Mapping[str, Condition]) -> tuple[str, str]:
    """The condition that tells most about why it does not run."""
    for type_ in _WHY:
        found = conditions.get(type_)
        if found is not None and found.status is (type_ is Mirror.EVICTED):
            return found.reason or Reason.QUEUED, found.message
    return Reason.QUEUED, "Kueue has not looked at it yet"


def _mirrored(conditions: Iterable[Mapping[str, Any]]) -> Iterable[Condition]:
    """Those that are repeated; an eviction that is over is history."""
    for each in conditions:
        type_, status = each.get("type"), _STATUS.get(str(each.get("status")))
        if type_ in frozenset(Mirror) and not (type_ == Mirror.EVICTED and status is not True):
            told = str(each.get("message", ""))
            yield Condition(str(type_), status, str(each.get("reason", "")), told)


def _unseen(metadata: Mapping[str, Any]) -> str:
    return (
        f"Kueue has made no Workload for {metadata.get('name')} yet; if this lasts, its "
        f"managedJobsNamespaceSelector leaves out namespace {metadata.get('namespace')}, or its "
        "integration of this kind of job is off"
    )
