"""Services that run, with the replicas that their load asks for.

The number changes, the place does not: same pool, same shape, same pod template, so that nothing
restarts. New replicas take free room alone; where there is not enough, as many come as fit. What
replicas are given up is free for others once their pods have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from poolwise.model.work import ServingLayout
from poolwise.plan.candidates.serving_groups import gang_of_replicas, wish_of_replicas
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.capacity import Gang
from poolwise.plan.decision import Claim, Key, Outcome, PlacementRecord, Plan
from poolwise.plan.entries import Entry
from poolwise.plan.pool import Pool
from poolwise.plan.provisioning.growth import is_to_come
from poolwise.plan.requests.request import ServingRequest, Workload


def with_live_replicas(entries: Iterable[Entry], scaling: Mapping[Key, int]) -> Iterator[Entry]:
    """Entries that are planned with as many replicas as their load asks for, where that is known:
    a change of a spec is no reason to forget the load."""
    for entry in entries:
        live, wanted = scaling.get(entry.identity.key), entry.wanted
        if live is not None and isinstance(wanted, Workload):
            request = wanted.request
            if isinstance(request, ServingRequest):
                request = replace(request, live_replicas=live)
                entry = replace(entry, wanted=replace(wanted, request=request))
        yield entry


def rescaled(
    entries: Iterable[Entry],
    claims: Mapping[Key, Claim],
    scaling: Mapping[Key, int],
    outcomes: dict[Key, Outcome],
    situation: Situation,
) -> Situation:
    """What is left once services that are kept have the replicas of ``scaling``.

    ``outcomes`` gets their new plans. Only services that run and may be scaled are touched.
    """
    for entry in entries:
        key = entry.identity.key
        plan, wanted = outcomes.get(key), scaling.get(key)
        if wanted is None or not isinstance(plan, Plan) or not plan.kept or plan.record is None:
            continue
        found = _Rescaling(entry, plan.record, claims.get(key), situation).to(wanted)
        if found is not None:
            record, situation = found
            outcomes[key] = entry.kept(record)
    return situation


class _Rescaling:
    """One service."""

    def __init__(
        self, entry: Entry, record: PlacementRecord, claim: Claim | None, situation: Situation
    ) -> None:
        self._entry = entry
        self._record = record
        self._claim = claim or record.claim
        self._situation = situation

    def to(self, wanted: int) -> tuple[PlacementRecord, Situation] | None:
        """The record with so many replicas, or as many as there is room for; None where nothing
        changes."""
        record, pool = self._record, self._situation.ledger.pools.get(self._record.pool)
        workload = self._entry.wanted
        if pool is None or not isinstance(workload, Workload) or record.replicas is None:
            return None
        request = workload.request
        if not isinstance(request, ServingRequest) or request.given_replicas is not None:
            return None
        wanted = min(max(wanted, request.least_replicas), request.most_replicas)
        if wanted < record.replicas:
            return self._smaller(wanted, request, pool), self._situation
        if wanted > record.replicas:
            return self._larger(wanted, request, pool)
        return None

    def _smaller(self, wanted: int, request: ServingRequest, pool: Pool) -> PlacementRecord:
        gang = self._gang(wanted, request, pool)
        kept: dict[str, int] = {}
        rest = gang.pods
        for node, pods in sorted(self._pods(gang).items(), key=_leaves_last):
            kept[node] = min(pods, rest)
            rest -= kept[node]
        claim = gang.claim(self._claim.key, pool.name, {node: n for node, n in kept.items() if n})
        return replace(self._record, replicas=wanted, claim=claim)

    def _larger(
        self, wanted: int, request: ServingRequest, pool: Pool
    ) -> tuple[PlacementRecord, Situation] | None:
        assert self._record.replicas is not None
        more = wanted - self._record.replicas
        wished = self._gang(more, request, pool)
        room = self._situation.ledger.most_pods(pool, wished) // wished.group
        for count in range(min(more, room), 0, -1):
            gang = self._gang(count, request, pool)
            wish = wish_of_replicas(count, self._layout, request, pool)
            nodes = self._situation.nodes_for(gang, pool, wish)
            if nodes is not None:
                return self._grown(count, gang, nodes, pool)
        return None

    def _grown(
        self, count: int, gang: Gang, nodes: Mapping[str, int], pool: Pool
    ) -> tuple[PlacementRecord, Situation]:
        assert self._record.replicas is not None
        pods = self._pods(gang)
        for node, more in nodes.items():
            pods[node] = pods.get(node, 0) + more
        claim = gang.claim(self._claim.key, pool.name, pods)
        ledger = self._situation.ledger.without_claim(self._claim).with_claim(claim)
        one = replace(gang, pods=gang.group)
        record = replace(
            self._record,
            replicas=self._record.replicas + count,
            claim=claim,
            may_surge=ledger.fit(pool, one) is not None,
        )
        return record, self._situation.with_ledger(ledger)

    @property
    def _layout(self) -> ServingLayout:
        assert isinstance(self._record.layout, ServingLayout)
        return self._record.layout

    def _gang(self, replicas: int, request: ServingRequest, pool: Pool) -> Gang:
        return gang_of_replicas(replicas, self._layout, request, pool)

    def _pods(self, gang: Gang) -> dict[str, int]:
        """By node: how many pods the claim stands for."""
        if gang.accelerators:
            held = self._claim.accelerators_by_node
            return {node: count // gang.accelerators for node, count in held.items()}
        cores = self._claim.cores_by_node
        return {node: round(amount / gang.cores) for node, amount in cores.items()}


def _leaves_last(item: tuple[str, int]) -> tuple[bool, int, str]:
    """Nodes that are not there yet are given up first, then those with few replicas."""
    node, pods = item
    return is_to_come(node), -pods, node
