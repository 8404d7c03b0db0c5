"""Which changes of a status are decisions, worth an Event each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from poolwise.plan.observed import Object


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
    "Suspended": {"True": False},
    "Complete": {"True": False},
    "Failed": {"True": True},
}
"""By type and status of a condition: whether the Event is a warning. Others are no decisions."""


def announcements(before: Object | None, after: Object) -> Iterator[Announcement]:
    """Decisions that ``after`` tells and ``before`` did not.

    They are read off the status, so that a restarted operator does not tell again. A message that
    only counts differently is no new decision; another pool is.
    """
    known = {_decision(each, before or {}) for each in (before or {}).get("conditions") or []}
    for condition in after.get("conditions") or []:
        warnings = _TOLD.get(condition["type"], {})
        if condition["status"] in warnings and _decision(condition, after) not in known:
            yield Announcement(
                condition["reason"], condition["message"], warnings[condition["status"]]
            )


def _decision(condition: Object, status: Object) -> tuple[Any, ...]:
    pool = (status.get("plan") or {}).get("pool") if condition["type"] == "Placed" else None
    return condition["type"], condition["status"], condition["reason"], pool
