"""The one ledger of what nodes have left; every placement of a pass takes its share from it.

A ledger is a value: a claim gives a new one. It starts from what usable nodes allocate, less the
pods that Poolwise did not place (:mod:`poolwise.plan.ledger.capacity_pods`), less the claims of
what already runs. Pods of one node share its cores, its memory and all else that they ask for
whatever pool they belong to, so rooms are kept by node, and accelerators within them by resource.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate

from poolwise.plan.amounts import (
    PODS,
    Amounts,
    Told,
    held_by,
    join_held,
    larger,
    less,
    on_each,
    pods_in,
    times,
)
from poolwise.plan.decision import Claim, Key
from poolwise.plan.ledger.capacity_pods import NOTHING, Usage
from poolwise.plan.ledger.node_choice import (
    NOWHERE,
    Breakage,
    Domain,
    Opening,
    Pods,
    breakage,
    choose,
    domains_of,
    kept_whole,
)
from poolwise.plan.ledger.stranding import DIGITS, Mean
from poolwise.plan.pool import Node, Pool


@dataclass(frozen=True, slots=True)
class Room:
    """What one node has left; negative where more was promised than the node still has."""

    accelerators: Mapping[str, int]
    """By extended resource."""
    cores: float
    memory_bytes: float
    others: Told = field(default_factory=dict)
    """Pods among them only where their number may run out before devices or cores do."""

    def less(self, usage: Usage, factor: int = 1) -> Room:
        """The room once ``factor`` times a usage is taken."""
        accelerators, others, held = self.accelerators, self.others, usage.accelerators
        if others:
            others = less(others, usage.others, factor)
        if held:
            accelerators = less(accelerators, held, factor)
            others = others and less(others, held, factor)
        return Room(
            accelerators,
            self.cores - factor * usage.cores,
            self.memory_bytes - factor * usage.memory_bytes,
            others,
        )


@dataclass(frozen=True, slots=True)
class Gang:
    """Equal pods of one workload that get room together or not at all."""

    pods: int
    accelerators: int
    """Of each pod, in the pool's resource; 0 on CPU."""
    cores: float = 0.0
    memory_bytes: float = 0.0
    one_per_node: bool = False
    """Ranks of a training job: a pod holds all that the job uses of its node."""
    packs: bool = False
    """Replicas that fill nodes one after another; else pods go to as many nodes as there are."""
    group: int = 1
    """Pods of each replica that spans nodes: they are to be close, whatever the other groups."""
    others: Amounts = ()
    """All else that a pod asks for."""

    @property
    def asks_more(self) -> bool:
        """Whether a pod asks for anything beside accelerators."""
        return bool(self.cores or self.memory_bytes or self.others)

    def claim(self, key: Key, pool: str, pods_by_node: Mapping[str, int]) -> Claim:
        """What the gang holds when its pods run on these nodes."""
        return Claim(
            key,
            pool,
            on_each(pods_by_node, self.accelerators),
            on_each(pods_by_node, self.cores),
            on_each(pods_by_node, self.memory_bytes),
            others=held_by(pods_by_node, self.others),
        )


@dataclass(frozen=True, slots=True)
class Ledger:
    """Free capacity of all pools, and who holds the rest."""

    pools: Mapping[str, Pool]
    rooms: Mapping[str, Room]
    """By node; unusable nodes have none."""
    claims: tuple[Claim, ...] = field(default=())
    former: Mapping[str, Pool] = field(default_factory=dict)
    """Pools that are gone, as :func:`poolwise.plan.history.succession.former_pools` has them."""

    def pool(self, name: str) -> Pool | None:
        """By its name, though it be gone, as long as another one has its nodes."""
        return self.pools.get(name) or self.former.get(name)

    def total(self, pool: Pool) -> int:
        """Accelerators of the pool's usable nodes, free or not; none of nodes to come."""
        return sum(node.accelerators for node in pool.usable_nodes if not node.is_to_come)

    def free(self, pool: Pool) -> int:
        """Accelerators of the pool that nobody holds; none of nodes to come."""
        there = (node for node in pool.usable_nodes if not node.is_to_come)
        return sum(self._free_on(node, pool) for node in there)

    def total_to_come(self, pool: Pool) -> int:
        """Accelerators of nodes that the pool may still get."""
        return sum(node.accelerators for node in pool.usable_nodes if node.is_to_come)

    def free_to_come(self, pool: Pool) -> int:
        """Accelerators of nodes that the pool may still get and that nobody holds."""
        return sum(self._free_on(node, pool) for node in pool.usable_nodes if node.is_to_come)

    def holders(self, pool: Pool, nodes: Container[str] | None = None) -> dict[Key, int]:
        """Accelerators of the pool, or of some of its nodes, held by each workload, the largest
        first; of a CPU pool 0 for each. Who came with nodes from a pool that is no more is one."""
        own = {node.name for node in pool.nodes}
        held = {
            claim.key: sum(
                count
                for node, count in claim.accelerators_by_node.items()
                if nodes is None or node in nodes
            )
            for claim in self.claims
            if claim.pool == pool.name or (claim.pool not in self.pools and claim.nodes & own)
        }
        there = ((key, count) for key, count in held.items() if count or nodes is None)
        return dict(sorted(there, key=lambda item: (-item[1], str(item[0]))))

    def fit(
        self, pool: Pool, gang: Gang, levels: Iterable[str] = (), must_share: bool = False
    ) -> dict[str, int] | None:
        """Nodes with room for the whole gang: pods by node; None when it does not fit.

        ``levels`` are node labels of the fabric, nearest first: a gang goes into one domain of
        the nearest level that has room, the fullest such domain, and else anywhere in the pool,
        unless it must share a domain. Nodes to come are for those that find none that are there.
        """
        every = pool.usable_nodes
        there = tuple(node for node in every if not node.is_to_come)
        known = {level: self.domains(pool, level) for level in levels}
        pods = Pods(gang.pods, gang.packs, gang.one_per_node)
        for nodes in (there, every) if len(there) < len(every) else (every,):
            openings = list(self._openings(pool, gang, nodes))
            chosen = choose(openings, pods, known, must_share)
            if chosen is not None:
                return chosen
        return None

    def domains(self, pool: Pool, level: str) -> dict[str, Domain]:
        """By usable node: its domain of a level of the fabric, with what is free there."""
        return domains_of(((node, self._free_on(node, pool)) for node in pool.usable_nodes), level)

    def breaks(self, pool: Pool, gang: Gang, pods_by_node: Mapping[str, int]) -> Breakage:
        """Domains of the accelerators' own link that stop being whole once it runs there."""
        domains = self.domains(pool, pool.link_level)
        return breakage(pool.link_level, domains, on_each(pods_by_node, gang.accelerators))

    def has_room(self, pool: Pool, gang: Gang, pods_by_node: Mapping[str, int]) -> bool:
        """Whether these very nodes take the gang."""
        slots = self.slots(pool, gang)
        fits = all(slots.get(node, 0) >= pods for node, pods in pods_by_node.items())
        return fits and sum(pods_by_node.values()) == gang.pods

    def most_pods(self, pool: Pool, gang: Gang) -> int:
        """How many pods like the gang's would find room now."""
        return sum(self.slots(pool, gang).values())

    def takes(self, pool: Pool, gang: Gang) -> bool:
        """Whether all its pods would find room now, on whatever nodes. Every count of every pool
        asks, so no more nodes are looked at than it takes."""
        found = accumulate((slots for _, slots in self._open_nodes(pool, gang)), initial=0)
        return any(pods >= gang.pods for pods in found)

    def slots(self, pool: Pool, gang: Gang) -> dict[str, int]:
        """By node: how many pods like the gang's would find room there now, where any would."""
        return dict(self._open_nodes(pool, gang))

    def _open_nodes(self, pool: Pool, gang: Gang) -> Iterator[tuple[str, int]]:
        for node in pool.usable_nodes:
            slots = _slots(self.rooms[node.name], pool.resource or "", gang)
            if slots > 0:
                yield node.name, slots

    def takers_of_few_pods(self) -> frozenset[str]:
        """Nodes whose number of pods may run out before their devices or cores do."""
        return frozenset(name for name, room in self.rooms.items() if PODS in (room.others or ()))

    def with_claim(self, claim: Claim) -> Ledger:
        """The ledger once a workload holds its claim."""
        claims = (*self.claims, claim)
        return Ledger(self.pools, self._rooms_less(claim, 1), claims, self.former)

    def without_claim(self, claim: Claim) -> Ledger:
        """The ledger once a workload gave its claim back."""
        others = tuple(other for other in self.claims if other is not claim)
        return Ledger(self.pools, self._rooms_less(claim, -1), others, self.former)

    def with_update(self, before: Claim | None, after: Claim) -> Ledger:
        """The ledger once a workload holds its new claim, and its old pods are yet to end: the
        nodes that it leaves are free when they have."""
        if before is None:
            return self.with_claim(after)
        if resource_of(before, self.pool(before.pool)) != resource_of(after, self.pool(after.pool)):
            return self.with_claim(before).with_claim(after)
        both = replace(
            after,
            accelerators_by_node=larger(before.accelerators_by_node, after.accelerators_by_node),
            cores_by_node=larger(before.cores_by_node, after.cores_by_node),
            memory_bytes_by_node=larger(before.memory_bytes_by_node, after.memory_bytes_by_node),
            others=join_held(before.others, after.others, larger),
        )
        return self.with_claim(both)

    def _rooms_less(self, claim: Claim, factor: int) -> dict[str, Room]:
        resource = resource_of(claim, self.pool(claim.pool))
        rooms = dict(self.rooms)
        for name in claim.nodes & rooms.keys():
            rooms[name] = rooms[name].less(usage_on(name, claim, resource), factor)
        return rooms

    def _free_on(self, node: Node, pool: Pool) -> int:
        room = self.rooms.get(node.name)
        return max(0, room.accelerators.get(pool.resource or "", 0)) if room else 0

    def _openings(self, pool: Pool, gang: Gang, nodes: Iterable[Node]) -> Iterator[Opening]:
        """Those of ``nodes`` with room for at least one pod of the gang."""
        size, is_mixed = gang.accelerators, gang.cores or gang.memory_bytes
        rooms = [(node, self.rooms[node.name]) for node in nodes]
        resource = pool.resource or ""
        mean = _mean(rooms, resource, gang) if size and is_mixed else None
        domains = self.domains(pool, kept_whole(pool)) if size else {}
        for node, room in rooms:
            free = room.accelerators.get(resource, 0)
            slots = _slots(room, resource, gang)
            if slots > 0:
                strands = _strands(mean, free, room, gang) if mean else 0.0
                left_over = room.cores if pool.is_cpu else free
                domain = domains.get(node.name, NOWHERE)
                yield Opening(node, slots, left_over, strands, domain)


def packs(accelerators: int, redundancy: int) -> bool:
    """Whether replicas fill nodes that are in use before they break a whole one.

    Whole nodes are what gangs need. A service with redundancy is to survive the loss of a node,
    so its replicas keep apart; CPU nodes are of no use to gangs.
    """
    return accelerators > 0 and not redundancy


def ledger(pools: Iterable[Pool], foreign: Mapping[str, Usage]) -> Ledger:
    """What usable nodes have left beside pods that Poolwise did not place."""
    by_name = {pool.name: pool for pool in pools}
    rooms: dict[str, Room] = {}
    for pool in by_name.values():
        for node in pool.usable_nodes:
            earlier = rooms.get(node.name)
            accelerators = dict(earlier.accelerators) if earlier else {}
            if pool.resource:
                accelerators[pool.resource] = node.accelerators
            others = _others(node, accelerators, foreign.get(node.name, NOTHING))
            rooms[node.name] = Room(accelerators, node.cores, node.memory_bytes, others)
    for name, usage in foreign.items():
        if name in rooms:
            rooms[name] = rooms[name].less(usage)
    return Ledger(by_name, rooms)


def _others(node: Node, accelerators: Mapping[str, int], foreign: Usage) -> Told:
    """What else a node allocates: pods only where those of others may leave too few. Each of ours
    takes a device, or a core of a node that has none."""
    left = node.most_pods - foreign.others.get(PODS, 0)
    if left >= (sum(accelerators.values()) if accelerators else node.cores):
        return node.others
    return {**(node.others or {}), PODS: node.most_pods}


def _slots(room: Room, resource: str, gang: Gang) -> int:
    """How many pods of a gang find room on one node."""
    slots = 1 if gang.one_per_node else gang.pods
    if gang.accelerators:
        slots = min(slots, room.accelerators.get(resource, 0) // gang.accelerators)
    if gang.cores:
        slots = min(slots, times(room.cores, gang.cores))
    if gang.memory_bytes:
        slots = min(slots, times(room.memory_bytes, gang.memory_bytes))
    if room.others and PODS in room.others:
        slots = min(slots, int(room.others[PODS]))
    return pods_in(room.others, gang.others, slots) if gang.others else slots


def _mean(rooms: Iterable[tuple[Node, Room]], resource: str, gang: Gang) -> Mean:
    """Of what all pods of these nodes hold, and one more of the gang."""
    accelerators, cores, memory_bytes = float(gang.accelerators), gang.cores, gang.memory_bytes
    for node, room in rooms:
        accelerators += node.accelerators - room.accelerators.get(resource, 0)
        cores += node.cores - room.cores
        memory_bytes += node.memory_bytes - room.memory_bytes
    return Mean.of(accelerators, cores, memory_bytes)


def _strands(mean: Mean, free: int, room: Room, gang: Gang) -> float:
    """Accelerators that a pod of the gang leaves without cores or memory, more than there are."""
    before = mean.stranded(free, room.cores, room.memory_bytes)
    after = mean.stranded(
        free - gang.accelerators, room.cores - gang.cores, room.memory_bytes - gang.memory_bytes
    )
    return round(after - before, DIGITS)


def resource_of(claim: Claim, pool: Pool | None) -> str | None:
    """What the accelerators of a claim are called; its nodes outlive the pool that they were in
    (it was deleted, or a person declared another for them), or have left it without any."""
    return (pool.resource if pool else None) or claim.resource


def usage_on(node: str, claim: Claim, resource: str | None) -> Usage:
    """What a claim holds of one node."""
    count = claim.accelerators_by_node.get(node, 0)
    return Usage(
        {resource: count} if resource and count else {},
        claim.cores_by_node.get(node, 0.0),
        claim.memory_bytes_by_node.get(node, 0.0),
        {name: held[node] for name, held in claim.others.items() if node in held},
    )
