"""Kueue's objects as values; what nobody can read counts as absent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from poolwise.plan.observed import Object, Queues
from poolwise.plan.reading import mapping, name_of, namespace_of, objects, quantity

NO_SCHEDULE = ("NoSchedule", "NoExecute")
"""Effects of taints that keep pods away."""


@dataclass(frozen=True, slots=True)
class Flavor:
    """A ResourceFlavor: the nodes that a quota is for."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, Any], ...] = ()
    tolerations: tuple[Mapping[str, Any], ...] = ()
    """What Kueue adds to the pods that it admits."""


@dataclass(frozen=True, slots=True)
class Group:
    """Resources of a ClusterQueue that come out of the same flavors, in the admin's order."""

    resources: frozenset[str]
    flavors: tuple[Flavor, ...]
    most: Mapping[tuple[str, str], float]
    """By flavor and resource: all that the queue may ever use, borrowed quota included."""
    used: Mapping[tuple[str, str], float]
    """The same of what is reserved now."""

    @property
    def keys(self) -> frozenset[str]:
        """Node labels by which Kueue tells these flavors apart; it ignores all others."""
        return frozenset(key for flavor in self.flavors for key in flavor.labels)


@dataclass(frozen=True, slots=True)
class ClusterQueue:
    """Quotas that LocalQueues draw from."""

    name: str
    groups: tuple[Group, ...]

    def group_of(self, resource: str) -> Group | None:
        """Where a resource is covered."""
        return next((group for group in self.groups if resource in group.resources), None)

    @property
    def flavors(self) -> tuple[Flavor, ...]:
        """Of all groups."""
        return tuple(flavor for group in self.groups for flavor in group.flavors)


@dataclass(frozen=True, slots=True)
class Books:
    """All queues of a cluster."""

    local: Mapping[tuple[str, str], str]
    """ClusterQueue by namespace and LocalQueue."""
    cluster: Mapping[str, ClusterQueue]
    priorities: frozenset[str]
    """WorkloadPriorityClasses."""
    flavors: Mapping[str, Flavor]

    def local_names(self, namespace: str) -> list[str]:
        """LocalQueues of a namespace, sorted."""
        return sorted(name for where, name in self.local if where == namespace)


def books(queues: Queues) -> Books:
    """What Kueue's objects say of queues and flavors."""
    flavors = {each.name: each for each in map(_flavor, queues.flavors)}
    return Books(
        local={
            (namespace_of(each), name_of(each)): str(mapping(each, "spec").get("clusterQueue", ""))
            for each in queues.local_queues
        },
        cluster={
            name_of(each): ClusterQueue(name_of(each), tuple(_groups(each, flavors)))
            for each in queues.cluster_queues
        },
        priorities=frozenset(map(name_of, queues.priorities)),
        flavors=flavors,
    )


def _flavor(document: Object) -> Flavor:
    spec = mapping(document, "spec")
    labels = {str(key): str(value) for key, value in mapping(spec, "nodeLabels").items()}
    taints = [each for each in objects(spec, "nodeTaints") if each.get("effect") in NO_SCHEDULE]
    return Flavor(name_of(document), labels, tuple(taints), objects(spec, "tolerations"))


def _groups(document: Object, flavors: Mapping[str, Flavor]) -> Iterable[Group]:
    spec = mapping(document, "spec")
    in_cohort = bool(spec.get("cohortName") or spec.get("cohort"))
    used = dict(_used(document))
    for each in objects(spec, "resourceGroups"):
        quotas = objects(each, "flavors")
        yield Group(
            frozenset(map(str, each.get("coveredResources") or ())),
            tuple(
                flavors[str(quota.get("name"))] for quota in quotas if quota.get("name") in flavors
            ),
            {
                (str(quota.get("name")), str(resource.get("name"))): _most(resource, in_cohort)
                for quota in quotas
                for resource in objects(quota, "resources")
            },
            used,
        )


def _used(document: Object) -> Iterator[tuple[tuple[str, str], float]]:
    for flavor in objects(document, "status", "flavorsReservation"):
        for resource in objects(flavor, "resources"):
            name = str(flavor.get("name")), str(resource.get("name"))
            yield name, _amount(resource.get("total"))


def _most(quota: Mapping[str, Any], in_cohort: bool) -> float:
    """Of one resource in one flavor."""
    if in_cohort and quota.get("borrowingLimit") is None:
        return math.inf
    borrowed = _amount(quota.get("borrowingLimit")) if in_cohort else 0.0
    return _amount(quota.get("nominalQuota")) + borrowed


def _amount(told: Any) -> float:
    found = quantity(told or 0)
    return math.inf if found is None else found  # nothing is refused for what cannot be read


def name_in(item: Mapping[str, Any]) -> str:
    """Of an item of a list."""
    return str(item.get("name", ""))
