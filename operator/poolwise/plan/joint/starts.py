"""What starts, on its nodes, and what is left beside it while that is changed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from poolwise.plan.joint.bids import Bid
from poolwise.plan.joint.items import Assignment, Choice, Floor, Taken
from poolwise.plan.joint.rooms import Rooms


@dataclass(slots=True)
class Starts:
    """An answer that is being improved. Changed by :meth:`take` and :meth:`give_back`."""

    taken: dict[str, Taken]
    """By workload."""
    bids: Mapping[str, Bid]
    """By workload: of everybody who may start; of what runs and moves there is none."""
    rooms: Rooms
    limits: dict[str, int]
    """Accelerators that a namespace may still take; absent: all."""

    @staticmethod
    def of(answer: Assignment, bids: Mapping[str, Bid], rooms: Rooms, floor: Floor) -> Starts:
        """The answer on nodes that are all to be had; ``rooms`` tells what is kept of them."""
        found = Starts({}, bids, rooms, dict(floor.limits))
        for key, each in answer.taken.items():
            found.take(key, each)
        return found

    def fit(self, key: str, choice: Choice) -> Taken | None:
        """The choice on its nodes; None where it has no room, or its namespace no share left."""
        option = choice.option
        if option.counted > self.limits.get(self._namespace(key), math.inf):
            return None
        nodes = self.rooms.fit(option, choice.until)
        return None if nodes is None else Taken(choice, nodes)

    def take(self, key: str, start: Taken) -> None:
        """Starts it there."""
        self.rooms.take(start.choice.option, start.nodes)
        self._spend(key, start.choice.option.counted)
        self.taken[key] = start

    def give_back(self, key: str) -> Taken:
        """Undoes :meth:`take`: the start that it had."""
        start = self.taken.pop(key)
        self.rooms.give_back(start.choice.option, start.nodes)
        self._spend(key, -start.choice.option.counted)
        return start

    def answer(self, solver: str) -> Assignment:
        """As it stands."""
        return Assignment(self.taken, solver)

    def _namespace(self, key: str) -> str:
        """Whose share it takes of: what moves holds no more than before."""
        return self.bids[key].workload.namespace if key in self.bids else ""

    def _spend(self, key: str, accelerators: int) -> None:
        if self._namespace(key) in self.limits:
            self.limits[self._namespace(key)] -= accelerators
