"""The engine before workloads that the analytic model knows: corrected by what it measures.

The laws are the operator's: a correction for each (model, pool) from measured over predicted, which
lasts longer for runs of the same size (:mod:`poolwise.model.correction`), and pools of which nobody
knows which is faster cost the same delay, the cheapest first
(:mod:`poolwise.plan.selection.ranking`).
"""

from __future__ import annotations

import random
from dataclasses import replace

from bench.placement.engine import exactly, shape
from bench.placement.modern import Modern
from poolwise.model.correction import ALIKE, Correction, Estimate, Phase, Sample, corrected
from poolwise.model.prediction import Interval
from poolwise.plan.decision import Candidate
from poolwise.plan.joint.problem import Option
from poolwise.plan.requests.request import Goal
from poolwise.plan.selection.ranking import losses, rank
from poolwise.sim.fleet import Placement
from poolwise.sim.jobs import Job, Run

NOISE = 0.05


class Familiar:
    """Starts from the model's own predictions."""

    def __init__(self, found: Modern, seed: int) -> None:
        self._found = found
        self._draw = random.Random(seed)
        self._corrections: dict[tuple[str, str, int], Correction] = {}
        """By kind, pool and size; size 0: of all sizes."""
        self._now_seconds = 0.0
        self._times: dict[tuple[str, int, str], Interval] = {}
        self._versions: dict[str, int] = {}
        self._given: dict[str, tuple[int, tuple[Option, ...]]] = {}

    def options(self, job: Job, left: float) -> tuple[Option, ...]:
        """The one shape of each pool with the memory for it; jobs are never stopped here."""
        version = self._versions.get(job.kind, 0)
        earlier = self._given.get(job.name)
        if earlier is None or earlier[0] != version:
            earlier = version, self._options(job, job.work * left)
            self._given[job.name] = earlier
        return earlier[1]

    def _options(self, job: Job, work: float) -> tuple[Option, ...]:
        found = []
        for pool in self._found.pools:
            divided = shape(pool, job.accelerators)
            if divided and pool.name in self._found.times[job.kind, job.accelerators]:
                seconds = self._time(job, pool.name).scaled(work)
                price = pool.price_per_accelerator_hour * job.accelerators
                found.append(Option(pool.name, *divided, seconds, price, one_per_node=True))
        ranking = rank((self._candidate(job, each) for each in found), Goal.TIME)
        lost = losses(ranking) if ranking else {}
        return tuple(replace(each, objective=exactly(lost[each.pool])) for each in found)

    def _candidate(self, job: Job, option: Option) -> Candidate:
        """The operator's, with what is believed now."""
        known = self._found.candidates[job.kind, job.accelerators][option.pool]
        predicted = self._found.times[job.kind, job.accelerators][option.pool].spread
        seconds = option.seconds
        assert seconds is not None, "runs end"
        own = known.own_spread * seconds.spread / predicted if predicted else 0.0
        return replace(
            known,
            cost_per_hour=option.cost_per_hour,
            total_cost=option.cost,
            total_seconds=seconds.mid,
            objective_value=seconds.mid,
            own_spread=own,
        )

    def expected_seconds(self, job: Job, placement: Placement) -> float:
        """By the corrected model."""
        return job.work * self._time(job, placement.pool).mid

    def observe(self, run: Run, now_seconds: float) -> None:
        """Its step time, to 5 %, against the model's own."""
        key = run.job.kind, run.placement.pool
        predicted = self._found.times[run.job.kind, run.job.accelerators][key[1]].mid
        measured = run.whole_seconds * self._draw.lognormvariate(0.0, NOISE)
        sample = Sample(now_seconds, measured / (run.job.work * predicted))
        for size in (0, run.job.accelerators):
            earlier = self._corrections.get((*key, size), Correction(Phase.TRAINING))
            self._corrections[(*key, size)] = earlier.with_samples([sample])
        self._now_seconds = now_seconds
        self._versions[run.job.kind] = self._versions.get(run.job.kind, 0) + 1
        self._times = {at: time for at, time in self._times.items() if at[::2] != key}

    def _time(self, job: Job, pool: str) -> Interval:
        key = job.kind, job.accelerators, pool
        if key not in self._times:
            predicted = self._found.times[job.kind, job.accelerators][pool]
            self._times[key] = corrected(predicted, self._estimate(job, pool))
        return self._times[key]

    def _estimate(self, job: Job, pool: str) -> Estimate:
        """By runs of the same size where there were any, else by all of the kind."""
        alike = self._corrections.get((job.kind, pool, job.accelerators))
        if alike is not None:
            return alike.at(self._now_seconds, lasting=ALIKE)
        known = self._corrections.get((job.kind, pool, 0), Correction(Phase.TRAINING))
        return known.at(self._now_seconds)
