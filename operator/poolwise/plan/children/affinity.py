"""Which nodes pods go to beyond the pool's labels.

Required: what the pool itself needs to keep other nodes out. Ranks of a gang are also kept apart,
one per node, as the ledger counted them. The domain of the fabric that a spec requires is a label,
so it is in the node selector: Kueue matches its flavors there, and an affinity could not change
while a child is suspended. Preferred: for ranks the nodes that the plan named, for
replicas nodes that serve already. Packing keeps whole nodes free for other gangs, and since it is
not forced, a node that dies stops nothing. A replica names no node: a pod that does would be
replaced whenever the number of replicas changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from poolwise.plan import names
from poolwise.plan.children.metadata import without_empty
from poolwise.plan.decision import Kind, PlacementRecord
from poolwise.plan.ledger.growth import is_to_come
from poolwise.plan.observed import Manifest
from poolwise.plan.pool import Pool

HOSTNAME_LABEL = "kubernetes.io/hostname"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
GROUP_KEY = "leaderworkerset.sigs.k8s.io/group-key"
"""Label that all pods of one group have, and no others."""


def of_group(
    pool: Pool, levels: Sequence[str], must_share: bool, labels: Mapping[str, str]
) -> Manifest:
    """Affinity of the pods of a replica that spans nodes: near each other, group by group.

    ``levels`` are node labels of the fabric, nearest first; with ``must_share`` all pods of a group
    share a domain of the first. ``labels`` tell the service's pods from all others. The scheduler
    tells its groups apart by LeaderWorkerSet's own label, whose value a template cannot know
    (``matchLabelKeys``, final in Kubernetes 1.33).
    """
    terms = [
        {
            "labelSelector": {"matchLabels": dict(labels)},
            "matchLabelKeys": [GROUP_KEY],
            "topologyKey": level,
        }
        for level in levels
    ]
    required = terms[:1] if must_share else []
    weights = range(100, 0, -10)
    preferred = [
        {"weight": weight, "podAffinityTerm": term}
        for weight, term in zip(weights, terms[len(required) :], strict=False)
    ]
    return without_empty(
        {
            "nodeAffinity": without_empty(_in_pool(pool)),
            "podAffinity": without_empty(
                {
                    "requiredDuringSchedulingIgnoredDuringExecution": required,
                    "preferredDuringSchedulingIgnoredDuringExecution": preferred,
                }
            ),
        }
    )


def of_replica(pool: Pool, packs: bool, labels: Mapping[str, str]) -> Manifest:
    """Affinity of a service's pods: nothing that depends on where they are promised room.

    Those that pack prefer nodes with the most replicas, of whatever service and namespace; others
    nodes with the fewest of their own service, which ``labels`` tell from all others. All prefer
    domains of the accelerators' own link that somebody uses already to whole ones, which gangs
    need.

    Not by a topology spread: where a pod has several, the scheduler heeds none on nodes that lack
    the label of one, and few but a cloud's nodes have a zone.
    """
    ours = {names.MANAGED_BY: names.FIELD_MANAGER, names.POOL: names.pool_label(pool.name)}
    replicas = {**ours, names.OWNER_KIND: Kind.INFERENCE_SERVICE.value}
    preferred = []
    if packs:
        preferred.append(_beside(replicas, HOSTNAME_LABEL, 100))
    if pool.link_level:
        preferred.append(_beside(ours, pool.link_level, 50))
    return without_empty(
        {
            "nodeAffinity": without_empty(_in_pool(pool)),
            "podAffinity": without_empty({_PREFERRED: preferred}),
            "podAntiAffinity": {} if packs else {_PREFERRED: [_apart(labels)]},
        }
    )


def of_rank(record: PlacementRecord, pool: Pool, labels: Mapping[str, str]) -> Manifest:
    """Affinity of a gang's pods, which ``labels`` tell from all others."""
    hostnames = {node.name: node.labels.get(HOSTNAME_LABEL, node.name) for node in pool.nodes}
    nodes = record.claim.accelerators_by_node
    hosts = sorted(hostnames.get(node, node) for node in nodes if not is_to_come(node))
    if record.queue is not None:
        hosts = []  # which nodes are free when Kueue lets it in, nobody knows before
    near = {"matchExpressions": [{"key": HOSTNAME_LABEL, "operator": "In", "values": hosts}]}
    preferred = {_PREFERRED: [{"weight": 100, "preference": near}]} if hosts else {}
    affinity: Manifest = {
        "nodeAffinity": {
            **without_empty(_in_pool(pool)),
            **preferred,
        }
    }
    if 1 < record.pods == len(nodes):
        apart = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": HOSTNAME_LABEL}
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    return without_empty(affinity)


def _apart(labels: Mapping[str, str]) -> Manifest:
    """From pods of the same template: those of the one before leave."""
    term = {
        "labelSelector": {"matchLabels": dict(labels)},
        "matchLabelKeys": ["pod-template-hash"],
        "topologyKey": HOSTNAME_LABEL,
    }
    return {"weight": 100, "podAffinityTerm": term}


def _beside(labels: Mapping[str, str], level: str, weight: int) -> Manifest:
    """In a domain of the level where such pods are, of any namespace."""
    term = {
        "labelSelector": {"matchLabels": dict(sorted(labels.items()))},
        "namespaceSelector": {},
        "topologyKey": level,
    }
    return {"weight": weight, "podAffinityTerm": term}


def _in_pool(pool: Pool) -> Manifest:
    expressions = [dict(expression) for expression in pool.node_expressions]
    terms = [{"matchExpressions": expressions}] if expressions else []
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": without_empty(
            {"nodeSelectorTerms": terms}
        )
    }
