"""What no planning pass may promise: accelerators that a node does not have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from poolwise.plan.decision import Claim, Holding, Key, Part, Plan
from poolwise.plan.ledger.capacity_pods import owner_of, requests, settled, usage_by_node
from poolwise.plan.observed import Decisions, Object, Observed
from tests.handlers.histories.documents import DEVICES, GPU

H = TypeVar("H", bound=Holding)


def overpromised(observed: Observed, decisions: Decisions) -> Iterator[str]:
    """Of which node whom."""
    there = {
        str(node["metadata"]["name"]): int(node["status"]["allocatable"].get(GPU, 0))
        for node in observed.nodes
    }
    plans = [each for each in decisions.outcomes.values() if isinstance(each, Plan)]
    claims = claims_of(observed, [plan for plan in plans if not _is_queued(plan)])
    yield from _promised_twice(observed, [plan for plan in plans if not queue_of(plan)])
    held = Counter[str]()
    for claim in claims:
        held.update(claim.accelerators_by_node)
    held.update(_held_by_others(observed, {claim.key for claim in claims}))
    for plan in plans:
        if plan.claim and not plan.kept and not _is_queued(plan):
            for node, count in plan.claim.accelerators_by_node.items():
                if count and node in there and held[node] > there[node]:
                    yield f"{plan.key} is promised {count} of {node}: {held[node]} of {there[node]}"


def claims_of(observed: Observed, plans: Iterable[Plan]) -> list[Claim]:
    """What they hold, where their pods are: replicas may be on other nodes than they were given."""
    return list(where_pods_are(observed.pods, _by_holding(plans)).values())


def where_pods_are(pods: Iterable[Object], claims: Mapping[H, Claim]) -> dict[H, Claim]:
    """The same claims, where the scheduler chose among the nodes of their pools."""
    _, bound = usage_by_node(pods, {each: claim.pool for each, claim in claims.items()})
    return {each: settled(claim, GPU, bound.get(each, {})) for each, claim in claims.items()}


def _by_holding(plans: Iterable[Plan]) -> dict[Part, Claim]:
    return {
        (plan.key, claim.pool): claim
        for plan in plans
        for claim in [plan.claim, *(part.claim for part in plan.parts)]
        if claim is not None
    }


def _promised_twice(observed: Observed, plans: Sequence[Plan]) -> Iterator[str]:
    """Of those in no queue: Kueue lets in whom it likes, after the place was taken by others.

    By what they were given, and where their pods are: a pod that comes late may find its node taken
    by somebody else's, and go where another run has just failed.
    """
    given, held = _by_node(_by_holding(plans).values()), _by_node(claims_of(observed, plans))
    for node, holders in given.items():
        there = DEVICES.get(node[0])  # None: still to come
        if there is not None and min(_sum(holders), _sum(held.get(node, ()))) > there:
            yield f"{there} of {node} are promised to {', '.join(f'{k} ({n})' for k, n in holders)}"


def _by_node(claims: Iterable[Claim]) -> dict[str, list[tuple[Key, int]]]:
    holders: dict[str, list[tuple[Key, int]]] = {}
    for claim in claims:
        for node, count in claim.accelerators_by_node.items():
            holders.setdefault(node, []).append((claim.key, count))
    return holders


def _sum(holders: Iterable[tuple[Key, int]]) -> int:
    return sum(count for _, count in holders)


def queue_of(plan: Plan) -> object:
    """Of Kueue; None: it is in none."""
    return plan.queue or (plan.record and plan.record.queue)


def _is_queued(plan: Plan) -> bool:
    """Whether Kueue has not reserved quota for it: then it holds nothing yet."""
    return queue_of(plan) is not None and not (plan.admission and plan.admission.is_reserved)


def _held_by_others(observed: Observed, ours: set[Key]) -> Counter[str]:
    labels = {(str(key.kind), key.namespace, key.name) for key in ours}
    found = Counter[str]()
    for pod in observed.pods:
        node, phase = pod["spec"].get("nodeName"), (pod.get("status") or {}).get("phase")
        if node and phase not in ("Succeeded", "Failed") and owner_of(pod) not in labels:
            found[node] += requests(pod).accelerators.get(GPU, 0)
    return found
