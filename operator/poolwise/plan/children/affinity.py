"""Which nodes pods go to beyond the pool's labels.

Required: what the pool itself needs to keep other nodes out, and the domain of the fabric where
the spec requires one. Ranks of a gang are also kept apart,
one per node, as the ledger counted them. Preferred: for ranks the nodes that the plan named, for
replicas nodes that serve already. Packing keeps whole nodes free for other gangs, and since it is
not forced, a node that dies stops nothing. A replica names no node: a pod that does would be
replaced whenever the number of replicas changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from poolwise.plan import names
from poolwise.plan.children.metadata import pool_label, without_empty
from poolwise.plan.decision import Kind, PlacementRecord
from poolwise.plan.pool import Pool
from poolwise.plan.provisioning.growth import is_to_come

HOSTNAME_LABEL = "kubernetes.io/hostname"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

Manifest = dict[str, Any]


def of_replica(pool: Pool, packs: bool) -> Manifest:
    """Affinity of a service's pods: nothing that depends on where they are promised room.

    Those that pack prefer nodes with the most replicas, of whatever service and namespace.
    """
    near = {
        "labelSelector": {
            "matchLabels": {
                names.MANAGED_BY: names.FIELD_MANAGER,
                names.OWNER_KIND: Kind.INFERENCE_SERVICE.value,
                names.POOL: pool_label(pool.name),
            }
        },
        "namespaceSelector": {},
        "topologyKey": HOSTNAME_LABEL,
    }
    preferred = [{"weight": 100, "podAffinityTerm": near}] if packs else []
    return without_empty(
        {
            "nodeAffinity": without_empty(_in_pool(pool)),
            "podAffinity": without_empty(
                {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
            ),
        }
    )


def of_rank(record: PlacementRecord, pool: Pool, labels: Mapping[str, str]) -> Manifest:
    """Affinity of a gang's pods, which ``labels`` tell from all others."""
    hostnames = {node.name: node.labels.get(HOSTNAME_LABEL, node.name) for node in pool.nodes}
    nodes = record.claim.accelerators_by_node
    hosts = sorted(hostnames.get(node, node) for node in nodes if not is_to_come(node))
    near = {"matchExpressions": [{"key": HOSTNAME_LABEL, "operator": "In", "values": hosts}]}
    preferred = {_PREFERRED: [{"weight": 100, "preference": near}]} if hosts else {}
    affinity: Manifest = {
        "nodeAffinity": {
            **without_empty(_in_pool(pool, record.domain)),
            **preferred,
        }
    }
    if 1 < record.pods == len(nodes):
        apart = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": HOSTNAME_LABEL}
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    return without_empty(affinity)


def _in_pool(pool: Pool, domain: Mapping[str, str] | None = None) -> Manifest:
    expressions = [dict(expression) for expression in pool.node_expressions]
    for key, value in sorted((domain or {}).items()):
        expressions.append({"key": key, "operator": "In", "values": [value]})
    terms = [{"matchExpressions": expressions}] if expressions else []
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": without_empty(
            {"nodeSelectorTerms": terms}
        )
    }
