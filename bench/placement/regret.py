"""What choices lose that are made by the engine's idea of unknown workloads instead of the truth.

A job of the mix arrives; of its places (pool, close together or spread) each is free with
probability 1/2, at least two are; the engine takes the one where it expects the job to be fastest.
Regret is the share of the best free place's speed that this loses, the mean over choices. The
engine knows the datasheets of the pools. ``first``: it never saw the job's kind, nor any other.
``after5``: of every kind it has seen five runs in each pool, of jobs and places drawn from the mix,
each measured to 5 %.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.files import BadInput
from bench.placement import gavel, sia
from poolwise.plan.learning import Place as Spot
from poolwise.plan.learning import PoolSpec, Rates

CHOICES = 2000
OBSERVATIONS = 5
NOISE = 0.05
GAVEL_SPECS = (
    PoolSpec("k80", flops_per_second=4.1e12, bytes_per_second=240e9),
    PoolSpec("p100", flops_per_second=9.3e12, bytes_per_second=732e9),
    PoolSpec("v100", flops_per_second=15.7e12, bytes_per_second=900e9),
)
"""Datasheets: half a K80 boosted, P100 PCIe, V100 SXM2; fp32, in which these models ran."""
SIA_SPECS = (
    PoolSpec("aws", flops_per_second=8.1e12, bytes_per_second=320e9),
    PoolSpec("rtx", flops_per_second=13.4e12, bytes_per_second=616e9),
    PoolSpec("dgx-ext", flops_per_second=19.5e12, bytes_per_second=1555e9),
)
"""Datasheets: T4, RTX 2080 Ti, A100 SXM4 40 GB; fp32."""


class Place(NamedTuple):
    """Where a job may run."""

    pool: str
    is_packed: bool
    rate: float
    """Steps per second, in truth."""


@dataclass(frozen=True, slots=True)
class Chooser:
    """One job with all its places."""

    kind: str
    accelerators: int
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Regret:
    """Share of the speed that is lost."""

    first: float
    after5: float


TRUTHS = ("gavel", "sia")


def of(folder: Path, truth: str, seed: int) -> Regret:
    """Of one of the measured truths."""
    if truth == "gavel":
        rates = gavel.rates(folder)
        return regret(of_gavel(rates, gavel.mix(folder, rates)), GAVEL_SPECS, seed)
    choosers = of_sia(sia.steps(folder), sia.tasks(folder))
    if not any(len(each.places) > 1 for each in choosers):
        raise BadInput(f"{folder}: no job of sia_workloads* has two places in sia_step_times*")
    return regret(choosers, SIA_SPECS, seed)


def of_gavel(rates: gavel.Rates, mix: Sequence[gavel.Mix]) -> Sequence[Chooser]:
    """Of Gavel's mix; a job of one worker has one place per pool."""
    return [
        Chooser(
            each.kind,
            each.workers,
            tuple(
                Place(pool.name, packed, rate)
                for pool in gavel.POOLS
                for packed in ((True, False) if each.workers > 1 else (True,))
                if (rate := rates.rate(each.kind, each.workers, pool.name, packed)) > 0
            ),
        )
        for each in mix
    ]


def of_sia(steps: sia.Steps, tasks: Sequence[sia.Task]) -> Sequence[Chooser]:
    """Of Sia's workloads."""
    known = {task: tuple(_sia_places(steps, task)) for task in dict.fromkeys(tasks)}
    return [Chooser(task.kind, task.replicas, known[task]) for task in tasks if known[task]]


def _sia_places(steps: sia.Steps, task: sia.Task) -> Iterator[Place]:
    for pool in sia.POOLS:
        for at, placement in enumerate(steps.placements(task, pool)):
            seconds = steps.seconds(task, pool.name, placement)
            if math.isfinite(seconds):
                yield Place(pool.name, at == 0, 1.0 / seconds)


def regret(choosers: Sequence[Chooser], specs: Sequence[PoolSpec], seed: int) -> Regret:
    """Before and after the observations, over the same choices."""
    draw = random.Random(seed)
    choices = list(_choices(choosers, draw))
    new = Rates(tuple(specs))
    seen = _after(new, choosers, draw)
    at_first, after = (_expected(rates, choosers) for rates in (new, seen))
    first, after5 = (
        sum(_lost(rates, *each) for each in choices) / len(choices) for rates in (at_first, after)
    )
    return Regret(first, after5)


def _choices(
    choosers: Sequence[Chooser], draw: random.Random
) -> Iterator[tuple[Chooser, tuple[Place, ...]]]:
    left = CHOICES
    while left:
        chooser = draw.choice(choosers)
        free = tuple(place for place in chooser.places if draw.random() < 0.5)
        if len(free) > 1:
            yield chooser, free
            left -= 1


def _after(rates: Rates, choosers: Sequence[Chooser], draw: random.Random) -> Rates:
    by_kind: defaultdict[str, list[Chooser]] = defaultdict(list)
    for chooser in choosers:
        by_kind[chooser.kind].append(chooser)
    for kind, alike in sorted(by_kind.items()):
        for pool in sorted({place.pool for each in alike for place in each.places}):
            for _ in range(OBSERVATIONS):
                rates = _observed(rates, kind, pool, alike, draw)
    return rates


def _observed(
    rates: Rates, kind: str, pool: str, alike: Sequence[Chooser], draw: random.Random
) -> Rates:
    """With one run more of a kind in a pool."""
    runs = [
        (each.accelerators, place) for each in alike for place in each.places if place.pool == pool
    ]
    accelerators, place = draw.choice(runs)
    rate = place.rate * draw.lognormvariate(0.0, NOISE)
    return rates.observe(kind, pool, rate, accelerators, place.is_packed)


def _expected(rates: Rates, choosers: Sequence[Chooser]) -> Mapping[Spot, float]:
    """Rates at all places of all jobs."""
    spots = dict.fromkeys(_spot(each, place) for each in choosers for place in each.places)
    told = zip(spots, rates.estimates(tuple(spots)), strict=True)
    return {spot: interval.mid for spot, interval in told}


def _spot(chooser: Chooser, place: Place) -> Spot:
    return Spot(chooser.kind, place.pool, chooser.accelerators, place.is_packed)


def _lost(expected: Mapping[Spot, float], chooser: Chooser, free: Sequence[Place]) -> float:
    chosen = max(free, key=lambda place: expected[_spot(chooser, place)])
    return 1.0 - chosen.rate / max(place.rate for place in free)
