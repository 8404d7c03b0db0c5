"""When room comes free: what runs ends, and what waits ahead takes its place.

Two lower bounds, of which the later is told. Accelerators of a pool are counted, less those that
who waits ahead will take; and a gang that wants its accelerators together waits for nodes that are
empty enough.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from poolwise.plan.joint.problem import NodeState, Option, PoolState, Workload
from poolwise.plan.joint.rooms import Hold


@dataclass(frozen=True, slots=True)
class Slot:
    """Room for one pod from some moment on."""

    at: float
    node: str


class Timeline:
    """Moments at which pools have room. Changed by :meth:`book` and :meth:`start` only."""

    def __init__(
        self, pools: Iterable[PoolState], workloads: Iterable[Workload], now: float
    ) -> None:
        self._now = now
        self._floors = {pool.name: _Floor(pool.nodes, now) for pool in pools}
        for each in workloads:
            running = each.running
            if running is not None and running.option.pool in self._floors:
                until = math.inf
                if running.option.seconds is not None:
                    until = now + running.option.seconds.mid
                self._floors[running.option.pool].release(running.option, running.nodes, until)
        for floor in self._floors.values():
            floor.count()

    def earliest(self, option: Option) -> float:
        """When the whole gang may start; infinite where nobody can tell."""
        floor = self._floors.get(option.pool)
        if floor is None:
            return math.inf
        counted = floor.earliest_count(option.accelerators)
        if not math.isfinite(counted) or (option.accelerators_per_pod == 1 and not option.level):
            return counted
        return max(counted, floor.earliest_gang(option))

    def after(self, pool: str) -> float:
        """The next moment at which something comes free."""
        entries = self._floors[pool].entries
        return next((at for at, _ in entries if at > self._now), math.inf)

    def holds(self, option: Option, key: str) -> tuple[Hold, ...]:
        """What is to be held back now for a gang until its nodes are empty.

        What running workloads give back before then is used first, so that only the rest is taken
        from what is free now.
        """
        floor = self._floors.get(option.pool)
        return floor.holds(option, key) if floor is not None else ()

    def holds_ever(self, option: Option, taken: Mapping[str, int]) -> bool:
        """Whether its nodes could be empty enough at any time, if of these so many accelerators
        were taken for good."""
        floor = self._floors.get(option.pool)
        return floor is not None and floor.holds_ever(option, taken)

    def book(self, option: Option, until: float) -> None:
        """Who waits takes the first room that there is, and gives it back when done."""
        self._floors[option.pool].book(option.accelerators, until)

    def start(self, option: Option, nodes: Mapping[str, int], until: float) -> None:
        """Who starts takes room on its nodes."""
        floor = self._floors[option.pool]
        floor.book(option.accelerators, until)
        floor.take(option, nodes, until)


class _Floor:
    """One pool."""

    def __init__(self, nodes: Iterable[NodeState], now: float) -> None:
        self._now = now
        self._nodes = {node.name: node for node in nodes}
        self._free = {name: max(node.free, 0) for name, node in self._nodes.items()}
        self._releases: dict[str, list[tuple[float, int]]] = {}
        self._gangs: dict[tuple[int, int, bool, str], list[Slot]] = {}
        self._ever: dict[tuple[int, int, str], Mapping[str, int]] = {}
        self.entries: list[tuple[float, int]] = []
        """Accelerators by the moment from which on nobody has booked them."""

    def release(self, option: Option, nodes: Mapping[str, int], until: float) -> None:
        """What runs holds its nodes until then."""
        for node, pods in nodes.items():
            if node in self._nodes and math.isfinite(until):
                insort(self._releases.setdefault(node, []), (until, self._size(option, pods)))

    def count(self) -> None:
        """Adds up what is free, and what will be."""
        later = [each for releases in self._releases.values() for each in releases]
        free = sum(self._free.values())
        self.entries = sorted([*later, (self._now, free)] if free else later)

    def earliest_count(self, accelerators: int) -> float:
        for at, count in self.entries:
            accelerators -= count
            if accelerators <= 0:
                return at
        return math.inf

    def earliest_gang(self, option: Option) -> float:
        slots = self._gang(option)
        return slots[-1].at if slots else math.inf

    def book(self, accelerators: int, until: float) -> None:
        entries, missing = self.entries, accelerators
        while missing and entries:
            at, count = entries[0]
            taken = min(count, missing)
            missing -= taken
            if taken == count:
                entries.pop(0)
            else:
                entries[0] = (at, count - taken)
        if math.isfinite(until):
            insort(entries, (until, accelerators - missing))

    def take(self, option: Option, nodes: Mapping[str, int], until: float) -> None:
        for node, pods in nodes.items():
            self._free[node] -= self._size(option, pods)
        self.release(option, nodes, until)
        self._gangs.clear()
        self._ever.clear()

    def holds(self, option: Option, key: str) -> tuple[Hold, ...]:
        slots = self._gang(option)
        if not slots:
            return ()
        starts, pods = slots[-1].at, Counter(slot.node for slot in slots)
        wanted = {node: self._size(option, count) for node, count in pods.items()}
        kept = (
            Hold(name, n - self._given_back(name, starts), starts, key)
            for name, n in wanted.items()
        )
        return tuple(each for each in kept if each.accelerators > 0)

    def holds_ever(self, option: Option, taken: Mapping[str, int]) -> bool:
        lost: dict[str, int] = {}
        for name, count in taken.items():
            domain = self._domain(name, option)
            fewer = self._slots_ever(name, option) - self._slots_ever(name, option, count)
            lost[domain] = lost.get(domain, 0) + fewer
        slots = self._by_domain(option).items()
        return any(count - lost.get(domain, 0) >= option.pods for domain, count in slots)

    def _by_domain(self, option: Option) -> Mapping[str, int]:
        """Slots for its pods that there could be at any time."""
        size, most = option.accelerators_per_pod, 1 if option.one_per_node else option.pods
        shape = size, most, option.level
        if shape not in self._ever:
            found: dict[str, int] = {}
            for name in self._nodes:
                domain = self._domain(name, option)
                if domain:
                    found[domain] = found.get(domain, 0) + self._slots_ever(name, option)
            self._ever[shape] = found
        return self._ever[shape]

    def _slots_ever(self, node: str, option: Option, taken: int = 0) -> int:
        most = 1 if option.one_per_node else option.pods
        ever = self._free[node] + self._given_back(node, math.inf) - taken
        return min(max(ever, 0) // option.accelerators_per_pod, most)

    def _domain(self, node: str, option: Option) -> str:
        return self._nodes[node].domains.get(option.level, "") if option.level else "pool"

    def _given_back(self, node: str, until: float) -> int:
        return sum(count for at, count in self._releases.get(node, ()) if at <= until)

    def _gang(self, option: Option) -> list[Slot]:
        """Slots of the gang that are free first, in the domain where the last of them is."""
        size, pods = option.accelerators_per_pod, option.pods
        shape = (pods, size, option.one_per_node, option.level)
        if shape not in self._gangs:
            domains: dict[str, list[Slot]] = {}
            for node in self._nodes.values():
                value = self._domain(node.name, option)
                if value:
                    domains.setdefault(value, []).extend(self._slots(node.name, option))
            found = [sorted(slots, key=_moment)[:pods] for slots in domains.values()]
            whole = [slots for slots in found if len(slots) == pods]
            self._gangs[shape] = min(whole, key=lambda slots: _moment(slots[-1]), default=[])
        return self._gangs[shape]

    def _slots(self, node: str, option: Option) -> list[Slot]:
        """When the node has room for its first pod, its second, ..."""
        size, most = option.accelerators_per_pod, 1 if option.one_per_node else option.pods
        free = self._free[node]
        found = [Slot(self._now, node)] * min(free // size, most)
        for at, count in self._releases.get(node, ()):
            free += count
            found += [Slot(at, node)] * (min(free // size, most) - len(found))
        return found

    def _size(self, option: Option, pods: int) -> int:
        return pods * option.accelerators_per_pod


def _moment(slot: Slot) -> tuple[float, str]:
    return slot.at, slot.node
