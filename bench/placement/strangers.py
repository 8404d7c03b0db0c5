"""The engine before workloads whose FLOPs nobody told: rates learned by the operator's own law.

As :mod:`poolwise.plan.learning` has them for such models, ranked as the operator ranks them
(:mod:`poolwise.plan.selection.ranking`): of pools that nobody can tell apart the cheapest comes
first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from bench.placement.engine import exactly, shape
from poolwise.plan.decision import Candidate
from poolwise.plan.joint.problem import Option
from poolwise.plan.learning import Place, PoolSpec, Rates
from poolwise.plan.learning.rates import Belief
from poolwise.plan.requests.request import Goal
from poolwise.plan.selection.ranking import losses, rank
from poolwise.sim.fleet import Placement, Pool
from poolwise.sim.jobs import Job, Run

NOISE = 0.05
"""Of a measured rate."""
ENOUGH = 5
"""Measurements of one kind at one place."""
Known = Mapping[str, Belief]
"""What is believed of the rate by pool."""


class Strangers:
    """Starts from datasheets alone."""

    def __init__(self, specs: Sequence[PoolSpec], pools: Sequence[Pool], seed: int) -> None:
        self._rates = Rates(tuple(specs))
        self._pools = pools
        self._draw = random.Random(seed)
        self._shapes: dict[int, Sequence[Option]] = {}
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
        found = [
            replace(option, seconds=known[option.pool].rate.inverse.scaled(work))
            for option in self._shaped(job.accelerators)
        ]
        ranking = rank((_candidate(each, known[each.pool]) for each in found), Goal.TIME)
        lost = losses(ranking) if ranking else {}
        return tuple(replace(each, objective=exactly(lost[each.pool])) for each in found)

    def expected_seconds(self, job: Job, placement: Placement) -> float:
        """By the rate that is believed."""
        return job.work / self._known(job)[placement.pool].rate.mid

    def observe(self, run: Run, now_seconds: float) -> None:
        """Its rate, to 5 %; after the fifth of the same the operator has seen enough."""
        kind, size, pool = run.job.kind, run.job.accelerators, run.placement.pool
        seen = self._rates.seen.get(Place(kind, pool, size, packed=True))
        if seen is None or seen.count < ENOUGH:
            rate = run.job.work / run.whole_seconds * self._draw.lognormvariate(0.0, NOISE)
            self._rates = self._rates.observe(kind, pool, rate, size, packed=True)

    def _known(self, job: Job) -> Known:
        return self._rates.among(job.kind, job.accelerators)

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
        self._truth: dict[tuple[str, int], Known] = {}

    def observe(self, run: Run, now_seconds: float) -> None:
        """Nothing to learn."""

    def _known(self, job: Job) -> Known:
        key = job.kind, job.accelerators
        if key not in self._truth:
            pools = [option.pool for option in self._shaped(job.accelerators)]
            rates = {pool: exactly(self._rate(*key, pool, True)) for pool in pools}
            self._truth[key] = {pool: Belief(rate, 0.0) for pool, rate in rates.items()}
        return self._truth[key]


def _candidate(option: Option, believed: Belief) -> Candidate:
    """As far as it is ranked."""
    seconds = option.seconds
    assert seconds is not None, "runs end"
    return Candidate(
        option.pool,
        accelerator=None,
        feasible=True,
        reason="",
        reason_code="",
        cost_per_hour=option.cost_per_hour,
        total_cost=option.cost,
        total_seconds=seconds.mid,
        objective_value=seconds.mid,
        own_spread=believed.own_spread,
    )
