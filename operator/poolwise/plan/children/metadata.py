"""What every child object carries: labels, its owner, and the record of the placement.

Children are complete and deterministic: no field that another controller owns, no timestamps,
lists in a fixed order. So the same decision gives the same bytes, and applying it again writes
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from poolwise.api import GROUP, VERSION
from poolwise.plan import names
from poolwise.plan.decision import Key, Kind, PlacementRecord
from poolwise.plan.observed import Object
from poolwise.plan.records.placement_record import render

JOB_NAME_LIMIT = 57
"""A Job's pods add ``-`` and their index, of at most five digits, within a DNS label."""
WORKER_INDEX, LEADER = "leaderworkerset.sigs.k8s.io/worker-index", "0"
"""Label by which LeaderWorkerSet tells the pods of a group apart."""


def key_of(resource: Object) -> Key:
    """Identity of a workload."""
    metadata = resource["metadata"]
    return Key(Kind(resource["kind"]), metadata.get("namespace", ""), metadata["name"])


def selector_labels(key: Key) -> dict[str, str]:
    """Labels that tell one workload's pods from all others; they never change."""
    return {
        names.MANAGED_BY: names.FIELD_MANAGER,
        names.OWNER_KIND: key.kind.value,
        names.OWNER_NAME: names.child_name(key.name),
    }


def serving_labels(key: Key, leaders_only: bool) -> dict[str, str]:
    """Labels of the pods that answer requests: all, or of each group the leader."""
    return {**selector_labels(key), **({WORKER_INDEX: LEADER} if leaders_only else {})}


def selector_text(key: Key, leaders_only: bool) -> str:
    """The same as text, for the scale subresource: one pod for each replica."""
    labels = serving_labels(key, leaders_only)
    return ",".join(f"{label}={value}" for label, value in sorted(labels.items()))


def metadata(resource: Object, record: PlacementRecord, name: str) -> dict[str, Any]:
    """Metadata of a child that goes with its owner."""
    return {
        "name": name,
        "namespace": resource["metadata"]["namespace"],
        "labels": {**selector_labels(key_of(resource)), names.POOL: names.pool_label(record.pool)},
        "ownerReferences": [owner_reference(resource)],
    }


def recorded_metadata(resource: Object, record: PlacementRecord, name: str) -> dict[str, Any]:
    """Metadata of the child that runs the pods, with the placement on it."""
    return {
        **metadata(resource, record, name),
        "annotations": {names.PLACEMENT: render(record)},
    }


def pod_metadata(key: Key, pool: str) -> dict[str, Any]:
    """Metadata of a pod template."""
    return {"labels": {**selector_labels(key), names.POOL: names.pool_label(pool)}}


def gang_metadata(key: Key, pool: str) -> dict[str, Any]:
    """Metadata of a rank's template: no autoscaler takes its node to tidy up (Karpenter, Cluster
    Autoscaler), since the whole gang would lose its work. Replicas of services have a budget for
    disruptions instead."""
    return {**pod_metadata(key, pool), "annotations": dict(names.UNDISRUPTED)}


def owner_reference(resource: Object) -> dict[str, Any]:
    """The workload as controller of its child."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": resource["kind"],
        "name": resource["metadata"]["name"],
        "uid": resource["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def without_empty(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that say something: null, empty text, lists and maps are left out."""
    return {name: value for name, value in document.items() if value not in (None, "", [], {}, ())}
