"""The assignment as values: items with their choices, what there is to give away, what is taken."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from poolwise.plan.joint.problem import Option, PoolState
from poolwise.plan.joint.rooms import Hold, Rooms

GREEDY, OPTIMAL, STOPPED = SOLVERS = ("greedy", "milp", "milp, stopped at its limit")
"""How an answer was found, by what has to be said of it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One option of an item that may start now."""

    option: Option
    value: float
    """What it is worth; never taken at 0 or less."""
    until: float = math.inf
    """When it surely has ended: what is held back from then on does not concern it."""


@dataclass(frozen=True, slots=True)
class Item:
    """One workload, which gets one of its choices or none."""

    key: str
    namespace: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Taken:
    """A choice with its nodes."""

    choice: Choice
    nodes: Mapping[str, int]
    """Pods by node."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What starts."""

    taken: Mapping[str, Taken]
    """By item."""
    solver: str = GREEDY

    @property
    def objective(self) -> float:
        """Sum of the values of what is taken."""
        return math.fsum(each.choice.value for each in self.taken.values())


@dataclass(frozen=True, slots=True)
class Floor:
    """What there is to give away."""

    pools: tuple[PoolState, ...]
    limits: Mapping[str, int] = field(default_factory=dict)
    """Accelerators that a namespace may still take; absent: all."""
    holds: Mapping[str, tuple[Hold, ...]] = field(default_factory=dict)
    """By pool: what is kept for who starts later."""

    def without(self, taken: Iterable[tuple[str, Taken]]) -> Floor:
        """What is left; each taken with the namespace that takes it."""
        free = {node.name: node.free for pool in self.pools for node in pool.nodes}
        limits = dict(self.limits)
        for namespace, each in taken:
            for node, pods in each.nodes.items():
                free[node] -= pods * each.choice.option.accelerators_per_pod
            if namespace in limits:
                limits[namespace] -= each.choice.option.counted
        pools = (
            replace(pool, nodes=tuple(replace(node, free=free[node.name]) for node in pool.nodes))
            for pool in self.pools
        )
        return Floor(tuple(pools), limits, self.holds)

    @property
    def is_possible(self) -> bool:
        """Whether nothing was given away twice."""
        nodes = all(node.free >= 0 for pool in self.pools for node in pool.nodes)
        return nodes and all(left >= 0 for left in self.limits.values())

    def rooms(self) -> Rooms:
        """To be filled."""
        rooms = Rooms(self.pools)
        for pool, holds in self.holds.items():
            rooms.hold(pool, holds)
        return rooms
