"""Jobs that Poolwise did not make and Kueue asks about, as values: what their pods ask for.

Nothing is known of what they compute, so that no model is asked: only how many accelerators each
pod wants, of which flavor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from poolwise.plan.conditions import Type
from poolwise.plan.kueue.reading import name_in
from poolwise.plan.kueue.words import ADMITTED, CONTROLLER, CheckState
from poolwise.plan.ledger.capacity_pods import Usage, requests
from poolwise.plan.names import POOL
from poolwise.plan.nodes.devices import is_accelerator
from poolwise.plan.observed import Object, Observed
from poolwise.plan.reading import is_true, mapping, name_of, namespace_of, objects


@dataclass(frozen=True, slots=True)
class PodSet:
    """Equal pods of one Workload."""

    name: str
    pods: int
    each: Usage
    selector: Mapping[str, str]
    """Labels of nodes, as the job itself asks for."""
    flavors: Mapping[str, str]
    """By resource, as Kueue assigned."""

    @property
    def resource(self) -> str | None:
        """The accelerator that it is placed for, not a network function beside it; None for pods
        without accelerators."""
        asked = (name for name, count in sorted(self.each.accelerators.items()) if count)
        return next(filter(is_accelerator, asked), None)


@dataclass(frozen=True, slots=True)
class Guest:
    """One Workload with a check of ours."""

    namespace: str
    name: str
    uid: str
    check: str
    state: CheckState
    pod_sets: tuple[PodSet, ...]
    pools: Mapping[str, str]
    """By pod set, of one that was let in."""
    bound: int
    """Pods of it that run somewhere already, and count there."""


def our_checks(checks: Iterable[Object]) -> tuple[str, ...]:
    """Names of the AdmissionChecks that Poolwise answers."""
    return tuple(
        name_of(each)
        for each in checks
        if mapping(each, "spec").get("controllerName") == CONTROLLER
    )


def guests(observed: Observed) -> Iterator[Guest]:
    """Workloads that have quota and a check of ours, in the order in which they were made."""
    ours = our_checks(observed.queues.checks)
    if not ours or not observed.queues.workloads:
        return
    bound = _bound(observed.pods)
    for workload in sorted(observed.queues.workloads, key=_age):
        state = _check(workload, ours)
        if state is not None and _has_quota(workload):
            yield _guest(workload, state, bound)


def _guest(workload: Object, state: Mapping[str, Any], bound: Mapping[str, int]) -> Guest:
    uid = str(mapping(workload, "metadata").get("uid"))
    return Guest(
        namespace_of(workload),
        name_of(workload),
        uid,
        name_in(state),
        CheckState(state["state"]),
        tuple(_pod_sets(workload)),
        {
            name_in(update): str(mapping(update, "annotations").get(POOL, ""))
            for update in objects(state, "podSetUpdates")
        },
        bound.get(uid, 0),
    )


def _check(workload: Object, ours: Collection[str]) -> Mapping[str, Any] | None:
    states = objects(workload, "status", "admissionChecks")
    return next(
        (each for each in states if each.get("name") in ours and each.get("state") in _STATES), None
    )


_STATES = frozenset(CheckState)


def _has_quota(workload: Object) -> bool:
    return is_true(mapping(workload, "status"), Type.QUOTA_RESERVED)


def _pod_sets(workload: Object) -> Iterator[PodSet]:
    assignments = objects(workload, "status", "admission", "podSetAssignments")
    assigned = {name_in(each): each for each in assignments}
    for each in objects(workload, "spec", "podSets"):
        template = mapping(each, "template")
        own = assigned.get(name_in(each), {})
        yield PodSet(
            name_in(each),
            int(own.get("count", each.get("count", 1))),
            requests(template),
            {str(k): str(v) for k, v in mapping(template, "spec", "nodeSelector").items()},
            {str(k): str(v) for k, v in mapping(own, "flavors").items()},
        )


def _bound(pods: Iterable[Object]) -> dict[str, int]:
    """Pods that a node has taken, or that have ended, by the uid of the Workload."""
    found: dict[str, int] = {}
    for pod in pods:
        uid = mapping(pod, "metadata", "labels").get(ADMITTED)
        if uid and mapping(pod, "spec").get("nodeName"):
            found[uid] = found.get(uid, 0) + 1
    return found


def _age(workload: Object) -> tuple[str, str, str]:
    created = mapping(workload, "metadata").get("creationTimestamp")
    return str(created), namespace_of(workload), name_of(workload)
