"""Pools, options and workloads in few words, for the tests of the joint planner."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from poolwise.model.prediction import Interval
from poolwise.plan.joint.outcome import Act, Decision, JointPlan
from poolwise.plan.joint.problem import (
    NodeState,
    Option,
    PoolState,
    Problem,
    Rules,
    Running,
    Workload,
)

HOUR = 3600.0
BOTH = pytest.mark.parametrize("optimise", [False, True], ids=["greedy", "optimised"])


def pool(name: str, *free: int, total: int = 8, rack: int = 0) -> PoolState:
    """Nodes by what they have free; ``rack``: how many share a rack."""
    nodes = (
        NodeState(f"{name}-{at}", each, total, {"rack": f"r{at // rack}"} if rack else {})
        for at, each in enumerate(free)
    )
    return PoolState(name, tuple(nodes))


def span(hours: float, spread: float = 1.1) -> Interval:
    """So many hours, give or take."""
    return Interval(hours * HOUR, hours * HOUR / spread, hours * HOUR * spread)


def option(pool: str, hours: float | None, each: int = 8, pods: int = 1, **more) -> Option:
    """Pods of so many accelerators, one per node; no hours: a service."""
    return Option(
        pool, pods, each, None if hours is None else span(hours), one_per_node=True, **more
    )


def job(key: str, *options: Option, created: float = 0.0, namespace: str = "research", **more):
    """A workload that waits."""
    return Workload(key, namespace, created, options, **more)


def running(
    key: str,
    where: Option,
    nodes: Mapping[str, int],
    *options: Option,
    namespace="research",
    deadline: float | None = None,
    **more,
) -> Workload:
    """A workload that runs since long ago."""
    state = Running(where, nodes, since=-1000 * HOUR, **more)
    return Workload(key, namespace, -1000 * HOUR, options, running=state, deadline=deadline)


def problem(pools, *workloads: Workload, now: float = 0.0, rules: Rules | None = None, **more):
    """One moment; the optimiser ends by itself, however busy the machine is."""
    unhurried = replace(rules or Rules(), time_limit_seconds=20.0)
    return Problem(now, tuple(pools), tuple(workloads), unhurried, **more)


def by_key(plan: JointPlan) -> dict[str, Decision]:
    return {each.key: each for each in plan.decisions}


def starts(plan: JointPlan) -> dict[str, str]:
    """Pools of those that start now, by workload."""
    started = (each for each in plan.decisions if each.act is Act.START)
    return {each.key: each.option.pool for each in started if each.option}


def aims(loss: float) -> Interval:
    """What the ranking of candidates makes of a pool: so many times the best."""
    return Interval(loss, loss, loss)
