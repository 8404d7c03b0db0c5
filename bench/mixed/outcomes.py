"""What comes of a queue: when each of its runs is done, and what its services lose for good.

:func:`followed` asks the planner at every arrival and end, as the operator does; :func:`assigned`
keeps each workload to one option and starts it, in the planner's order, as soon as it has room.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from poolwise.model.prediction import Interval
from poolwise.plan.joint.outcome import Act, Decision, JointPlan
from poolwise.plan.joint.planning import plan
from poolwise.plan.joint.problem import (
    SERVICE_SECONDS,
    Option,
    PoolState,
    Problem,
    Running,
    Workload,
)
from poolwise.plan.joint.walk import SERVICE_IMPATIENCE

Starts = Mapping[str, tuple[float, Option]]
"""By workload that ever starts: when, in seconds from now, and how."""
DONE_SECONDS = 1e-6
"""A run that has so little left is done."""


class _End(NamedTuple):
    """A node's accelerators that come free."""

    at: float
    pool: str
    node: int
    accelerators: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one queue."""

    for_ever: int
    """Workloads that wait without end."""
    lost: float
    """Sum over services: by what share each pays more than on its best pool."""
    waited_seconds: float
    """Sum over services."""
    done_seconds: float
    """Sum over runs: from now to the end."""
    per_hour: float
    """Cost of all services."""
    cost: float
    """Of all runs to their ends."""

    @property
    def rank(self) -> tuple[int, float]:
        """The planner's own objective: who waits without end, then the delay of all in seconds."""
        served = SERVICE_SECONDS * self.lost + SERVICE_IMPATIENCE * self.waited_seconds
        return self.for_ever, served + self.done_seconds


def outcome(workloads: Iterable[Workload], starts: Starts) -> Outcome:
    """Of workloads that waited; services are best where they cost least."""
    for_ever, lost, waited, done, per_hour, cost = 0, 0.0, 0.0, 0.0, 0.0, 0.0
    for each in workloads:
        if each.key not in starts:
            for_ever += 1
            continue
        at, option = starts[each.key]
        at -= each.created
        if option.seconds is None:
            lost += option.aim / min(one.aim for one in each.options) - 1.0
            waited += at
            per_hour += option.cost_per_hour
        else:
            done += at + option.seconds.mid
            cost += option.cost or 0.0
    return Outcome(for_ever, lost, waited, done, per_hour, cost)


def followed(problem: Problem) -> Outcome:
    """What the planner makes of a queue, asked whenever something comes or ends."""
    pending = [each for each in problem.workloads if each.running is None]
    to_come = sorted((each for each in pending if each.created > problem.now), key=_latest_first)
    here = tuple(each for each in problem.workloads if each.created <= problem.now)
    starts: dict[str, tuple[float, Option]] = {}
    state: Problem | None = replace(problem, workloads=here)
    while state is not None:
        found = plan(state)
        for each in _starting(found):
            assert each.option is not None, "what starts has an option"
            starts[each.key] = state.now, each.option
        state = _after(state, found, to_come)
    return outcome(pending, starts)


def _latest_first(workload: Workload) -> float:
    return -workload.created


def _starting(found: JointPlan) -> Iterator[Decision]:
    return (each for each in found.decisions if each.act is Act.START)


def _after(problem: Problem, found: JointPlan, to_come: list[Workload]) -> Problem | None:
    """The moment of the next end or arrival; None where nobody waits, or nothing happens."""
    free = {node.name: node.free for pool in problem.pools for node in pool.nodes}
    works = {each.key: each for each in _started(problem, found, free)}
    arrives = to_come[-1].created - problem.now if to_come else math.inf
    passed = min([arrives, *map(_left, works.values())])
    waits = bool(to_come) or any(each.running is None for each in works.values())
    if math.isinf(passed) or not waits:
        return None
    later = list(_passed(works.values(), passed, free))
    while to_come and to_come[-1].created <= problem.now + passed:
        later.append(to_come.pop())
    pools = tuple(
        PoolState(pool.name, tuple(replace(node, free=free[node.name]) for node in pool.nodes))
        for pool in problem.pools
    )
    return replace(
        problem, now=problem.now + passed, pools=pools, workloads=tuple(later),
        reservations=found.reservations,
    )  # fmt: skip


def _started(problem: Problem, found: JointPlan, free: dict[str, int]) -> Iterator[Workload]:
    """All workloads, those that start where they start; takes what they take."""
    starting = {each.key: each for each in _starting(found)}
    for work in problem.workloads:
        decision = starting.get(work.key)
        option = decision.option if decision is not None else None
        if decision is None or option is None:
            yield work
            continue
        for node, pods in decision.nodes.items():
            free[node] -= pods * option.accelerators_per_pod
        yield replace(work, running=Running(option, dict(decision.nodes), problem.now))


def _left(each: Workload) -> float:
    seconds = each.running.option.seconds if each.running else None
    return seconds.mid if seconds else math.inf


def _passed(
    workloads: Iterable[Workload], passed: float, free: dict[str, int]
) -> Iterator[Workload]:
    """Who is still there; the others give back what they held."""
    for each in workloads:
        left, running = _left(each) - passed, each.running
        if running is None or math.isinf(left):
            yield each
        elif left > DONE_SECONDS:
            option = replace(running.option, seconds=Interval(left, left, left))
            yield replace(each, running=replace(running, option=option))
        else:
            for node, pods in running.nodes.items():
                free[node] += pods * running.option.accelerators_per_pod


def best(problem: Problem) -> Outcome:
    """The least by rank over all assignments of workloads to options."""
    waiting = [each for each in problem.workloads if each.running is None]
    ways = product(*(each.options for each in waiting))
    outcomes = (outcome(waiting, assigned(problem, waiting, way)) for way in ways)
    return min(outcomes, key=lambda each: each.rank)


def assigned(problem: Problem, waiting: Sequence[Workload], way: Sequence[Option]) -> Starts:
    """Starts of workloads that are kept to these options."""
    free = {pool.name: [node.free for node in pool.nodes] for pool in problem.pools}
    ends = sorted(_ends(problem.pools, problem.workloads))
    left = sorted(zip(waiting, way, strict=True), key=_order)
    starts: dict[str, tuple[float, Option]] = {}
    now = 0.0
    while True:
        for each, option in left:
            nodes = _fit(free[option.pool], option)
            if nodes:
                starts[each.key] = now, option
                for end in _taken(free, nodes, option, now):
                    heapq.heappush(ends, end)
        left = [pair for pair in left if pair[0].key not in starts]
        if not left or not ends:
            return starts
        now = ends[0].at
        while ends and ends[0].at <= now + DONE_SECONDS:
            end = heapq.heappop(ends)
            free[end.pool][end.node] += end.accelerators


def _taken(
    free: Mapping[str, list[int]], nodes: Iterable[int], option: Option, now: float
) -> Iterator[_End]:
    """Takes the nodes; what is given back, and when."""
    for node in nodes:
        free[option.pool][node] -= option.accelerators_per_pod
        if option.seconds is not None:
            at = now + option.seconds.mid
            yield _End(at, option.pool, node, option.accelerators_per_pod)


def _order(pair: tuple[Workload, Option]) -> tuple[int, bool, float, str]:
    """By priority, services first, then who takes least."""
    each, option = pair
    seconds = option.seconds.mid if option.seconds else 0.0
    return -each.priority, option.seconds is not None, seconds * option.accelerators, each.key


def _fit(free: Sequence[int], option: Option) -> list[int]:
    """The fullest nodes that have room, one pod on each; none where it has none."""
    size = option.accelerators_per_pod
    found = sorted((count, node) for node, count in enumerate(free) if count >= size)
    return [node for _, node in found[: option.pods]] if len(found) >= option.pods else []


def _ends(pools: Iterable[PoolState], workloads: Iterable[Workload]) -> Iterator[_End]:
    numbers = {node.name: at for pool in pools for at, node in enumerate(pool.nodes)}
    for each in workloads:
        if each.running is not None and math.isfinite(_left(each)):
            option = each.running.option
            for node, pods in each.running.nodes.items():
                held = pods * option.accelerators_per_pod
                yield _End(_left(each), option.pool, numbers[node], held)
