"""Whether updates of services that run may start before they stop: by the room of now.

Room for one replica more comes and goes with others, and with replicas that a service gives up
itself. The strategy of an update alone changes with it, which restarts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from poolwise.model.work import ServingLayout
from poolwise.plan.candidates.serving.groups import gang_of_replicas
from poolwise.plan.decision import Claim, Holding, Key, Outcome, PlacementRecord, Plan
from poolwise.plan.entries import Entry
from poolwise.plan.ledger.capacity import Gang, Ledger
from poolwise.plan.requests.request import ServingRequest


def surging(
    entries: Iterable[Entry],
    claims: Mapping[Holding, Claim],
    outcomes: Mapping[Key, Outcome],
    ledger: Ledger,
) -> dict[Key, Outcome]:
    """Plans of services that run whose updates go another way than they are told to.

    :param claims: of what runs, as its pods hold it.
    :param ledger: once everything that runs has its place, and nothing else: what is to start may
        fail to, again and again, and strategies would turn with each attempt. What is made counts
        with the next pass.
    """
    room, found = _Room(ledger, claims), dict[Key, Outcome]()
    for entry in entries:
        key, request = entry.identity.key, entry.serving
        plan = outcomes.get(key)
        runs = plan.running if isinstance(plan, Plan) else None
        if request is None or runs is None or not isinstance(plan, Plan):
            continue
        again = room.told(runs, request)
        if again != runs:
            found[key] = again if runs is plan else replace(plan, goes_on_as=again)
    return found


@dataclass(frozen=True, slots=True)
class _Room:
    ledger: Ledger
    claims: Mapping[Holding, Claim]
    known: dict[tuple[str, Gang], bool] = field(default_factory=dict)
    """Answers so far: many services have replicas alike."""

    def told(self, runs: Plan, request: ServingRequest) -> Plan:
        """The plan with what is true now of each of its pools."""
        parts = tuple(self._told(part, (runs.key, _pool(part)), request) for part in runs.parts)
        return replace(self._told(runs, runs.key, request), parts=parts)

    def _told(self, runs: Plan, holding: Holding, request: ServingRequest) -> Plan:
        record = runs.record
        if record is None or _is_under_way(record, self.claims[holding]):
            return runs
        may_surge = self._may_surge(record, request)
        if may_surge == record.may_surge:
            return runs
        return replace(runs, record=replace(record, may_surge=may_surge))

    def _may_surge(self, record: PlacementRecord, request: ServingRequest) -> bool:
        pool, layout = self.ledger.pool(record.pool), record.layout
        if pool is None or not isinstance(layout, ServingLayout):
            return record.may_surge
        one = gang_of_replicas(1, layout, request, pool, record.nodes_per_replica)
        about = record.pool, one
        if about not in self.known:
            self.known[about] = self.ledger.fit(pool, one) is not None
        return self.known[about]


def _is_under_way(record: PlacementRecord, held: Claim) -> bool:
    """Whether there are more pods than its replicas need: an update has old and new ones side by
    side, or some have not ended yet. To say then that there is no room would turn it round."""
    if not record.replicas:
        return False
    planned, now = record.claim.accelerators_by_node, held.accelerators_by_node
    if record.count:
        return sum(now.values()) > sum(planned.values())
    cores = sum(record.claim.cores_by_node.values())
    # Containers that others inject ask for cores too, though for less than half a replica's.
    return sum(held.cores_by_node.values()) > cores * (1.0 + 0.5 / record.replicas)


def _pool(part: Plan) -> str:
    return part.record.pool if part.record else ""
