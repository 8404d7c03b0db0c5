"""B8: Gavel (Narayanan et al., OSDI 2020), heterogeneity-aware max-min fairness, measured rates.

The allocation X, the share of time of job m on type j, is the linear programme of section 4.1 ::

    max  min_m  scale_m * throughput(m, X) / throughput(m, X_equal)
    with sum_j X[m,j] <= 1,   sum_m scale_m * X[m,j] <= workers_j,   X >= 0

solved when jobs came or went, at most every 1,920 s (the default of its scheduler). Jobs of one
kind and size have equal rows, so one row stands for all of them. A small weight on the sum of what
is above the minimum gives away what the minimum leaves. Rounds of 360 s (section 5): who has the
largest X[m,j] / (share of the rounds so far that m had on j) goes first; what is still free then
goes to whoever gains most from it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from scipy.optimize import linprog

from bench.placement.baselines.rounds import Active, active, moves
from poolwise.sim.fleet import Placement, Pool
from poolwise.sim.jobs import Job, Moves, Scene, Truth

ROUND_SECONDS = 360.0
SOLVED_EVERY_SECONDS = 1920.0
WHOLE = 0.999
"""Shares from which a job is taken to run on one type all the time."""
ABOVE_MINIMUM = 1e-3
"""Weight of the mean over jobs beside their minimum."""
TINY = 1e-6
Class = tuple[str, int]
_Wish = tuple[float, bool, str, int, str]
"""Rank, whether it moves the job, job, its accelerators, pool."""


class GavelLp:
    """Rounds with shares of time."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._seconds: dict[Class, dict[str, float]] = {}
        self._shares: Mapping[Class, Mapping[str, float]] = {}
        self._solved_for: Counter[Class] = Counter()
        self._had: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._alive: dict[str, float] = {}
        self._solve_again = 0.0
        self._before = 0.0
        self._round_ends = 0.0

    def __call__(self, scene: Scene) -> Moves:
        """At the end of a round, who runs in the next."""
        now = scene.now_seconds
        if now < self._round_ends:
            return Moves(wake_seconds=self._round_ends)
        jobs = active(scene)
        self._account(jobs, now)
        self._solve(jobs, scene.pools, now)
        self._round_ends = now + ROUND_SECONDS
        chosen = self._chosen(jobs, scene.pools)
        return moves(scene, chosen, None if self._rests(chosen, jobs) else self._round_ends)

    def _rests(self, chosen: Mapping[str, str], jobs: Sequence[Active]) -> bool:
        """Whether all jobs run where they are to run all the time, so that no round changes it."""
        return all(
            (pool := chosen.get(each.job.name)) is not None
            and self._shares.get(_class(each.job), {}).get(pool, 0.0) >= WHOLE
            for each in jobs
        )

    def _account(self, jobs: Sequence[Active], now: float) -> None:
        passed = now - self._before
        self._before = now
        for each in jobs:
            name = each.job.name
            if each.pool is not None:
                self._had[name, each.pool] += passed
            self._alive[name] = now - each.job.arrival_seconds

    def _solve(self, jobs: Sequence[Active], pools: Sequence[Pool], now: float) -> None:
        counts = Counter(_class(each.job) for each in jobs)
        for each in jobs:
            self._learn(each.job, pools)
        if counts == self._solved_for or not counts or now < self._solve_again:
            return
        self._shares = _max_min(counts, self._seconds, pools)
        self._solved_for, self._solve_again = counts, now + SOLVED_EVERY_SECONDS

    def _learn(self, job: Job, pools: Sequence[Pool]) -> None:
        """Seconds of one unit of work by pool; only their ratios count."""
        if _class(job) not in self._seconds:
            self._seconds[_class(job)] = {
                pool.name: self._truth(job, Placement(pool.name, ((0, job.accelerators),)))
                / job.work
                for pool in pools
            }

    def _chosen(self, jobs: Sequence[Active], pools: Sequence[Pool]) -> dict[str, str]:
        left = {pool.name: pool.accelerators for pool in pools}
        chosen: dict[str, str] = {}
        _take(sorted(self._entitled(jobs)), left, chosen)
        rest = [each for each in jobs if each.job.name not in chosen]
        if any(left.values()):
            _take(sorted(self._eager(rest, left)), left, chosen)
        return chosen

    def _entitled(self, jobs: Sequence[Active]) -> Iterator[_Wish]:
        """Jobs with a share of a type, by how far they are behind it."""
        for each in jobs:
            name, need = each.job.name, each.job.accelerators
            for pool, share in self._shares.get(_class(each.job), {}).items():
                if share > TINY:
                    had = self._had[name, pool]
                    priority = share * self._alive[name] / had if had else math.inf
                    yield -priority, each.pool != pool, name, need, pool

    def _eager(self, jobs: Sequence[Active], left: Mapping[str, int]) -> Iterator[_Wish]:
        """What is free for jobs that got nothing: the least slowed first."""
        for each in jobs:
            seconds = self._seconds[_class(each.job)]
            least = min(seconds.values())
            for pool, free in left.items():
                if free >= each.job.accelerators and math.isfinite(seconds[pool]):
                    slowness = seconds[pool] / least
                    name = each.job.name
                    yield slowness, each.pool != pool, name, each.job.accelerators, pool


def _take(wishes: Iterable[_Wish], left: dict[str, int], chosen: dict[str, str]) -> None:
    for _, _, name, need, pool in wishes:
        if name not in chosen and left[pool] >= need:
            chosen[name] = pool
            left[pool] -= need


def _class(job: Job) -> Class:
    return job.kind, job.accelerators


def _max_min(
    counts: Mapping[Class, int],
    seconds: Mapping[Class, Mapping[str, float]],
    pools: Sequence[Pool],
) -> dict[Class, dict[str, float]]:
    classes, width = list(counts), len(pools)
    total = sum(pool.accelerators for pool in pools)
    last = len(classes) * width
    values = np.zeros((len(classes), width))
    for row, each in enumerate(classes):
        rates = np.array([1.0 / seconds[each][pool.name] for pool in pools])
        equal = sum(
            rate * pool.accelerators / total for rate, pool in zip(rates, pools, strict=True)
        )
        values[row] = each[1] * rates / equal
    upper = np.zeros((2 * len(classes) + width, last + 1))
    limits = np.zeros(2 * len(classes) + width)
    for row, each in enumerate(classes):
        at = slice(row * width, (row + 1) * width)
        upper[row, at] = -values[row]
        upper[row, last] = 1.0
        upper[len(classes) + row, at] = 1.0
        limits[len(classes) + row] = 1.0
        for column in range(width):
            upper[2 * len(classes) + column, row * width + column] = counts[each] * each[1]
    limits[2 * len(classes) :] = [pool.accelerators for pool in pools]
    cost = np.zeros(last + 1)
    cost[last] = -1.0
    weights = np.array([counts[each] / each[1] for each in classes])[:, None]
    cost[:last] = -ABOVE_MINIMUM * (values * weights / sum(counts.values())).ravel()
    found = linprog(cost, A_ub=upper, b_ub=limits, method="highs")
    shares = found.x[:last].reshape(len(classes), width)
    return {
        each: {pool.name: float(shares[row, at]) for at, pool in enumerate(pools)}
        for row, each in enumerate(classes)
    }
