"""Which changes of a status are decisions, worth an Event each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from poolwise.plan.conditions import Reason
from poolwise.plan.observed import Object
from poolwise.plan.reading import mapping, number


@dataclass(frozen=True, slots=True)
class Announcement:
    """One decision, for an Event."""

    reason: str
    note: str
    is_warning: bool


_TOLD = {
    "Accepted": {"False": True},
    "Placed": {"True": False, "False": True},
    "WithinBudget": {"False": True},
    "MetricsAvailable": {"False": True},
    "SLOMet": {"False": True},
    "ScalingActive": {"False": True},
    "ScalesToZero": {"True": False, "False": True},
    "AsPlanned": {"False": True},
    "Suspended": {"True": False},
    "Complete": {"True": False},
    "Failed": {"True": True},
}
"""By type and status of a condition: whether the Event is a warning. Others are no decisions."""
_QUIET = (Reason.NO_METRICS_PORT,)
"""Reasons that ask for nothing: told, and no warning."""
_CAUSES: Mapping[str, str] = {Reason.SLO_UNREACHABLE: Reason.NO_FEASIBLE_POOL}
"""What is told with another reason alone: no pool is feasible, for a target that none keeps."""


def announcements(before: Object | None, after: Object) -> Iterator[Announcement]:
    """Decisions that ``after`` tells and ``before`` did not.

    They are read off the status, so that a restarted operator does not tell again. A message that
    only counts differently is no new decision; another pool is.
    """
    known = {_decision(each, before or {}) for each in (before or {}).get("conditions") or []}
    for condition in _once_each(after.get("conditions") or []):
        if _decision(condition, after) not in known:
            is_warning = _TOLD[condition["type"]][condition["status"]]
            is_warning = is_warning and condition["reason"] not in _QUIET
            yield Announcement(condition["reason"], condition["message"], is_warning)
    yield from _scaled(mapping(before or {}, "scaling"), mapping(after, "scaling"))


def _once_each(conditions: Iterable[Object]) -> Iterator[Object]:
    """Decisions among conditions, in their order; of several for one cause the first, which tells
    it (metrics that break), and none that follows from it (no scaling)."""
    told = set[str]()
    for condition in conditions:
        is_decision = condition["status"] in _TOLD.get(condition["type"], {})
        if is_decision and told.isdisjoint({condition["reason"], _CAUSES.get(condition["reason"])}):
            told.add(condition["reason"])
            yield condition


def _scaled(before: Object, after: Object) -> Iterator[Announcement]:
    """Another number of replicas, where Poolwise is who sets it."""
    then, now = number(before, "desiredReplicas"), number(after, "desiredReplicas")
    if now is None or after.get("mode") != "Direct":
        return
    if then == now:
        return
    known = before.get("decisions") or ()
    for made in reversed([each for each in after.get("decisions") or () if each not in known]):
        reason = "ScaledUp" if made["to"] > made["from"] else "ScaledDown"
        note = f"from {made['from']} to {made['to']} replicas: {made['reason']}"
        yield Announcement(reason, note, False)


def _decision(condition: Object, status: Object) -> tuple[Any, ...]:
    pool = (status.get("plan") or {}).get("pool") if condition["type"] == "Placed" else None
    return condition["type"], condition["status"], condition["reason"], pool
