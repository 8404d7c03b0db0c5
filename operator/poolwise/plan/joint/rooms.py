"""Free accelerators by node while one pass gives them away.

Nodes of a pool are kept by how many accelerators they have free, so that a gang finds its nodes
without looking at all of them. Room that a reservation holds back is for those who end before it
starts.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from poolwise.plan.joint.problem import NodeState, Option, PoolState

Nodes = Mapping[str, int]
"""Pods by node."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Accelerators of a node that are kept for a gang."""

    node: str
    accelerators: int
    starts: float
    key: str
    """Of the gang."""


class Rooms:
    """What is free now. Changed by :meth:`take`, :meth:`give_back` and :meth:`hold`."""

    def __init__(self, pools: Iterable[PoolState]) -> None:
        self._nodes = {pool.name: pool.nodes for pool in pools}
        self._floors: dict[str, _Floor] = {}

    def free(self, pool: str) -> int:
        """Accelerators of a pool that nobody has, held back or not."""
        return self._floor(pool).free

    def fit(
        self, option: Option, until: float = math.inf, domain: str = ""
    ) -> dict[str, int] | None:
        """Nodes for a whole gang that runs until then: pods by node; None where it has no room.

        ``domain``: the one of the option's level that it must go to; empty: any.
        """
        if not option.pods:  # a service of which somebody wants no replica now
            return {}
        floor = self._floor(option.pool)
        if floor.free < option.accelerators:
            return None
        if option.level:
            found = floor.domains(option, until)
            return _nearest([found[domain]] if domain in found else found.values(), option)
        return _packed(floor.openings(option.accelerators_per_pod, until), option)

    def take(self, option: Option, nodes: Nodes) -> None:
        """Gives a gang its nodes."""
        for node, pods in nodes.items():
            self._floor(option.pool).take(node, pods * option.accelerators_per_pod)

    def give_back(self, option: Option, nodes: Nodes) -> None:
        """Undoes :meth:`take`."""
        for node, pods in nodes.items():
            self._floor(option.pool).take(node, -pods * option.accelerators_per_pod)

    def hold(self, pool: str, holds: Iterable[Hold]) -> None:
        """Keeps room for a gang that starts later."""
        for each in holds:
            self._floor(pool).hold(each)

    def _floor(self, pool: str) -> _Floor:
        """Worked out when first asked for: few passes come to all pools. Of one that is not known,
        without nodes."""
        if pool not in self._floors:
            self._floors[pool] = _Floor(self._nodes.get(pool, ()))
        return self._floors[pool]


class Openings:
    """Slots for pods of one size: nodes by how many each has room for."""

    def __init__(self) -> None:
        self.names: dict[int, list[str]] = {}
        """By slots, in the order in which they are to be filled: fewest accelerators free first."""

    def add(self, slots: int, names: Iterable[str]) -> None:
        """More nodes with room for so many pods."""
        if slots > 0:
            self.names.setdefault(slots, []).extend(names)

    def count(self, one_per_node: bool) -> int:
        """How many pods there is room for."""
        if one_per_node:
            return sum(map(len, self.names.values()))
        return sum(slots * len(names) for slots, names in self.names.items())

    def fullest_first(self) -> Iterator[str]:
        """All nodes, those with fewest slots first."""
        for slots in sorted(self.names):
            yield from self.names[slots]


class _Floor:
    """One pool's nodes by free accelerators."""

    def __init__(self, nodes: Iterable[NodeState]) -> None:
        self._free = {node.name: node.free for node in nodes}
        self._domains = {node.name: node.domains for node in nodes}
        self._held: dict[str, list[Hold]] = {}
        self._names: dict[int, list[str]] = {}
        for name in sorted(self._free):
            self._names.setdefault(self._free[name], []).append(name)
        self.free = sum(max(count, 0) for count in self._free.values())

    def openings(self, accelerators: int, until: float) -> Openings:
        found = Openings()
        for free in sorted(self._names):
            if free < accelerators:
                continue
            names = self._names[free]
            if not self._held:
                found.add(free // accelerators, names)
                continue
            for name in names:
                found.add(self._usable(name, free, until) // accelerators, (name,))
        return found

    def domains(self, option: Option, until: float) -> dict[str, Openings]:
        found: dict[str, Openings] = {}
        everywhere = self.openings(option.accelerators_per_pod, until)
        for slots, names in everywhere.names.items():
            for name in names:
                value = self._domains[name].get(option.level)
                if value:
                    found.setdefault(value, Openings()).add(slots, (name,))
        return dict(sorted(found.items()))

    def take(self, node: str, accelerators: int) -> None:
        free = self._free[node]
        self._names[free].remove(node)
        self._free[node] = free - accelerators
        insort(self._names.setdefault(free - accelerators, []), node)
        self.free -= accelerators

    def hold(self, hold: Hold) -> None:
        self._held.setdefault(hold.node, []).append(hold)

    def _usable(self, node: str, free: int, until: float) -> int:
        held = self._held.get(node, ())
        return free - sum(each.accelerators for each in held if each.starts < until)


def _nearest(domains: Iterable[Openings], option: Option) -> dict[str, int] | None:
    """In the domain with the fewest slots that takes the whole gang."""
    rooms = [(each.count(option.one_per_node), each) for each in domains]
    fitting = [(count, each) for count, each in rooms if count >= option.pods]
    if not fitting:
        return None
    return _packed(min(fitting, key=lambda pair: pair[0])[1], option)


def _packed(openings: Openings, option: Option) -> dict[str, int] | None:
    """Pods by node, on nodes that are in use already where that is no loss to the gang."""
    if openings.count(option.one_per_node) < option.pods:
        return None
    if option.one_per_node:
        names = openings.fullest_first()
        return {name: 1 for name, _ in zip(names, range(option.pods), strict=False)}
    return _on_fewest(openings, option.pods)


def _on_fewest(openings: Openings, pods: int) -> dict[str, int]:
    """The smallest opening that takes what is left, and as long as there is none the largest."""
    left = [(slots, name) for slots in sorted(openings.names) for name in openings.names[slots]]
    chosen: dict[str, int] = {}
    while left[-1][0] < pods:
        slots, name = left.pop()
        chosen[name] = slots
        pods -= slots
    return {**chosen, left[bisect_left(left, (pods, ""))][1]: pods}
