"""Workloads whose children the API server did not take the last time that they were written.

They are planned again with each attempt, and hold nothing in between: what depends on a placement
alone would else come and go with every attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from poolwise.plan.children.metadata import key_of
from poolwise.plan.conditions import Reason, Type
from poolwise.plan.decision import Key, Outcome, Plan
from poolwise.plan.observed import Object
from poolwise.plan.reading import objects

REASONS = frozenset(
    {
        Reason.NAME_CONFLICT,
        Reason.NAME_IN_DELETION,
        Reason.FORBIDDEN,
        Reason.CHILD_REFUSED,
        Reason.INVALID_SPEC,
        Reason.INTERNAL_ERROR,
    }
)
"""Why a placement that was decided was not carried out."""


def was_refused(workload: Object) -> bool:
    """By its status."""
    return any(
        each["type"] in (Type.PLACED, Type.ACCEPTED) and each["reason"] in REASONS
        for each in objects(workload, "status", "conditions")
    )


def not_refused(outcomes: Mapping[Key, Outcome], workloads: Iterable[Object]) -> Iterator[Outcome]:
    """All but new placements of those that were refused the last time."""
    new = {key for key, each in outcomes.items() if isinstance(each, Plan) and each.is_new}
    refused = {key_of(each) for each in workloads if was_refused(each)} if new else set()
    return (outcome for key, outcome in outcomes.items() if key not in new & refused)
