"""Streams of jobs on fleets with a truth: what the replays run on."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.placement import gavel, modern, regret
from bench.placement.bounds import Capacity, Class, at_load, capacity
from bench.placement.engine import Engine
from bench.placement.familiar import Familiar
from bench.placement.strangers import Strangers, Told
from poolwise.sim.fleet import Pool
from poolwise.sim.jobs import Job, Truth

InPool = Callable[[Job, str], float]
"""Seconds of a job in a pool, packed."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One truth with its mix of jobs."""

    truth: str
    """T1 or T3."""
    workload: str
    fleet: str
    pools: tuple[Pool, ...]
    jobs: Callable[[float, int], tuple[Job, ...]]
    """By load and seed."""
    seconds: Callable[[int], Truth]
    """By seed."""
    in_pool: Callable[[int], InPool]
    capacity: Callable[[int], Capacity]
    engine: Callable[[int], Engine]
    """What ``ours`` believes at first, by seed."""
    told: Callable[[int], Engine]
    """What it would believe had it been told the truth."""
    sizes: Sequence[int]
    """Accelerators of the jobs of the mix, as often as they come."""
    tenants: frozenset[str]


def t1(folder: Path, count: int) -> Scenario:
    """Gavel's rates, fleet and mix."""
    rates = gavel.rates(folder)
    mix = gavel.mix(folder, rates)
    found = capacity(_gavel_classes(mix, rates), gavel.POOLS)

    def in_pool(job: Job, pool: str) -> float:
        return job.work / rates.rate(job.kind, job.accelerators, pool, is_packed=True)

    return Scenario(
        truth="T1",
        workload="gavel-philly",
        fleet="gavel-108",
        pools=gavel.POOLS,
        jobs=lambda load, seed: at_load(
            gavel.jobs(mix, count, seed), load, in_pool, gavel.POOLS, found.prices
        ),
        seconds=lambda seed: rates.seconds,
        in_pool=lambda seed: in_pool,
        capacity=lambda seed: found,
        engine=lambda seed: Strangers(regret.GAVEL_SPECS, gavel.POOLS, seed),
        told=lambda seed: Told(rates.rate, gavel.POOLS),
        sizes=[each.workers for each in mix],
        tenants=frozenset(each.tenant for each in mix),
    )


def t3(folder: Path, count: int, scale: int = 1) -> Scenario:
    """The bent analytic model on pools of today."""
    found = modern.modern(folder, scale)

    @functools.cache
    def bent(seed: int) -> modern.Bent:
        return modern.bent(found, seed)

    @functools.cache
    def fleet_capacity(seed: int) -> Capacity:
        return capacity(_modern_classes(found, bent(seed)), found.pools)

    def jobs(load: float, seed: int) -> tuple[Job, ...]:
        drawn, prices = modern.jobs(found, count, seed), fleet_capacity(seed).prices
        return at_load(drawn, load, bent(seed).in_pool, found.pools, prices)

    return Scenario(
        truth="T3",
        workload="philly-modern",
        fleet="modern-S" if scale == 1 else "modern-M",
        pools=found.pools,
        jobs=jobs,
        seconds=lambda seed: bent(seed).seconds,
        in_pool=lambda seed: bent(seed).in_pool,
        capacity=fleet_capacity,
        engine=lambda seed: Familiar(found, seed),
        told=lambda seed: Familiar(modern.told(found, bent(seed)), seed),
        sizes=[size for size, _ in found.lengths],
        tenants=frozenset(f"team-{at}" for at in range(4)),
    )


def _gavel_classes(mix: Sequence[gavel.Mix], rates: gavel.Rates) -> list[Class]:
    steps: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    for each in mix:
        steps[each.kind, each.workers].append(each.steps)
    return [
        Class(
            len(found) / len(mix),
            workers,
            {
                pool.name: sum(found) / len(found) / rates.rate(kind, workers, pool.name, True)
                for pool in gavel.POOLS
            },
        )
        for (kind, workers), found in steps.items()
    ]


def _modern_classes(found: modern.Modern, bent: modern.Bent) -> list[Class]:
    lengths: defaultdict[int, list[float]] = defaultdict(list)
    for size, length in found.lengths:
        lengths[size].append(length)
    classes = []
    for size, all_seconds in lengths.items():
        kinds = [kind for kind, count in found.times if count == size]
        mean = sum(all_seconds) / len(all_seconds)
        for kind in kinds:
            share = len(all_seconds) / len(found.lengths) / len(kinds)
            job = Job("", 0.0, size, kind, mean)
            by_pool = {pool.name: bent.in_pool(job, pool.name) for pool in found.pools}
            classes.append(Class(share, size, by_pool))
    return classes
