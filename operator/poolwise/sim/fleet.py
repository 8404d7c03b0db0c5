"""Pools of nodes, and which of their accelerators are free."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes with one kind of accelerator."""

    name: str
    nodes: tuple[int, ...]
    """Accelerators of each node."""
    price_per_accelerator_hour: float = 0.0

    @property
    def accelerators(self) -> int:
        """Of all its nodes."""
        return sum(self.nodes)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a whole job runs."""

    pool: str
    nodes: tuple[tuple[int, int], ...]
    """(index of the node in its pool, accelerators taken there)."""

    @property
    def accelerators(self) -> int:
        """Of all its nodes."""
        return sum(count for _, count in self.nodes)

    @property
    def is_packed(self) -> bool:
        """Whether it is all on one node."""
        return len(self.nodes) == 1


class Room:
    """Free accelerators by pool and node. Changes in place; :meth:`copy` to try something out."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._free = {pool.name: list(pool.nodes) for pool in pools}

    def copy(self) -> Room:
        """One that changes apart from this one."""
        other = Room(())
        other._free = {name: list(free) for name, free in self._free.items()}
        return other

    def free(self, pool: str) -> Sequence[int]:
        """By node."""
        return self._free[pool]

    def total(self) -> int:
        """Free accelerators of all pools."""
        return sum(sum(free) for free in self._free.values())

    def take(self, placement: Placement) -> None:
        """ValueError where less is free."""
        free = self._free[placement.pool]
        for node, count in placement.nodes:
            if free[node] < count:
                raise ValueError(f"{placement.pool}/{node} has {free[node]} free, not {count}")
            free[node] -= count

    def give(self, placement: Placement) -> None:
        """Undoes :meth:`take`."""
        free = self._free[placement.pool]
        for node, count in placement.nodes:
            free[node] += count

    def packed(self, pool: str, count: int) -> Placement | None:
        """On the one node that it leaves least of (best fit)."""
        fitting = [(free, node) for node, free in enumerate(self._free[pool]) if free >= count]
        return Placement(pool, ((min(fitting)[1], count),)) if fitting else None

    def spread(self, pool: str, count: int) -> Placement | None:
        """On as few nodes as possible, the last of them by best fit."""
        whole = self.packed(pool, count)
        if whole is not None or sum(self._free[pool]) < count:
            return whole
        return Placement(pool, tuple(self._fewest(pool, count)))

    def _fewest(self, pool: str, count: int) -> Iterator[tuple[int, int]]:
        rest = sorted(((free, node) for node, free in enumerate(self._free[pool]) if free))
        while count:
            last = next(((free, node) for free, node in rest if free >= count), None)
            free, node = last or rest[-1]
            rest.remove((free, node))
            yield node, min(free, count)
            count -= min(free, count)
