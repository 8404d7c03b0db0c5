"""A service whose replicas span nodes: one LeaderWorkerSet, a group of pods for each replica.

A group is whole or not at all: all its pods are created together (the leader waits in its engine
for the workers), and where a container of one ends all are made anew, since the others have lost
their rendezvous. The engine is started on each node with its place in the group, and the leader
alone answers requests.

Near each other: pods of a group prefer one domain of the fabric's levels. They must share one where
the spec requires it, and where a tensor-parallel group leaves its node over the accelerators' own
link, which ends at that domain.
"""

from __future__ import annotations

from poolwise.plan import names
from poolwise.plan.children.affinity import of_group
from poolwise.plan.children.metadata import recorded_metadata, selector_labels, without_empty
from poolwise.plan.children.replica import Replica, rolling_update, template
from poolwise.plan.names import child_name
from poolwise.plan.observed import Manifest, Object

NAME_LIMIT = 46
"""Each group has a StatefulSet ``NAME-INDEX``, whose pods bear that name and a hash of eleven
characters as a label."""
REQUIRED, UNCONSTRAINED = "Required", "Unconstrained"


def group_set_name(name: str) -> str:
    """Name of the LeaderWorkerSet and of its headless Service: not that of ours."""
    return child_name(name, "-replica", NAME_LIMIT)


def leader_worker_set(resource: Object, replica: Replica, version: str) -> Manifest:
    """The LeaderWorkerSet of a service.

    :raises InvalidInput: for an engine that has no build for the pool, or cannot load the model.
    """
    record = replica.record
    return {
        "apiVersion": f"{names.LEADER_WORKER_SET}/{version}",
        "kind": "LeaderWorkerSet",
        "metadata": recorded_metadata(resource, record, group_set_name(replica.key.name)),
        "spec": {
            "replicas": record.replicas or 0,
            "startupPolicy": "LeaderCreated",
            "rolloutStrategy": {
                "type": "RollingUpdate",
                "rollingUpdateConfiguration": rolling_update(record),
            },
            "leaderWorkerTemplate": {
                "size": record.nodes_per_replica,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": _near(replica, template(replica)),
                "workerTemplate": _near(replica, template(replica, is_worker=True)),
            },
        },
    }


def _near(replica: Replica, made: Manifest) -> Manifest:
    topology, pool = replica.spec.placement.topology, replica.pool
    levels = (topology.level,) if topology.level else pool.topology_keys
    must_share = topology.mode == REQUIRED
    if pool.link_level and replica.layout.tensor > replica.accelerators_per_pod:
        levels, must_share = (pool.link_level,), True
    elif topology.mode == UNCONSTRAINED:
        levels = ()
    pod = {field: value for field, value in made["spec"].items() if field != "affinity"}
    affinity = of_group(pool, levels, must_share, selector_labels(replica.key))
    return {**made, "spec": {**pod, **without_empty({"affinity": affinity})}}
