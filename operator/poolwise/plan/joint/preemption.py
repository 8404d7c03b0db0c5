"""Who may be stopped for somebody of higher priority: the runs that lose least by it.

Off by default. A run is only ever stopped where it keeps checkpoints, for a workload of strictly
higher priority that would else wait, and where the wait saved is worth more than the work lost::

    wait saved * accelerators of the one  >  margin * sum(restart * accelerators) of the others

``restart`` is the work since the last checkpoint and the time until the next step
(:attr:`Running.restart_seconds`). Priorities are strict, so that nobody stops who stopped him.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from poolwise.plan.joint.outcome import Act, Decision, Preemption
from poolwise.plan.joint.problem import SERVICE_SECONDS, Option, Problem, Workload
from poolwise.plan.joint.rooms import Rooms


def preemptions(problem: Problem, decisions: Iterable[Decision]) -> tuple[Preemption, ...]:
    """At most one workload gets its way in a pass: the next pass sees what that freed."""
    if not problem.rules.may_preempt:
        return ()
    told = {each.key: each for each in decisions}
    waiting = [each for each in problem.workloads if _waits(each, told)]
    for each in sorted(waiting, key=lambda one: (-one.priority, one.created, one.key)):
        found = _cheapest(problem, each, told[each.key])
        if found is not None:
            return (found,)
    return ()


def _waits(workload: Workload, told: dict[str, Decision]) -> bool:
    is_waiting = workload.running is None and told[workload.key].act is Act.WAIT
    return is_waiting and workload.may_preempt


def _cheapest(problem: Problem, workload: Workload, decision: Decision) -> Preemption | None:
    """The way that loses least, if the wait is worth it."""
    wait = SERVICE_SECONDS if decision.starts is None else decision.starts - problem.now
    ways = [way for option in workload.options if (way := _way(problem, workload, option))]
    worthwhile = [
        way
        for way in ways
        if wait * way.option.accelerators > problem.rules.move_margin * way.lost_accelerator_seconds
    ]
    return min(worthwhile, key=_loss, default=None)


def _loss(way: Preemption) -> tuple[float, float, str]:
    return way.lost_accelerator_seconds, way.option.aim, way.option.pool


def _way(problem: Problem, workload: Workload, option: Option) -> Preemption | None:
    """The fewest and cheapest victims that make room for one option."""
    if option.problem or option.is_blocked or option.is_on_cpu:
        return None
    stoppable = sorted(_stoppable(problem, workload, option.pool), key=_cost_per_accelerator)
    victims: list[Workload] = []
    for each in stoppable:
        if _fits(problem, option, victims):
            break
        victims.append(each)
    if not victims or not _fits(problem, option, victims):
        return None
    needed = _needed(problem, option, victims)
    return Preemption(workload.key, option, needed, math.fsum(map(_lost, needed)))


def _needed(problem: Problem, option: Option, victims: Sequence[Workload]) -> tuple[Workload, ...]:
    """Without those whose room turned out not to be needed, the highest priority first, then the
    dearest."""
    kept = list(victims)
    for each in sorted(victims, key=lambda one: (one.priority, _lost(one)), reverse=True):
        others = [one for one in kept if one is not each]
        if _fits(problem, option, others):
            kept = others
    return tuple(sorted(kept, key=lambda one: one.key))


def _stoppable(problem: Problem, workload: Workload, pool: str) -> Iterator[Workload]:
    settled_since = problem.now - problem.rules.settle_seconds
    for each in problem.workloads:
        running = each.running
        if running is None or each.priority >= workload.priority:
            continue
        is_settled = running.is_movable and running.since <= settled_since
        if is_settled and running.option.pool == pool:
            yield each


def _fits(problem: Problem, option: Option, victims: Iterable[Workload]) -> bool:
    """A node that is gone, or that nobody may use any more, is no room, whoever leaves it."""
    pools = [pool for pool in problem.pools if pool.name == option.pool]
    rooms, there = Rooms(pools), {node.name for pool in pools for node in pool.nodes}
    for each in victims:
        assert each.running is not None, "only what runs is stopped"
        left = {node: pods for node, pods in each.running.nodes.items() if node in there}
        rooms.give_back(each.running.option, left)
    return rooms.fit(option) is not None


def _lost(workload: Workload) -> float:
    running = workload.running
    return running.restart_seconds * running.option.accelerators if running else 0.0


def _cost_per_accelerator(workload: Workload) -> tuple[int, float, str]:
    """The lowest priority first, then who loses least."""
    running = workload.running
    return workload.priority, running.restart_seconds if running else 0.0, workload.key
