"""At rest: whether what is told to be free is what no pod holds, counted apart from the planner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from poolwise.plan.decision import Claim, Plan
from poolwise.plan.ledger.capacity_pods import owner_labels, owner_of, requests
from poolwise.plan.names import POOL, pool_label
from poolwise.plan.observed import Decisions, Object, Observed
from poolwise.plan.pool import Pool
from tests.handlers.histories.documents import GPU


def miscounted(observed: Observed, decisions: Decisions) -> Iterator[str]:
    """Of which pools; not of those where nodes are held for pods that are still to come."""
    pods = [pod for pod in observed.pods if _holds(pod)]
    held = Counter[str]()
    for pod in pods:
        held[pod["spec"]["nodeName"]] += _count(pod)
    unbound = (each for each in _claims(decisions) if _bound(each, pods) < _sum(each))
    awaiting = {node for claim in unbound for node in claim.nodes}
    for pool in decisions.pools:
        told, counted = decisions.free_accelerators.get(pool.name), _free(pool, held)
        is_settled = awaiting.isdisjoint(node.name for node in pool.nodes)
        if told is not None and is_settled and told != counted:
            yield f"{told} accelerators of {pool.name} are told to be free: {counted} are"


def _holds(pod: Object) -> bool:
    has_ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return bool(pod["spec"].get("nodeName")) and not has_ended


def _count(pod: Object) -> int:
    return requests(pod).accelerators.get(GPU, 0)


def _claims(decisions: Decisions) -> Iterator[Claim]:
    for plan in decisions.outcomes.values():
        if isinstance(plan, Plan):
            parts = (plan, *plan.parts, *filter(None, [plan.goes_on_as]))
            yield from filter(None, (each.claim for each in parts))


def _bound(claim: Claim, pods: list[Object]) -> int:
    """Accelerators of its pods that have a node."""
    ours = owner_labels(claim.key), pool_label(claim.pool)
    return sum(_count(pod) for pod in pods if (owner_of(pod), _pool_of(pod)) == ours)


def _pool_of(pod: Object) -> object:
    return (pod["metadata"].get("labels") or {}).get(POOL)


def _sum(claim: Claim) -> int:
    return sum(claim.accelerators_by_node.values())


def _free(pool: Pool, held: Counter[str]) -> int:
    there = (node for node in pool.usable_nodes if not node.is_to_come)
    return sum(max(0, node.accelerators - held[node.name]) for node in there)
