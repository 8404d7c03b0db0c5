"""The assignment as an integer programme that counts slots, and names nodes only where it must.

A pool of equal nodes looks the same from each of them, so nodes are counted: for every size ``s``
of pod that is asked for, pods of at least that size take ``floor(size / s)`` of the
``sum floor(free / s)`` slots of the pool (for ``s`` = 1: its accelerators). Where sizes divide each
other, as 1, 2, 4 and 8 do, what satisfies the counts can be packed. Where an answer cannot be
packed after all, the pool's nodes get columns of their own and the programme is solved again.

Every version is a relaxation of the exact programme, so an answer that packs is the optimum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from poolwise.plan.joint.items import OPTIMAL, STOPPED, Assignment, Choice, Floor, Item, Taken
from poolwise.plan.joint.problem import NodeState, PoolState
from poolwise.plan.joint.programme import Programme

DOMAINS = 16
"""Of a level, per choice: the smallest that take the gang. More are as good as these."""
Shape = tuple[str, int, bool, str]
"""Pool, accelerators of a pod, whether each has a node of its own, level."""
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Column:
    """A choice in one domain (empty: the whole pool)."""

    item: Item
    choice: Choice
    domain: str
    index: int


@dataclass(frozen=True, slots=True)
class Solution:
    """What the programme takes."""

    columns: tuple[Column, ...]
    nodes: Mapping[int, Mapping[str, int]]
    """Pods by node of the columns in pools whose nodes are named."""
    is_optimal: bool
    seconds: float


@dataclass(slots=True)
class Counting:
    """One version of the programme."""

    items: Sequence[Item]
    floor: Floor
    named: frozenset[str]
    """Pools whose nodes have columns."""
    programme: Programme = field(default_factory=Programme)
    columns: list[Column] = field(default_factory=list)
    pods: dict[tuple[int, str], int] = field(default_factory=dict)
    """Column of the pods that a choice's column has on a node."""
    slots: dict[Shape, dict[str, int]] = field(default_factory=dict)
    unit: float = 1.0
    """The largest value: the solver's tolerances are absolute."""

    def __post_init__(self) -> None:
        pools = {pool.name: pool for pool in self.floor.pools}
        values = (each.value for item in self.items for each in item.choices if each.value > 0)
        self.unit = max(values, default=1.0)
        for item in self.items:
            self._add(item, pools)
        self._limit_namespaces()
        for pool in self.floor.pools:
            mine = [each for each in self.columns if each.choice.option.pool == pool.name]
            if mine and pool.name in self.named:
                self._name_nodes(mine, pool)
            elif mine:
                self._count_slots(mine, pool)

    def answer(self, seconds: float, start: Assignment) -> Solution:
        """The best in so many seconds, from an answer that is known."""
        found = self.programme.whole(seconds, self._start(start))
        values = found.columns or (0.0,) * len(self.programme.values)
        taken = tuple(each for each in self.columns if values[each.index] > _HALF)
        nodes: dict[int, dict[str, int]] = {each.index: {} for each in taken}
        for (owner, node), index in self.pods.items():
            if owner in nodes and values[index] > _HALF:
                nodes[owner][node] = round(values[index])
        return Solution(taken, nodes, found.is_optimal, found.seconds)

    def _add(self, item: Item, pools: Mapping[str, PoolState]) -> None:
        row = self.programme.row(most=1.0)
        for choice in item.choices:
            pool = pools.get(choice.option.pool)
            if choice.value <= 0 or pool is None:
                continue
            for domain in self._domains(choice, pool):
                index = self.programme.column(choice.value / self.unit, {row: 1.0}, most=1.0)
                self.columns.append(Column(item, choice, domain, index))

    def _domains(self, choice: Choice, pool: PoolState) -> Iterable[str]:
        """Where the choice may go: the pool, or the smallest domains of its level with room."""
        option = choice.option
        shape = (pool.name, option.accelerators_per_pod, option.one_per_node, option.level)
        if shape not in self.slots:
            self.slots[shape] = _slots(shape, pool)
        found = self.slots[shape].items()
        fitting = sorted((count, value) for value, count in found if count >= option.pods)
        return [value for _, value in fitting[:DOMAINS]]

    def _limit_namespaces(self) -> None:
        for namespace, most in self.floor.limits.items():
            row = self.programme.row(most=float(most))
            for each in self.columns:
                if each.item.namespace == namespace:
                    self.programme.add(row, each.index, each.choice.option.counted)

    def _count_slots(self, columns: Iterable[Column], pool: PoolState) -> None:
        for moment in _moments(self.floor, pool):
            late = [each for each in columns if each.choice.until > moment]
            free = _free(self.floor, pool, moment)
            self._count(late, pool.nodes, free)
            for domain, nodes in _by_domain(late, pool).items():
                inside = [
                    each for each in late if (each.choice.option.level, each.domain) == domain
                ]
                self._count(inside, nodes, free)

    def _count(
        self, columns: Sequence[Column], nodes: Iterable[NodeState], free: Mapping[str, int]
    ) -> None:
        frees = [free[node.name] for node in nodes]
        for size in {each.choice.option.accelerators_per_pod for each in columns} | {1}:
            row = self.programme.row(most=float(sum(count // size for count in frees)))
            for each in columns:
                option = each.choice.option
                taken = option.pods * (option.accelerators_per_pod // size)
                self.programme.add(row, each.index, taken)

    def _name_nodes(self, columns: Sequence[Column], pool: PoolState) -> None:
        for each in columns:
            option = each.choice.option
            whole = self.programme.row(0.0, 0.0)
            self.programme.add(whole, each.index, -option.pods)
            for node in pool.nodes:
                if _is_inside(node, each):
                    most = 1 if option.one_per_node else option.pods
                    pods = self.programme.column(0.0, {whole: 1.0}, float(most))
                    self.pods[each.index, node.name] = pods
        for moment in _moments(self.floor, pool):
            late = [each for each in columns if each.choice.until > moment]
            for name, free in _free(self.floor, pool, moment).items():
                row = self.programme.row(most=float(free))
                for each in late:
                    if (each.index, name) in self.pods:
                        size = each.choice.option.accelerators_per_pod
                        self.programme.add(row, self.pods[each.index, name], size)

    def _start(self, known: Assignment) -> list[float]:
        values = [0.0] * len(self.programme.values)
        labels = {node.name: node.domains for pool in self.floor.pools for node in pool.nodes}
        for each in self.columns:
            taken = known.taken.get(each.item.key)
            if taken is None or taken.choice is not each.choice:
                continue
            level = each.choice.option.level
            if level and labels[next(iter(taken.nodes))].get(level) != each.domain:
                continue
            values[each.index] = 1.0
            for node, pods in taken.nodes.items():
                if (each.index, node) in self.pods:
                    values[self.pods[each.index, node]] = float(pods)
        return values


def optimised(items: Sequence[Item], floor: Floor, start: Assignment, seconds: float) -> Assignment:
    """The best assignment that is found in so many seconds; never worse than the start."""
    named: frozenset[str] = frozenset()
    best = start
    while seconds > 0:
        answer = Counting(items, floor, named).answer(seconds, best)
        seconds -= answer.seconds
        found, failed = _packed(answer, floor)
        if found.objective > best.objective:
            best = found
        if not failed or failed <= named:
            solver = OPTIMAL if answer.is_optimal else STOPPED
            return Assignment(best.taken, solver)
        named |= failed
    return Assignment(best.taken, STOPPED)


def _packed(answer: Solution, floor: Floor) -> tuple[Assignment, frozenset[str]]:
    """The answer on nodes, and the pools in which something found no room."""
    rooms, taken, failed = floor.rooms(), {}, set()
    for each in sorted(answer.columns, key=_largest_pods_first):
        option = each.choice.option
        nodes = answer.nodes[each.index] or rooms.fit(option, each.choice.until, each.domain)
        if nodes is None:
            failed.add(option.pool)
            continue
        rooms.take(option, nodes)
        taken[each.item.key] = Taken(each.choice, nodes)
    return Assignment(taken), frozenset(failed)


def _largest_pods_first(column: Column) -> tuple[bool, int, int, str]:
    option = column.choice.option
    return not option.one_per_node, -option.accelerators_per_pod, -option.pods, column.item.key


def _slots(shape: Shape, pool: PoolState) -> dict[str, int]:
    """Room for pods of this shape by domain of its level; without one, of the whole pool."""
    _, size, one_per_node, level = shape
    slots: dict[str, int] = {}
    for node in pool.nodes:
        value = node.domains.get(level) if level else ""
        if value is not None:
            each = node.free // size
            slots[value] = slots.get(value, 0) + (min(each, 1) if one_per_node else each)
    return slots


def _by_domain(
    columns: Iterable[Column], pool: PoolState
) -> dict[tuple[str, str], list[NodeState]]:
    """Nodes of each (level, domain) that columns are about."""
    wanted = {(each.choice.option.level, each.domain) for each in columns if each.domain}
    return {
        (level, value): [node for node in pool.nodes if node.domains.get(level) == value]
        for level, value in sorted(wanted)
    }


def _is_inside(node: NodeState, column: Column) -> bool:
    option = column.choice.option
    is_in_domain = not option.level or node.domains.get(option.level) == column.domain
    return is_in_domain and node.free >= option.accelerators_per_pod


def _moments(floor: Floor, pool: PoolState) -> list[float]:
    """From which on room is held back: for all now, and for who still runs at each start."""
    starts: set[float] = {hold.starts for hold in floor.holds.get(pool.name, ())}
    return [-math.inf, *sorted(starts)]


def _free(floor: Floor, pool: PoolState, moment: float) -> dict[str, int]:
    """By node: what is left for who still runs at that moment."""
    free = {node.name: max(node.free, 0) for node in pool.nodes}
    for hold in floor.holds.get(pool.name, ()):
        if hold.starts <= moment:
            free[hold.node] = max(0, free[hold.node] - hold.accelerators)
    return free
