"""What children and pods tell of a start: since when it could be, and which pods have started."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from poolwise.plan.conditions import Reason, Type
from poolwise.plan.ledger.capacity_pods import FINISHED_PHASES
from poolwise.plan.names import PLACEMENT
from poolwise.plan.observed import Object
from poolwise.plan.reading import controller_uid, is_true, mapping, moment_of, objects, texts
from poolwise.plan.records.running import is_overflow

_RANK_LABELS = ("batch.kubernetes.io/job-name", "batch.kubernetes.io/job-completion-index")
_NOT_YET = ("", "ContainerCreating", "PodInitializing")
"""Reasons of a container that waits for its node; any other is its own trouble."""
_REFUSED_ANYWHERE = {Reason.POD_SECURITY_REFUSED, Reason.MISSING_REFERENCE}
"""What admission says of pods whatever pool they are for. A quota is not among these: it may count
the accelerators of one maker alone, and what it refuses gives its place to others."""


def bearers(children: Iterable[Object]) -> dict[str, Object]:
    """By the uid of the workload: the child that bears the record of the placement; of a service
    on several pools the first."""
    found = {}
    for child in children:
        if PLACEMENT in texts(child, "metadata", "annotations") and not is_overflow(child):
            owner = controller_uid(child)
            if owner:
                found[owner] = child
    return found


def startable_since(child: Object) -> datetime | None:
    """Since when its pods could have started; None while it is suspended, or not there yet, or its
    controller is yet to see that it is suspended no more."""
    status = mapping(child, "status")
    if mapping(child, "spec").get("suspend") is True or is_true(status, Type.SUSPENDED):
        return None
    created = moment_of(mapping(child, "metadata").get("creationTimestamp"))
    if created is None:
        return None
    resumed = (
        each.get("lastTransitionTime")
        for each in objects(status, "conditions")
        if each.get("type") == Type.SUSPENDED
    )
    times = map(moment_of, (status.get("startTime"), *resumed))
    return max([created, *(each for each in times if each is not None)])


@dataclass(frozen=True, slots=True)
class Starting:
    """How far the pods of one placement are."""

    started: int
    """Ranks of a gang, or replicas, that ran at some time."""
    bound: int
    """Pods that have a node, those that ended included."""
    is_held_up_by_itself: bool
    """Whether a pod that has its node does not run for a reason that another node would not cure:
    its image, its configuration, a program that ends."""
    lacks_claim: bool
    """Whether a pod has no node for want of a claim that it names: no pool has one where it would
    be found."""
    exists: bool
    """Whether there is any pod."""


def starting(pods: Sequence[Object], since: datetime) -> Starting:
    """What the pods show that were made since then; older ones are of an earlier placement."""
    own = [pod for pod in pods if _is_of(pod, since)]
    return Starting(
        started=len({_rank(pod) for pod in own if _has_started(pod)}),
        bound=len({_rank(pod) for pod in own if mapping(pod, "spec").get("nodeName")}),
        is_held_up_by_itself=any(map(_is_held_up_by_itself, own)),
        lacks_claim=any(
            is_claim_missing(str(each.get("message") or ""))
            for pod in own
            for each in objects(pod, "status", "conditions")
            if (each.get("type"), each.get("status")) == ("PodScheduled", "False")
        ),
        exists=bool(own),
    )


def is_refused_anywhere(resource: Object) -> bool:
    """Whether its status tells that no pod is let in for what another pool would not change."""
    told = objects(resource, "status", "observed", "problems")
    return any(each.get("reason") in _REFUSED_ANYWHERE for each in told)


def is_claim_missing(message: str) -> bool:
    """Whether the scheduler says of a pod that a claim that it names does not exist."""
    return "not found" in message and "persistentvolumeclaim" in message


def _is_of(pod: Object, since: datetime) -> bool:
    created = moment_of(mapping(pod, "metadata").get("creationTimestamp"))
    return created is None or created >= since


def _rank(pod: Object) -> tuple[str, ...]:
    labels = texts(pod, "metadata", "labels")
    if all(label in labels for label in _RANK_LABELS):
        return tuple(labels[label] for label in _RANK_LABELS)
    return (str(mapping(pod, "metadata").get("name")),)


def _has_started(pod: Object) -> bool:
    phase = mapping(pod, "status").get("phase")
    if phase in ("Running", "Succeeded"):
        return True
    return phase in FINISHED_PHASES and any(
        "terminated" in mapping(each, "state")
        for each in objects(pod, "status", "containerStatuses")
    )


def _is_held_up_by_itself(pod: Object) -> bool:
    if not mapping(pod, "spec").get("nodeName"):
        return False
    containers: list[Mapping[str, Any]] = [
        *objects(pod, "status", "initContainerStatuses"),
        *objects(pod, "status", "containerStatuses"),
    ]
    return any(
        str(mapping(each, "state", "waiting").get("reason") or "") not in _NOT_YET
        or mapping(each, "state", "terminated").get("exitCode")
        for each in containers
    )
