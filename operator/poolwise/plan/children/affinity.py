"""Which nodes pods go to beyond the pool's labels.

Required: what the pool itself needs to keep other nodes out, and the domain of the fabric where
the spec requires one. Ranks of a gang are also kept apart,
one per node, as the ledger counted them. Preferred: the nodes that the plan named. Packing keeps
whole nodes free for other gangs, and since it is not forced, a node that dies stops nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from poolwise.plan.children.metadata import without_empty
from poolwise.plan.decision import PlacementRecord
from poolwise.plan.pool import Pool

HOSTNAME_LABEL = "kubernetes.io/hostname"

Manifest = dict[str, Any]


def of_replica(pool: Pool) -> Manifest:
    """Affinity of a service's pods: nothing that depends on where they are promised room."""
    return without_empty({"nodeAffinity": without_empty(_in_pool(pool))})


def of_rank(record: PlacementRecord, pool: Pool, labels: Mapping[str, str]) -> Manifest:
    """Affinity of a gang's pods, which ``labels`` tell from all others."""
    hostnames = {node.name: node.labels.get(HOSTNAME_LABEL, node.name) for node in pool.nodes}
    hosts = sorted(hostnames.get(node, node) for node in record.claim.accelerators_by_node)
    near = {"matchExpressions": [{"key": HOSTNAME_LABEL, "operator": "In", "values": hosts}]}
    preferred = [{"weight": 100, "preference": near}]
    affinity: Manifest = {
        "nodeAffinity": {
            **without_empty(_in_pool(pool, record.domain)),
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        }
    }
    if 1 < record.pods == len(hosts):
        apart = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": HOSTNAME_LABEL}
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    return affinity


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
