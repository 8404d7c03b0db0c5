"""The engine before workloads that no table knows: rates learned by the operator's own law."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from bench.placement.engine import exactly, shape
from poolwise.model.prediction import Interval
from poolwise.plan.joint.problem import Option
from poolwise.plan.learning import Place, PoolSpec, Rates
from poolwise.sim.fleet import Placement, Pool
from poolwise.sim.jobs import Job, Run

NOISE = 0.05
"""Of a measured rate."""
ENOUGH = 5
"""Measurements of one kind at one place."""
Known = dict[str, Interval]
"""Seconds of one unit of work by pool."""


class Strangers:
    """Starts from datasheets alone."""

    def __init__(self, specs: Sequence[PoolSpec], pools: Sequence[Pool], seed: int) -> None:
        self._rates = Rates(tuple(specs))
        self._pools = pools
        self._draw = random.Random(seed)
        self._shapes: dict[int, Sequence[Option]] = {}
        self._jobs: set[tuple[str, int]] = set()
        self._times: dict[tuple[str, int], Known] = {}
        self._given: dict[str, tuple[Known, tuple[Option, ...]]] = {}

    def options(self, job: Job, left: float) -> tuple[Option, ...]:
        """One in every pool; jobs are never stopped here, so ``left`` is 1."""
        known = self._known(job)
        earlier = self._given.get(job.name)
        if earlier is not None and earlier[0] is known:
            return earlier[1]
        self._given[job.name] = known, self._options(job, job.work * left, known)
        return self._given[job.name][1]

    def _options(self, job: Job, work: float, known: Known) -> tuple[Option, ...]:
        return tuple(
            replace(option, seconds=known[option.pool].scaled(work))
            for option in self._shaped(job.accelerators)
        )

    def expected_seconds(self, job: Job, placement: Placement) -> float:
        """By the rate that is believed."""
        return job.work * self._known(job)[placement.pool].mid

    def observe(self, run: Run, now_seconds: float) -> None:
        """Its rate, to 5 %; after the fifth of the same the operator has seen enough."""
        kind, size, pool = run.job.kind, run.job.accelerators, run.placement.pool
        seen = self._rates.seen.get(Place(kind, pool, size, packed=True))
        if seen is None or seen.count < ENOUGH:
            rate = run.job.work / run.whole_seconds * self._draw.lognormvariate(0.0, NOISE)
            self._rates = self._rates.observe(kind, pool, rate, size, packed=True)
            self._times = {}

    def _known(self, job: Job) -> Known:
        """Seconds of one unit of work by pool."""
        key = job.kind, job.accelerators
        if key not in self._times:
            self._jobs.add(key)
            self._times = self._all_times()
        return self._times[key]

    def _all_times(self) -> dict[tuple[str, int], Known]:
        """Of every kind and size that ever came."""
        places = [
            Place(kind, option.pool, size, packed=True)
            for kind, size in sorted(self._jobs)
            for option in self._shaped(size)
        ]
        times: dict[tuple[str, int], Known] = {}
        for place, rate in zip(places, self._rates.estimates(places), strict=True):
            of_job = times.setdefault((place.workload, place.accelerators), {})
            of_job[place.pool] = _inverse(rate)
        return times

    def _shaped(self, accelerators: int) -> Sequence[Option]:
        """How so many are divided in each pool that has them."""
        if accelerators not in self._shapes:
            self._shapes[accelerators] = list(self._divided(accelerators))
        return self._shapes[accelerators]

    def _divided(self, accelerators: int) -> Iterator[Option]:
        for pool in self._pools:
            found = shape(pool, accelerators)
            if found is not None:
                price = pool.price_per_accelerator_hour * accelerators
                yield Option(pool.name, *found, None, price, one_per_node=True)


class Told(Strangers):
    """The same, told the true rates: what a lack of knowledge costs is the difference to it."""

    def __init__(self, rate: Callable[[str, int, str, bool], float], pools: Sequence[Pool]) -> None:
        specs = [PoolSpec(pool.name, 1.0, 1.0) for pool in pools]
        super().__init__(specs, pools, seed=0)
        self._rate = rate

    def observe(self, run: Run, now_seconds: float) -> None:
        """Nothing to learn."""

    def _all_times(self) -> dict[tuple[str, int], Known]:
        return {
            (kind, size): {
                option.pool: exactly(1.0 / self._rate(kind, size, option.pool, True))
                for option in self._shaped(size)
            }
            for kind, size in self._jobs
        }


def _inverse(rate: Interval) -> Interval:
    return Interval(1.0 / rate.mid, 1.0 / rate.high, 1.0 / rate.low)
