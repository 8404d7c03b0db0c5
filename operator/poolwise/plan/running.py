"""Which workloads run already, where, and which have ended: read off their children.

The record on the child is the only memory of what was decided. A child counts as a workload's own
by the uid of its controller, never by its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Key, Kind, PlacementRecord
from poolwise.plan.names import PAUSED, PLACEMENT
from poolwise.plan.observed import Object
from poolwise.plan.placement_record import parse

CHILD_KINDS = {Kind.TRAINING_JOB: "Job", Kind.INFERENCE_SERVICE: "Deployment"}
"""The child that carries the record."""
_ENDS = {"Complete": Reason.COMPLETED, "Failed": Reason.FAILED}


@dataclass(frozen=True, slots=True)
class State:
    """What has become of one workload so far."""

    record: PlacementRecord | None
    """Where it runs; None where it does not, or where nobody can read the record any more."""
    end: Reason | None
    """Completed or Failed; None while it may still run."""
    is_paused: bool
    is_being_deleted: bool


class Children:
    """Children by the uid of their controller."""

    def __init__(self, children: Iterable[Object]) -> None:
        self._by_owner: dict[tuple[str, str], Object] = {}
        for child in children:
            owner = _controller_uid(child)
            if owner:
                self._by_owner[owner, str(child.get("kind"))] = child

    def state_of(self, resource: Object, key: Key, uid: str) -> State:
        """The state of a workload."""
        metadata = _mapping(resource.get("metadata"))
        child = self._by_owner.get((uid, CHILD_KINDS[key.kind])) if uid else None
        return State(
            record=_record(child, key) if child else None,
            end=_end(child, resource) if key.kind is Kind.TRAINING_JOB else None,
            is_paused=_mapping(metadata.get("annotations")).get(PAUSED) == "true",
            is_being_deleted=bool(metadata.get("deletionTimestamp")),
        )


def _record(child: Object, key: Key) -> PlacementRecord | None:
    metadata = _mapping(child.get("metadata"))
    text = _mapping(metadata.get("annotations")).get(PLACEMENT)
    return parse(text, key) if isinstance(text, str) else None


def _end(child: Object | None, resource: Object) -> Reason | None:
    """How a job ended: its own word, or the workload's status once the job was cleaned up."""
    for document in (child, resource):
        conditions = _mapping((document or {}).get("status")).get("conditions")
        for each in conditions if isinstance(conditions, list) else ():
            if isinstance(each, Mapping) and each.get("status") == "True":
                end = _ENDS.get(str(each.get("type")))
                if end is not None:
                    return end
    return None


def _controller_uid(child: Object) -> str | None:
    owners = _mapping(child.get("metadata")).get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, Mapping) and owner.get("controller"):
            return str(owner.get("uid"))
    return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
