"""Which workloads run already, where, and which have ended: read off their children.

The record on the child is the only memory of what was decided. A child counts as a workload's own
by the uid of its controller, never by its name.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Key, Kind, PlacementRecord
from poolwise.plan.names import OVERFLOW, PAUSED, PLACEMENT
from poolwise.plan.observed import Object
from poolwise.plan.reading import controller_uid, mapping, moment_of, texts, true_condition
from poolwise.plan.records.placement_record import parse
from poolwise.plan.records.runtimes import Runtime

CHILD_KINDS = {
    Kind.TRAINING_JOB: (Runtime.JOB, Runtime.JOB_SET, Runtime.TRAIN_JOB),
    Kind.INFERENCE_SERVICE: (Runtime.DEPLOYMENT, Runtime.LEADER_WORKER_SET),
}
"""Children that may carry the record, one of them at a time."""
ENDS = {"Complete": Reason.COMPLETED, "Completed": Reason.COMPLETED, "Failed": Reason.FAILED}
"""How a run ended, by the condition of its child: a JobSet completes, a Job and a TrainJob are
complete."""


CLOCKS_SECONDS = 10.0
"""By which the clocks of several API servers may differ."""


@dataclass(frozen=True, slots=True)
class State:
    """What has become of one workload so far."""

    record: PlacementRecord | None
    """Where it runs; None where it does not, or where nobody can read the record any more."""
    parts: tuple[PlacementRecord, ...]
    """Of a service: what it runs on further pools."""
    declared: Mapping[str, int]
    """Of a service: replicas by pool, as what runs them is told to have, by whomever."""
    is_live: bool
    """Whether what runs it is there, beyond the intent to make it."""
    pods_since_seconds: float
    """Unix time from which pods that bear its labels can be its own: those of an earlier workload
    of its name, or of a place that it has left, may take minutes to end."""
    end: Reason | None
    """Completed or Failed; None while it may still run."""
    is_paused: bool
    is_being_deleted: bool


class Children:
    """Children by the uid of their controller."""

    def __init__(self, children: Iterable[Object]) -> None:
        self._by_owner: dict[tuple[str, str], Object] = {}
        self._parts: defaultdict[str, list[Object]] = defaultdict(list)
        for child in children:
            owner = controller_uid(child)
            if owner and is_overflow(child):
                self._parts[owner].append(child)
            elif owner:
                self._by_owner[owner, str(child.get("kind"))] = child

    def state_of(self, resource: Object, key: Key, uid: str) -> State:
        """The state of a workload."""
        metadata = mapping(resource, "metadata")
        child, record = self._child_of(key, uid)
        first = [(child, record)] if child is not None and record is not None else []
        parts = self._parts_of(key, uid)
        return State(
            record=record,
            parts=tuple(each for _, each in parts),
            declared=dict(map(_declared, [*first, *parts])),
            is_live=_is_live(child),
            pods_since_seconds=_pods_since_seconds(key, resource, child),
            end=_end(child, resource) if key.kind is Kind.TRAINING_JOB else None,
            is_paused=mapping(metadata, "annotations").get(PAUSED) == "true",
            is_being_deleted=bool(metadata.get("deletionTimestamp")),
        )

    def _parts_of(self, key: Key, uid: str) -> list[tuple[Object, PlacementRecord]]:
        """By pool, each with its child; a record that nobody can read is none."""
        if uid not in self._parts or key.kind is not Kind.INFERENCE_SERVICE:
            return []
        found = ((child, _record(child, key)) for child in self._parts[uid])
        parts = [(child, record) for child, record in found if record is not None]
        return sorted(parts, key=lambda each: each[1].pool)

    def _child_of(self, key: Key, uid: str) -> tuple[Object | None, PlacementRecord | None]:
        """What runs the workload's pods, and its record; while a service changes from one kind to
        another both are there, and the later decision counts."""
        kinds = CHILD_KINDS[key.kind] if uid else ()
        found = [child for kind in kinds if (child := self._by_owner.get((uid, kind)))]
        recorded = [(child, _record(child, key)) for child in found]
        return max(recorded, key=lambda each: _generation(each[1]), default=(None, None))


def _is_live(child: Object | None) -> bool:
    return bool(mapping(child, "metadata").get("uid"))


def _pods_since_seconds(key: Key, resource: Object, child: Object | None) -> float:
    """Pods of a run are younger than its Job. A Deployment may take over those of one before."""
    is_run = key.kind is Kind.TRAINING_JOB
    if is_run and child is not None and not _is_live(child):
        return math.inf
    made = mapping(child if is_run and child else resource, "metadata")
    created = moment_of(made.get("creationTimestamp"))
    return created.timestamp() - CLOCKS_SECONDS if created else -math.inf


def is_overflow(child: Object) -> bool:
    """Whether this runs replicas of a service on a further pool."""
    return mapping(child, "metadata", "labels").get(OVERFLOW) == "true"


def _generation(record: PlacementRecord | None) -> int:
    return -1 if record is None else record.generation


def _declared(part: tuple[Object, PlacementRecord]) -> tuple[str, int]:
    child, record = part
    return record.pool, int(mapping(child, "spec").get("replicas") or 0)


def _record(child: Object, key: Key) -> PlacementRecord | None:
    text = texts(child, "metadata", "annotations").get(PLACEMENT)
    return parse(text, key) if text is not None else None


def _end(child: Object | None, resource: Object) -> Reason | None:
    """How a job ended: its own word, or the workload's status once the job was cleaned up."""
    for document in (child, resource):
        end = true_condition(mapping(document, "status"), *ENDS)
        if end:
            return ENDS[end["type"]]
    return None
