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

from poolwise.plan import names
from poolwise.plan.children.groups import leader_worker_set
from poolwise.plan.children.metadata import (
    metadata,
    recorded_metadata,
    selector_labels,
    serving_labels,
)
from poolwise.plan.children.replica import HTTP, Replica, rolling_update, template
from poolwise.plan.decision import Key, PlacementRecord
from poolwise.plan.names import child_name
from poolwise.plan.nodes.topology_labels import ZONE_KEY
from poolwise.plan.observed import Manifest, Object

SERVICE_PORT = 80
PULL_SECONDS = 1800
"""Allowed for pulling an engine's image (8 GB and more) before an update counts as stuck."""


def serving_children(
    resource: Object, replica: Replica, apis: Mapping[str, str], parts: Sequence[Replica]
) -> tuple[Manifest, ...]:
    """Service, PodDisruptionBudget, and Deployment or LeaderWorkerSet; nothing where that is not
    served. ``parts`` are what runs on further pools.

    :raises InvalidInput: for an engine that has no build for the pool, or cannot load the model.
    """
    if replica.nodes == 1:
        runner = _deployment(resource, replica)
    elif names.LEADER_WORKER_SET in apis:
        runner = leader_worker_set(resource, replica, apis[names.LEADER_WORKER_SET])
    else:
        return ()
    further = sum(each.record.replicas or 0 for each in parts)
    return (
        _service(resource, replica),
        _disruption_budget(resource, replica, further),
        *(_part(resource, each) for each in parts),
        runner,
    )


def _service(resource: Object, replica: Replica) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(resource, replica.record, child_name(replica.key.name)),
        "spec": {
            "selector": serving_labels(replica.key, replica.nodes > 1),
            "ports": [{"name": HTTP, "port": SERVICE_PORT, "targetPort": HTTP}],
        },
    }


def _disruption_budget(resource: Object, replica: Replica, further: int) -> Manifest:
    record, redundancy = replica.record, replica.spec.scaling.redundancy
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(resource, record, child_name(replica.key.name)),
        "spec": {
            "minAvailable": least_pods(record, redundancy, further=further),
            "selector": {"matchLabels": selector_labels(replica.key)},
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


def _deployment(resource: Object, replica: Replica) -> Manifest:
    key, record, pod = replica.key, replica.record, template(replica)
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


def _part(resource: Object, replica: Replica) -> Manifest:
    """Replicas on a further pool: a Deployment that takes only pods of that pool for its own."""
    made, key, pool = _deployment(resource, replica), replica.key, replica.record.pool
    at, spec = made["metadata"], made["spec"]
    labels = {**selector_labels(key), names.POOL: names.pool_label(pool)}
    return {
        **made,
        "metadata": {
            **at,
            "name": names.overflow_name(key.name, pool),
            "labels": {**at["labels"], names.OVERFLOW: "true"},
        },
        "spec": {**spec, "selector": {"matchLabels": labels}},
    }


def _over_zones(key: Key) -> Manifest:
    return {
        "maxSkew": 1,
        "topologyKey": ZONE_KEY,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector_labels(key)},
        "matchLabelKeys": ["pod-template-hash"],
    }
