"""The operator's own joint planner in a replay: only what it could see in a cluster reaches it.

Run times are what the engine expects: at first from datasheets or the analytic model, then from
runs that it has watched for as long as the operator does before it believes them. Jobs tell their
length in steps, as a TrainingJob does. Nothing that runs is moved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from bench.placement.engine import Engine
from poolwise.model.correction import WarmUp
from poolwise.model.prediction import Interval
from poolwise.plan.joint.outcome import Act, Decision, JointPlan
from poolwise.plan.joint.planning import plan
from poolwise.plan.joint.problem import (
    NodeState,
    Option,
    PoolState,
    Problem,
    Reservation,
    Rules,
    Running,
    Share,
    Workload,
)
from poolwise.sim.fleet import Placement, Pool
from poolwise.sim.jobs import Moves, Run, Scene, Waiting

OPTIMISED_EVERY_SECONDS = 3600.0
"""Between passes of the optimiser; in between the planner's greedy path decides alone."""


class Ours:
    """Asks the planner at every arrival and end."""

    def __init__(self, engine: Engine, rules: Rules | None = None) -> None:
        self._engine, self._rules = engine, rules or Rules()
        self._watched: set[tuple[str, float]] = set()
        self._reservations: tuple[Reservation, ...] = ()
        self._shares: Mapping[str, Share] = {}
        self._optimised = -math.inf

    def __call__(self, scene: Scene) -> Moves:
        """Starts what the planner starts."""
        now = scene.now_seconds
        wake = self._watch(scene)
        if not scene.waiting or not scene.room.total():
            return Moves(wake_seconds=wake)
        answer = self._plan(scene, now)
        return Moves(tuple(_starts(answer.decisions, scene.pools)), (), wake)

    def _plan(self, scene: Scene, now: float) -> JointPlan:
        is_time = now >= self._optimised + OPTIMISED_EVERY_SECONDS
        if is_time:
            self._optimised = now
        answer = plan(self._problem(scene, now, is_time), optimise=is_time)
        self._reservations, self._shares = answer.reservations, answer.shares
        return answer

    def _problem(self, scene: Scene, now: float, is_time: bool) -> Problem:
        workloads = [
            *(self._waiting(each) for each in scene.waiting),
            *(self._running(run, now) for run in scene.running.values()),
        ]
        return Problem(
            now=now,
            pools=_states(scene),
            workloads=tuple(workloads),
            rules=self._rules,
            reservations=self._reservations,
            shares={} if is_time else self._shares,
        )

    def _waiting(self, each: Waiting) -> Workload:
        job = each.job
        options = self._engine.options(job, 1.0 - each.done)
        return Workload(job.name, job.tenant, job.arrival_seconds, options)

    def _running(self, run: Run, now: float) -> Workload:
        whole = self._engine.expected_seconds(run.job, run.placement)
        left = max(whole * (1.0 - run.done) - (now - run.ready_seconds), 0.05 * whole)
        nodes = {node_name(run.placement.pool, node): n for node, n in run.placement.nodes}
        option = Option(run.placement.pool, run.job.accelerators, 1, Interval(left, left, left))
        where = Running(option, nodes, run.started_seconds)
        return Workload(run.job.name, run.job.tenant, run.job.arrival_seconds, (), running=where)

    def _watch(self, scene: Scene) -> float | None:
        """Takes in what has run for long enough; when the next run will have."""
        now, upcoming = scene.now_seconds, None
        for run in scene.running.values():
            key = run.job.name, run.started_seconds
            if key in self._watched:
                continue
            ripe = run.ready_seconds + WarmUp().seconds
            if ripe <= now:
                self._watched.add(key)
                self._engine.observe(run, now)
            elif upcoming is None or ripe < upcoming:
                upcoming = ripe
        return upcoming if scene.waiting else None


def node_name(pool: str, node: int) -> str:
    """Of a node of the replay in the planner."""
    return f"{pool}/{node:04}"


def _states(scene: Scene) -> tuple[PoolState, ...]:
    return tuple(
        PoolState(
            pool.name,
            tuple(
                NodeState(node_name(pool.name, node), free, pool.nodes[node])
                for node, free in enumerate(scene.room.free(pool.name))
            ),
        )
        for pool in scene.pools
    )


def _starts(
    decisions: Sequence[Decision], pools: Sequence[Pool]
) -> Iterator[tuple[str, Placement]]:
    numbers: Mapping[str, int] = {
        node_name(pool.name, node): node for pool in pools for node in range(len(pool.nodes))
    }
    for each in decisions:
        if each.act is Act.START:
            assert each.option is not None, "what starts has an option"
            size = each.option.accelerators_per_pod
            nodes = sorted((numbers[name], pods * size) for name, pods in each.nodes.items())
            yield each.key, Placement(each.option.pool, tuple(nodes))
