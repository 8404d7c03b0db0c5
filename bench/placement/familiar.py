"""The engine before workloads that the analytic model knows: corrected by what it measures.

The law is the operator's: one correction for each (model, pool) from measured over predicted
(:mod:`poolwise.model.correction`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from bench.placement.engine import shape
from bench.placement.modern import Modern
from poolwise.model.correction import Correction, Phase, Sample, corrected
from poolwise.model.prediction import Interval
from poolwise.plan.joint.problem import Option
from poolwise.sim.fleet import Placement
from poolwise.sim.jobs import Job, Run

NOISE = 0.05


class Familiar:
    """Starts from the model's own predictions."""

    def __init__(self, found: Modern, seed: int) -> None:
        self._found = found
        self._draw = random.Random(seed)
        self._corrections: dict[tuple[str, str], Correction] = {}
        self._now_seconds = 0.0
        self._times: dict[tuple[str, int, str], Interval] = {}
        self._versions: dict[str, int] = {}
        self._given: dict[str, tuple[int, tuple[Option, ...]]] = {}

    def options(self, job: Job, left: float) -> tuple[Option, ...]:
        """The one shape of each pool with the memory for it; jobs are never stopped here."""
        version = self._versions.get(job.kind, 0)
        earlier = self._given.get(job.name)
        if earlier is None or earlier[0] != version:
            earlier = version, tuple(self._options(job, job.work * left))
            self._given[job.name] = earlier
        return earlier[1]

    def _options(self, job: Job, work: float) -> Iterator[Option]:
        for pool in self._found.pools:
            if pool.name not in self._found.times[job.kind, job.accelerators]:
                continue
            found = shape(pool, job.accelerators)
            if found is not None:
                seconds = self._time(job, pool.name).scaled(work)
                price = pool.price_per_accelerator_hour * job.accelerators
                yield Option(pool.name, *found, seconds, price, one_per_node=True)

    def expected_seconds(self, job: Job, placement: Placement) -> float:
        """By the corrected model."""
        return job.work * self._time(job, placement.pool).mid

    def observe(self, run: Run, now_seconds: float) -> None:
        """Its step time, to 5 %, against the model's own."""
        key = run.job.kind, run.placement.pool
        predicted = self._found.times[run.job.kind, run.job.accelerators][key[1]].mid
        measured = run.whole_seconds * self._draw.lognormvariate(0.0, NOISE)
        sample = Sample(now_seconds, measured / (run.job.work * predicted))
        earlier = self._corrections.get(key, Correction(Phase.TRAINING))
        self._corrections[key] = earlier.with_samples([sample])
        self._now_seconds = now_seconds
        self._versions[run.job.kind] = self._versions.get(run.job.kind, 0) + 1
        self._times = {at: time for at, time in self._times.items() if at[::2] != key}

    def _time(self, job: Job, pool: str) -> Interval:
        key = job.kind, job.accelerators, pool
        if key not in self._times:
            known = self._corrections.get((job.kind, pool), Correction(Phase.TRAINING))
            predicted = self._found.times[job.kind, job.accelerators][pool]
            self._times[key] = corrected(predicted, known.at(self._now_seconds))
        return self._times[key]
