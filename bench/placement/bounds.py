"""What no scheduler can beat, and the load that a fleet can carry.

``U1`` of a replay: the fluid relaxation. Accelerators of pool p are worth ``price[p]`` with the
prices of the fleet adding up to 1, so that a job that takes w accelerators of p for s seconds takes
``price[p] * w * s`` of a machine that does 1 a second, and at least the least of these over the
pools. That machine serves the shortest remaining job first, whole machine at once, which no real
schedule beats on mean completion time (Schrage 1968), whatever the prices; those of the load's
linear programme are the tightest there. No job ends sooner than alone on its best pool.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import highspy
import numpy as np
from scipy.optimize import linprog

from poolwise.sim.fleet import Pool
from poolwise.sim.jobs import Job


@dataclass(frozen=True, slots=True)
class Class:
    """Jobs that are alike, as a share of all arrivals."""

    share: float
    accelerators: int
    seconds: Mapping[str, float]
    """Mean run time by pool, packed."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Of a fleet for a mix."""

    arrivals_per_second: float
    """Most that the fleet can carry, with every job split over pools as suits best: load 1."""
    prices: Mapping[str, float]
    """Of one accelerator; the whole fleet is worth 1."""


def capacity(classes: Sequence[Class], pools: Sequence[Pool]) -> Capacity:
    """The linear programme: most arrivals a second such that no pool is asked for more than it is.

    max L  with  sum_p y[c,p] = L * share[c],  sum_c y[c,p] * w[c] * seconds[c,p] <= size[p].
    """
    count, width = len(classes), len(pools)
    rate = count * width  # the last variable is L
    equal = np.zeros((count, rate + 1))
    upper = np.zeros((width, rate + 1))
    bounds: list[tuple[float, float | None]] = [(0.0, None)] * (rate + 1)
    for row, each in enumerate(classes):
        for column, pool in enumerate(pools):
            at, seconds = row * width + column, each.seconds[pool.name]
            equal[row, at] = 1.0
            if math.isfinite(seconds):
                upper[column, at] = each.accelerators * seconds
            else:
                bounds[at] = (0.0, 0.0)
        equal[row, rate] = -each.share
    cost = np.zeros(rate + 1)
    cost[rate] = -1.0
    sizes = np.array([pool.accelerators for pool in pools], float)
    scale = float(upper.max())  # seconds of heavy tails beside shares: keep the solver's tolerance
    found = linprog(
        cost, A_ub=upper / scale, b_ub=sizes, A_eq=equal, b_eq=np.zeros(count), bounds=bounds
    )
    marginals = -found.ineqlin.marginals
    worth = marginals / float(marginals @ sizes)
    prices = {pool.name: float(each) for pool, each in zip(pools, worth, strict=True)}
    return Capacity(-found.fun / scale, prices)


def at_load(
    jobs: Sequence[Job],
    load: float,
    seconds: Callable[[Job, str], float],
    pools: Sequence[Pool],
    prices: Mapping[str, float],
) -> tuple[Job, ...]:
    """The same jobs, arriving over the time in which the fleet could do ``1 / load`` of them.

    That time is the jobs' own work, each where it takes least of the fleet, so that a stream of
    few long jobs has the load that it is said to have.
    """
    work = _fleet_seconds(jobs, seconds, pools, prices)
    slower = work / load / max(job.arrival_seconds for job in jobs)
    return tuple(replace(job, arrival_seconds=job.arrival_seconds * slower) for job in jobs)


def _fleet_seconds(
    jobs: Sequence[Job],
    seconds: Callable[[Job, str], float],
    pools: Sequence[Pool],
    prices: Mapping[str, float],
) -> float:
    return math.fsum(_fleet_seconds_of(job, seconds, pools, prices) for job in jobs)


def _fleet_seconds_of(
    job: Job,
    seconds: Callable[[Job, str], float],
    pools: Sequence[Pool],
    prices: Mapping[str, float],
) -> float:
    """Where it takes least; a pool that nobody needs has no price, and may not run it either."""
    by_price = ((prices[pool.name], seconds(job, pool.name)) for pool in pools)
    return min(price * job.accelerators * run for price, run in by_price if math.isfinite(run))


def least_mean_completion(
    jobs: Sequence[Job],
    seconds: Callable[[Job, str], float],
    pools: Sequence[Pool],
    prices: Mapping[str, float],
) -> float:
    """No schedule of these jobs does better; ``seconds`` are of a job in a pool."""
    alone = [min(seconds(job, pool.name) for pool in pools) for job in jobs]
    sizes = [_fleet_seconds_of(job, seconds, pools, prices) for job in jobs]
    queued = _shortest_remaining_first([job.arrival_seconds for job in jobs], sizes)
    return max(math.fsum(alone), math.fsum(queued)) / len(jobs)


def least_makespan(
    jobs: Sequence[Job],
    seconds: Callable[[Job, str], float],
    pools: Sequence[Pool],
    prices: Mapping[str, float],
) -> float:
    """From the first arrival to the last end, at best."""
    begin = min(job.arrival_seconds for job in jobs)
    work = _fleet_seconds(jobs, seconds, pools, prices)
    last = max(job.arrival_seconds + min(seconds(job, pool.name) for pool in pools) for job in jobs)
    return max(work, last - begin)


def _shortest_remaining_first(arrivals: Sequence[float], sizes: Sequence[float]) -> list[float]:
    """Time from arrival to end of each job, in the order in which they end."""
    order = sorted(range(len(arrivals)), key=lambda index: arrivals[index])
    left: list[tuple[float, int]] = []
    now, done, ended = 0.0, 0, []
    while done < len(order) or left:
        if not left:
            now = max(now, arrivals[order[done]])
        while done < len(order) and arrivals[order[done]] <= now:
            heapq.heappush(left, (sizes[order[done]], order[done]))
            done += 1
        rest, index = heapq.heappop(left)
        upcoming = arrivals[order[done]] if done < len(order) else math.inf
        if now + rest <= upcoming:
            now += rest
            ended.append(now - arrivals[index])
        else:
            heapq.heappush(left, (rest - (upcoming - now), index))
            now = upcoming
    return ended


def whole_makespan(
    jobs: Sequence[Job], seconds: Callable[[Job, str], float], pools: Sequence[Pool]
) -> float:
    """``U2``: no schedule that leaves jobs in the pool where they start has a shorter makespan.

    Integer programme: every job in one pool, every pool asked for no more than it can do until T.
    What HiGHS has proven at the root is returned, so that it is a bound wherever it stops.
    """
    begin = min(job.arrival_seconds for job in jobs)
    solver = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("mip_max_nodes", 1)):
        solver.setOptionValue(option, value)
    unit = least_makespan(jobs, seconds, pools, _even(pools))
    end = solver.addVariable(lb=0.0)
    used: dict[str, list[Any]] = {pool.name: [] for pool in pools}
    for job in jobs:
        picks = []
        for pool in pools:
            run = seconds(job, pool.name)
            if math.isfinite(run):
                pick = solver.addBinary()
                picks.append(pick)
                used[pool.name].append(job.accelerators * run / unit * pick)
                solver.addConstr(end >= (job.arrival_seconds - begin + run) / unit * pick)
        solver.addConstr(solver.qsum(picks) == 1)
    for pool in pools:
        solver.addConstr(solver.qsum(used[pool.name]) <= pool.accelerators * end)
    solver.minimize(end)
    return float(solver.getInfo().mip_dual_bound) * unit


def _even(pools: Sequence[Pool]) -> dict[str, float]:
    total = sum(pool.accelerators for pool in pools)
    return {pool.name: 1.0 / total for pool in pools}
