"""Which of many workloads start now, and where, so that the sum of their values is largest.

Given are values; gangs are whole, nodes are never over-filled, and a gang that asks for one domain
of a level gets one. The greedy answer is always there; the integer programme (:mod:`.counting`)
starts from it, and is taken only if it is better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from poolwise.plan.joint.counting import optimised
from poolwise.plan.joint.greedy import greedy
from poolwise.plan.joint.items import SOLVERS, Assignment, Choice, Floor, Item, Taken
from poolwise.plan.joint.problem import PoolState

__all__ = ["Assignment", "Choice", "Item", "Taken", "assign", "assigned", "tiered"]


def assign(
    items: Sequence[Item],
    pools: Iterable[PoolState],
    limits: Mapping[str, int] | None = None,
    time_limit_seconds: float = 1.0,
    optimise: bool = True,
) -> Assignment:
    """At most one choice of each item; ``limits`` are accelerators by namespace."""
    floor = Floor(tuple(pools), limits or {})
    return assigned(items, floor, time_limit_seconds if optimise else 0.0)


def assigned(
    items: Sequence[Item], floor: Floor, seconds: float, start: Assignment | None = None
) -> Assignment:
    """The best of the start, the greedy answer, and what the optimiser finds in so many seconds."""
    known = [answer for answer in (start, greedy(items, floor)) if answer is not None]
    best = max(known, key=lambda answer: answer.objective)
    return optimised(items, floor, best, seconds) if seconds > 0 else best


def tiered(
    tiers: Sequence[Sequence[Item]], floor: Floor, seconds: float, start: Assignment
) -> Assignment:
    """Tier after tier on what the ones before left; the start where that is worth no less."""
    found, solver = dict[str, Taken](), start.solver
    for items in tiers:
        mine = _of(items, start, floor)
        answer = assigned(items, floor, seconds / len(tiers), mine)
        found |= answer.taken
        solver = max(solver, answer.solver, key=SOLVERS.index)
        floor = floor.without(_with_namespaces(items, answer))
    answer = Assignment(found, solver)
    return answer if answer.objective > start.objective else Assignment(start.taken, solver)


def _of(items: Sequence[Item], start: Assignment, floor: Floor) -> Assignment | None:
    """What the start has of these items, where that still finds room."""
    taken = {each.key: start.taken[each.key] for each in items if each.key in start.taken}
    answer = Assignment(taken)
    is_possible = floor.without(_with_namespaces(items, answer)).is_possible
    return answer if is_possible else None


def _with_namespaces(items: Iterable[Item], answer: Assignment) -> Iterator[tuple[str, Taken]]:
    return ((each.namespace, answer.taken[each.key]) for each in items if each.key in answer.taken)
