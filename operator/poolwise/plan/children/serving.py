"""A service's children: a Deployment, a Service, and a PodDisruptionBudget.

Where a replica spans nodes, a LeaderWorkerSet takes the Deployment's place
(:mod:`poolwise.plan.children.groups`), and requests go to the leaders alone.

Several pools. Replicas beyond the room of the first pool run in a Deployment for each further one;
the Service and the budget take the pods of all of them.

Replicas. The number in the record is set in every mode: Poolwise's own in mode Direct; in modes
External and Off it is ``spec.replicas``, which people, HPA and KEDA write through the scale
subresource of the InferenceService. An autoscaler belongs on the InferenceService, never on the
Deployment. Nothing in the pod template depends on the number of replicas or on the nodes they are
promised, so scaling restarts nothing.

Start. The startup probe allows what loading the weights should take, times a margin, and what the
engine itself needs; only then do readiness and liveness count.

End. A replica that stops still answers until no proxy sends to it (``preStop``), and then has time
for the requests in flight.

Disruption. One replica at a time may be drained from a node, more where ``redundancy`` or the load
of now says that the targets hold without them. Of a replica that spans nodes any pod takes all with
it, so that many pods may go, and no more until their groups are ready again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from poolwise.api import InferenceService, InferenceServiceSpec
from poolwise.plan import names
from poolwise.plan.children.groups import leader_worker_set
from poolwise.plan.children.metadata import (
    key_of,
    metadata,
    recorded_metadata,
    selector_labels,
    serving_labels,
)
from poolwise.plan.children.replica import HTTP, Replica, template
from poolwise.plan.decision import Key, PlacementRecord
from poolwise.plan.names import child_name
from poolwise.plan.nodes.topology_labels import ZONE_KEY
from poolwise.plan.observed import Manifest, Object
from poolwise.plan.pool import Pool
from poolwise.settings import Settings

SERVICE_PORT = 80
PULL_SECONDS = 1800
"""Allowed for pulling an engine's image (8 GB and more) before an update counts as stuck."""


def serving_children(
    resource: Object,
    record: PlacementRecord,
    pool: Pool,
    settings: Settings,
    apis: Mapping[str, str] = MappingProxyType({}),
    parts: Sequence[tuple[PlacementRecord, Pool]] = (),
) -> tuple[Manifest, ...]:
    """Service, PodDisruptionBudget, and Deployment or LeaderWorkerSet; nothing where that is not
    served. ``parts`` is what runs on further pools.

    :raises InvalidInput: for an engine that has no build for the pool, or cannot load the model.
    """
    spec = InferenceService.model_validate(resource).spec
    if record.nodes_per_replica == 1:
        replicas = _deployment(resource, record, pool, settings)
    elif names.LEADER_WORKER_SET in apis:
        replica = Replica(key_of(resource), spec, record, pool, settings)
        replicas = leader_worker_set(resource, replica, apis[names.LEADER_WORKER_SET])
    else:
        return ()
    name = child_name(resource["metadata"]["name"])
    further = sum(each.replicas or 0 for each, _ in parts)
    return (
        _service(resource, record, name),
        _disruption_budget(resource, record, spec, name, further),
        *(_part(resource, each, at, settings) for each, at in parts),
        replicas,
    )


def _service(resource: Object, record: PlacementRecord, name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(resource, record, name),
        "spec": {
            "selector": serving_labels(key_of(resource), record.nodes_per_replica > 1),
            "ports": [{"name": HTTP, "port": SERVICE_PORT, "targetPort": HTTP}],
        },
    }


def _disruption_budget(
    resource: Object,
    record: PlacementRecord,
    spec: InferenceServiceSpec,
    name: str,
    further: int,
) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(resource, record, name),
        "spec": {
            "minAvailable": least_pods(record, spec.scaling.redundancy, further=further),
            "selector": {"matchLabels": selector_labels(key_of(resource))},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def least_pods(
    record: PlacementRecord,
    redundancy: int,
    least_replicas: int | None = None,
    further: int = 0,
) -> int:
    """Pods that drains of nodes leave: never none where there are several replicas, however many of
    them are spare.

    :param least_replicas: that meet the targets now; None: all but the spare ones.
    :param further: replicas on further pools, of one pod each, as those of ``record`` then are.
    """
    replicas = (record.replicas or 0) + further
    unneeded = 0 if least_replicas is None else replicas - least_replicas
    expendable = min(max(1, redundancy, unneeded), replicas - 1)
    return replicas * record.nodes_per_replica - expendable if replicas > 1 else 0


def least_replicas(record: PlacementRecord, pods: int, further: int = 0) -> int:
    """What :func:`least_pods` told so many pods for: the fewest, where several numbers do."""
    replicas = (record.replicas or 0) + further
    return max(replicas - (replicas * record.nodes_per_replica - pods), 1)


def _deployment(
    resource: Object, record: PlacementRecord, pool: Pool, settings: Settings
) -> Manifest:
    key = key_of(resource)
    spec = InferenceService.model_validate(resource).spec
    replica = Replica(key, spec, record, pool, settings)
    pod = template(replica)
    pod["spec"]["topologySpreadConstraints"] = [_over_zones(key)]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": recorded_metadata(resource, record, child_name(key.name)),
        "spec": {
            "replicas": record.replicas or 0,
            "selector": {"matchLabels": selector_labels(key)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling_update(record)},
            "progressDeadlineSeconds": progress_deadline_seconds(record),
            "template": pod,
        },
    }


def progress_deadline_seconds(record: PlacementRecord) -> int:
    """For which an update may make no replica ready before it counts as stuck."""
    return PULL_SECONDS + (record.start_budget_seconds or 0)


def _part(resource: Object, record: PlacementRecord, pool: Pool, settings: Settings) -> Manifest:
    """Replicas on a further pool: a Deployment that takes only pods of that pool for its own."""
    made, key = _deployment(resource, record, pool, settings), key_of(resource)
    at, spec = made["metadata"], made["spec"]
    labels = {**selector_labels(key), names.POOL: names.pool_label(record.pool)}
    return {
        **made,
        "metadata": {
            **at,
            "name": names.overflow_name(key.name, record.pool),
            "labels": {**at["labels"], names.OVERFLOW: "true"},
        },
        "spec": {**spec, "selector": {"matchLabels": labels}},
    }


def rolling_update(record: PlacementRecord) -> Manifest:
    """The new replica first where there is room for it; else the update would never end."""
    if record.may_surge:
        return {"maxSurge": 1, "maxUnavailable": 0}
    return {"maxSurge": 0, "maxUnavailable": 1}


def _over_zones(key: Key) -> Manifest:
    return {
        "maxSkew": 1,
        "topologyKey": ZONE_KEY,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector_labels(key)},
        "matchLabelKeys": ["pod-template-hash"],
    }
