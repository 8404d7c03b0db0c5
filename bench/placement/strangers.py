"""The engine before workloads that no table knows: rates learned by the operator's own law."""

from __future__ import annotations

import random
from collections.abc import Sequence

from bench.placement.engine import shapes
from poolwise.model.prediction import Interval
from poolwise.plan.joint.problem import Option
from poolwise.plan.learning import PoolSpec, Rates
from poolwise.sim.fleet import Placement, Pool
from poolwise.sim.jobs import Job, Run

NOISE = 0.05
"""Of a measured rate."""


class Strangers:
    """Starts from datasheets alone."""

    def __init__(self, specs: Sequence[PoolSpec], pools: Sequence[Pool], seed: int) -> None:
        self._rates = Rates(tuple(specs))
        self._pools = {pool.name: pool for pool in pools}
        self._draw = random.Random(seed)
        self._times: dict[tuple[str, int], Sequence[tuple[Option, Interval]]] = {}

    def options(self, job: Job, left: float) -> tuple[Option, ...]:
        """Packed and spread in every pool that it fits."""
        work = job.work * left
        return tuple(
            Option(
                option.pool,
                option.pods,
                option.accelerators_per_pod,
                each.scaled(work),
                option.cost_per_hour,
                one_per_node=option.one_per_node,
            )
            for option, each in self._unit_times(job)
        )

    def expected_seconds(self, job: Job, placement: Placement) -> float:
        """By the rate that is believed."""
        packed = self._is_packed(placement)
        where = placement.pool, job.accelerators, packed
        return job.work / self._rates.estimate(job.kind, *where).mid

    def observe(self, run: Run, now_seconds: float) -> None:
        """Its rate, to 5 %."""
        rate = run.job.work / run.whole_seconds * self._draw.lognormvariate(0.0, NOISE)
        packed = self._is_packed(run.placement)
        where = run.placement.pool, rate, run.job.accelerators, packed
        self._rates = self._rates.observe(run.job.kind, *where)
        self._times.clear()

    def _is_packed(self, placement: Placement) -> bool:
        largest = max(self._pools[placement.pool].nodes)
        return len(placement.nodes) <= -(-placement.accelerators // largest)

    def _unit_times(self, job: Job) -> Sequence[tuple[Option, Interval]]:
        """Options with the seconds of one unit of work."""
        key = job.kind, job.accelerators
        if key not in self._times:
            self._times[key] = [
                (option, _inverse(self._rates.estimate(job.kind, option.pool, key[1], packed)))
                for option, packed in self._all_shapes(job.accelerators)
            ]
        return self._times[key]

    def _all_shapes(self, accelerators: int) -> Sequence[tuple[Option, bool]]:
        found = []
        for pool in self._pools.values():
            price = pool.price_per_accelerator_hour * accelerators
            for pods, each, one_per_node, packed in shapes(pool, accelerators):
                option = Option(pool.name, pods, each, None, price, one_per_node=one_per_node)
                found.append((option, packed))
        return found


def _inverse(rate: Interval) -> Interval:
    return Interval(1.0 / rate.mid, 1.0 / rate.high, 1.0 / rate.low)
