"""B9: Sia (Jayaram Subramanya et al., SOSP 2023), its integer programme restricted to rigid jobs.

Section 3.4, with the constants of its artefact: goodput of job i on type j, normalised so that its
slowest type gives its number of accelerators, to the power p = -0.5; a penalty of 1.1 for every job
that gets nothing; what would restart a job counts at its reallocation factor ::

    min  sum_ij A[i,j]^p x[i,j] + 1.1 * sum_i (1 - sum_j x[i,j])
    with sum_j x[i,j] <= 1,  sum_i n_i x[i,j] <= size_j

Jobs of one kind, size and present type are equal but for their age, and stand in one integer row;
among them those that run go first, then the oldest. Decided when jobs come or go, at most once a
round of 60 s.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from bench.placement.baselines.rounds import Active, active, moves
from poolwise.sim.fleet import Placement, Pool
from poolwise.sim.jobs import Job, Moves, Scene, Truth

ROUND_SECONDS = 60.0
POWER = -0.5
UNPLACED = 1.1
RESTART_SECONDS = 30.0
GAP = 0.02
"""Relative, within which the rounded relaxation is taken; else branch and bound goes on to it."""
AGE_STEPS = 8
"""Reallocation factors are rounded to so many steps, so that equal jobs stand in one row."""
MOST_NODES = 20
"""Of branch and bound; a limit of time would not give the same answer twice."""
WHOLE = 1e-6
Matrix = npt.NDArray[Any]
Row = tuple[str, int, str | None, float]


class SiaIlp:
    """Who runs where, by the integer programme."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._speeds: dict[tuple[str, int], dict[str, float]] = {}
        self._restarts: defaultdict[str, int] = defaultdict(int)
        self._next_round = 0.0
        self._seen: frozenset[str] = frozenset()

    def __call__(self, scene: Scene) -> Moves:
        """At most once a round, and only where jobs came or went."""
        now = scene.now_seconds
        jobs = active(scene)
        names = frozenset(each.job.name for each in jobs)
        if names == self._seen:
            return Moves()
        if now < self._next_round:
            return Moves(wake_seconds=self._next_round)
        self._seen, self._next_round = names, now + ROUND_SECONDS
        answer = moves(scene, self._chosen(jobs, scene.pools, now), None)
        for name in answer.stops:
            self._restarts[name] += 1
        return answer

    def _chosen(self, jobs: Sequence[Active], pools: Sequence[Pool], now: float) -> dict[str, str]:
        rows: defaultdict[Row, list[Active]] = defaultdict(list)
        for each in jobs:
            factor = self._reallocation(each, now)
            rows[each.job.kind, each.job.accelerators, each.pool, factor].append(each)
        if not rows:
            return {}
        counts = self._solve(rows, pools)
        chosen = {}
        for row, members in rows.items():
            waiting = iter(members)
            for pool in sorted(pools, key=lambda pool: pool.name != row[2]):
                for _ in range(counts[row, pool.name]):
                    chosen[next(waiting).job.name] = pool.name
        return chosen

    def _reallocation(self, each: Active, now: float) -> float:
        """Share of its age that a job would keep if it were restarted now; 1 while it waits."""
        if each.pool is None:
            return 1.0
        age = now - each.job.arrival_seconds
        lost = RESTART_SECONDS * self._restarts[each.job.name]
        factor = max(age - lost, 0.0) / (age + RESTART_SECONDS)
        return math.ceil(AGE_STEPS * factor) / AGE_STEPS

    def _solve(
        self, rows: Mapping[Row, Sequence[Active]], pools: Sequence[Pool]
    ) -> dict[tuple[Row, str], int]:
        keys = list(rows)
        cost = np.array([self._cost(row, rows[row][0].job, pools) for row in keys])
        members = np.array([len(rows[row]) for row in keys])
        need = np.array([row[1] for row in keys])
        sizes = np.array([pool.accelerators for pool in pools])
        counts = _cheapest_each(cost, members, need, sizes)
        if counts is None:
            counts = _programme(cost, members, need, sizes)
        return {
            (row, pool.name): int(counts[at, column])
            for at, row in enumerate(keys)
            for column, pool in enumerate(pools)
        }

    def _cost(self, row: Row, job: Job, pools: Sequence[Pool]) -> list[float]:
        """Of placing one of a row in each pool, less that of not placing it."""
        speeds = self._goodput(job, pools)
        return [
            (speeds[pool.name] * (row[3] if row[2] not in (None, pool.name) else 1.0)) ** POWER
            - UNPLACED
            if speeds[pool.name]
            else 0.0
            for pool in pools
        ]

    def _goodput(self, job: Job, pools: Sequence[Pool]) -> dict[str, float]:
        key = job.kind, job.accelerators
        if key not in self._speeds:
            seconds = {
                pool.name: self._truth(job, Placement(pool.name, ((0, job.accelerators),)))
                for pool in pools
            }
            slowest = max(each for each in seconds.values() if math.isfinite(each))
            self._speeds[key] = {
                name: job.accelerators * slowest / each for name, each in seconds.items()
            }
        return self._speeds[key]


def _cheapest_each(cost: Matrix, members: Matrix, need: Matrix, sizes: Matrix) -> Matrix | None:
    """Everyone where it costs least, where that fits: then nothing is better."""
    counts = np.zeros(cost.shape, int)
    counts[np.arange(len(members)), cost.argmin(axis=1)] = members
    return counts if bool(np.all(need @ counts <= sizes)) else None


def _programme(cost: Matrix, members: Matrix, need: Matrix, sizes: Matrix) -> Matrix:
    """The integer programme; its relaxation first, which is whole where gangs are of one size."""
    rows, width = cost.shape
    once = np.kron(np.eye(rows), np.ones((1, width)))
    upper = np.vstack([once, np.kron(need[None, :], np.eye(width))])
    limits = np.concatenate([members, sizes])
    most = np.where(cost.ravel() < 0, np.repeat(members, width), 0)
    relaxed = linprog(cost.ravel(), A_ub=upper, b_ub=limits, bounds=np.stack([0 * most, most], 1))
    counts = _rounded(relaxed.x, cost.ravel(), upper, limits)
    if cost.ravel() @ counts > relaxed.fun * (1 - GAP):
        found = milp(
            cost.ravel(),
            constraints=LinearConstraint(upper, ub=limits),
            integrality=np.ones(cost.size),
            bounds=Bounds(0, most),
            options={"mip_rel_gap": GAP, "node_limit": MOST_NODES},
        )
        counts = counts if found.x is None else np.rint(found.x)
    whole: Matrix = counts.astype(int).reshape(rows, width)
    return whole


def _rounded(relaxed: Matrix, cost: Matrix, upper: Matrix, limits: Matrix) -> Matrix:
    """Whole jobs of a fractional answer, and what still fits beside them, the best first."""
    counts: Matrix = np.floor(relaxed + WHOLE)
    left = limits - upper @ counts
    order = sorted(np.flatnonzero(cost < 0), key=lambda at: (-(relaxed[at] % 1), cost[at]))
    for at in order:
        while np.all(upper[:, at] <= left):
            counts[at] += 1
            left = left - upper[:, at]
    return counts
