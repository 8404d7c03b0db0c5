"""Claims on nodes that are not there yet, brought to the nodes that came.

Pods that wait for a node are bound to any node of their pool with room: one that came for them,
came for others, or became free. So a claim moves, pod by pod, to real nodes with room; what finds
none stays on nodes to come, on another one where its own no longer may. Whatever is left over
(``maxNodes`` was lowered) keeps a name behind which there is nothing to promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from poolwise.plan.amounts import pods_in, times
from poolwise.plan.decision import Claim, Holding, Kind, PlacementRecord
from poolwise.plan.ledger.capacity import Ledger, Room, resource_of, usage_on
from poolwise.plan.ledger.capacity_pods import Usage
from poolwise.plan.ledger.growth import is_to_come
from poolwise.plan.pool import Node, Pool

N = TypeVar("N", int, float)


def landed(
    book: Ledger, claims: Mapping[Holding, Claim], records: Mapping[Holding, PlacementRecord]
) -> tuple[Ledger, dict[Holding, Claim]]:
    """The ledger once everybody holds what they run on, and the claims where they are held.

    ``claims`` are settled already: what pods are bound to is on real nodes.
    """
    rooms = dict(book.rooms)
    held: dict[Holding, Claim] = {}
    waiting: list[_Waiting] = []
    for key, claim in sorted(claims.items(), key=lambda item: str(item[0])):
        pool, to_come = book.pools.get(claim.pool), set(filter(is_to_come, claim.nodes))
        here = _only(claim, claim.nodes - to_come)
        waiting += [_waiting(key, claim, name, records[key], pool) for name in sorted(to_come)]
        held[key] = here
        _take(here, pool, rooms)
    waiting.sort(key=_Waiting.size, reverse=True)  # small pods find room beside large ones
    for allows in (_is_there, _is_own, _is_any):
        waiting = [_placed(each, allows, held, rooms) for each in waiting]
    for left in waiting:
        # Of no node's name: what finds no room must not take that of others.
        held[left.key] = left.on(f"{left.node}-beyond", left.count, held[left.key])
    for claim in held.values():
        book = book.with_claim(claim)
    return book, held


def awaited(pool: Pool, claims: Iterable[Claim]) -> int:
    """Nodes to come of a grown pool that claims hold a part of."""
    held = set().union(*(claim.nodes for claim in claims if claim.pool == pool.name))
    return sum(node.is_to_come and node.name in held for node in pool.nodes)


def _holds(claim: Claim, node: str) -> bool:
    parts = (claim.accelerators_by_node, claim.cores_by_node, claim.memory_bytes_by_node)
    return any(node in part for part in parts)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Equal pods of one claim that were promised a node which is not there yet."""

    key: Holding
    node: str
    pool: Pool | None
    count: int
    usage: Usage
    """Of one pod."""
    is_alone: bool
    """Ranks of a gang: no two of them on one node."""

    def size(self) -> tuple[float, float, float]:
        """Of one pod: accelerators first."""
        held = self.usage
        return sum(held.accelerators.values()), held.cores, held.memory_bytes

    def slots(self, node: Node, rooms: Mapping[str, Room], held: Claim) -> int:
        """How many of them find room on a node."""
        if self.is_alone and _holds(held, node.name):
            return 0
        room, most = rooms.get(node.name), 1 if self.is_alone else self.count
        if room is None:
            return 0
        for resource, count in self.usage.accelerators.items():
            most = min(most, room.accelerators.get(resource, 0) // count)
        most = pods_in(room.others, tuple(self.usage.others.items()), most)
        amounts = (room.cores, self.usage.cores), (room.memory_bytes, self.usage.memory_bytes)
        for free, each in amounts:
            most = min(most, times(free, each)) if each else most
        return max(0, min(most, self.count))

    def on(self, node: str, count: int, held: Claim) -> Claim:
        """The claim once so many of them hold a node."""
        accelerators = sum(self.usage.accelerators.values())
        return replace(
            held,
            accelerators_by_node=_more(held.accelerators_by_node, node, accelerators * count),
            cores_by_node=_more(held.cores_by_node, node, self.usage.cores * count),
            memory_bytes_by_node=_more(
                held.memory_bytes_by_node, node, self.usage.memory_bytes * count
            ),
            others={
                **held.others,
                **{
                    name: _more(held.others.get(name, {}), node, each * count)
                    for name, each in self.usage.others.items()
                },
            },
        )


def _waiting(
    key: Holding, claim: Claim, node: str, record: PlacementRecord, pool: Pool | None
) -> _Waiting:
    accelerators = claim.accelerators_by_node.get(node, 0)
    cores, memory_bytes = (
        held.get(node, 0.0) for held in (claim.cores_by_node, claim.memory_bytes_by_node)
    )
    count = _count(accelerators, cores, record)
    resource = record.resource or ""
    held = {resource: accelerators // count} if accelerators else {}
    others = {name: each[node] / count for name, each in claim.others.items() if each.get(node)}
    usage = Usage(held, cores / count, memory_bytes / count, others)
    return _Waiting(key, node, pool, count, usage, claim.key.kind is Kind.TRAINING_JOB)


def _count(accelerators: int, cores: float, record: PlacementRecord) -> int:
    """Pods on a node: of a gang one, of a service as many as its devices or cores make."""
    if accelerators:
        return max(1, accelerators // max(1, record.count))
    each: float = getattr(record.layout, "cpu_cores", 0.0)
    return max(1, round(cores / each)) if each else 1


def _is_there(node: Node, _: _Waiting) -> bool:
    return not node.is_to_come


def _is_own(node: Node, waiting: _Waiting) -> bool:
    return node.name == waiting.node


def _is_any(node: Node, _: _Waiting) -> bool:
    return node.is_to_come


def _placed(
    waiting: _Waiting,
    allows: Callable[[Node, _Waiting], bool],
    held: dict[Holding, Claim],
    rooms: dict[str, Room],
) -> _Waiting:
    """What is left of it; ``held`` and ``rooms`` take what finds room on nodes that it allows."""
    nodes = waiting.pool.usable_nodes if waiting.pool else ()
    allowed = [node for node in nodes if node.name in rooms and allows(node, waiting)]
    for node in sorted(allowed, key=lambda each: _left(rooms[each.name])):  # best fit
        if not waiting.count:
            break
        count = waiting.slots(node, rooms, held[waiting.key])
        if count:
            held[waiting.key] = waiting.on(node.name, count, held[waiting.key])
            rooms[node.name] = rooms[node.name].less(waiting.usage, count)
            waiting = replace(waiting, count=waiting.count - count)
    return waiting


def _left(room: Room) -> tuple[float, float]:
    return sum(room.accelerators.values()), room.cores


def _take(claim: Claim, pool: Pool | None, rooms: dict[str, Room]) -> None:
    resource = resource_of(claim, pool)
    for name in claim.nodes & rooms.keys():
        rooms[name] = rooms[name].less(usage_on(name, claim, resource))


def _only(claim: Claim, names: set[str]) -> Claim:
    return replace(
        claim,
        accelerators_by_node=_of(claim.accelerators_by_node, names),
        cores_by_node=_of(claim.cores_by_node, names),
        memory_bytes_by_node=_of(claim.memory_bytes_by_node, names),
        others={name: _of(by_node, names) for name, by_node in claim.others.items()},
    )


def _of(held: Mapping[str, N], names: set[str]) -> dict[str, N]:
    return {name: amount for name, amount in held.items() if name in names}


def _more(held: Mapping[str, N], node: str, amount: N) -> dict[str, N]:
    return {**held, node: held.get(node, 0) + amount} if amount else dict(held)
