"""How fast runs go of models whose FLOPs nobody told: a roofline needs them.

At first datasheets speak, which say how much faster one pool is than another (:mod:`.kernel`); a
step's own time is then a guess, from FLOPs that go with the activations in the tables' models. Runs
that were measured speak afterwards: of their own pool and size as they were, and of others by what
workloads have in common. Memory, layout and bottleneck are the model's, by the guessed FLOPs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from poolwise.model.efficiency import Provenance
from poolwise.model.formats import arithmetic
from poolwise.model.hardware import Device
from poolwise.model.prediction import CHECKPOINT, OVERHEAD, Interval, Term, TrainingPrediction
from poolwise.model.shapes import Custom, Model
from poolwise.model.work import TrainingLayout, TrainingWork
from poolwise.plan.learning.rates import Belief, Place, PoolSpec, Rates

UTILISATION = 0.3
"""Of peak, in the guess of a step that nobody measured: round, as the next is."""
GUESS_SPREAD = 2.0
"""Deviation of the logarithm of that guess, a factor of 27 either way nine in ten times: FLOPs by
activations are within a factor of 7, and a run that waits for its host is far from any peak."""
KIN_SPREAD = 0.5
"""The same of a sample's time where another batch of the model was measured; round."""
BACKWARD = 3.0
"""FLOPs of a step over those of its forward pass."""


def is_undescribed(model: Model) -> bool:
    """Whether nobody told its FLOPs."""
    return isinstance(model.shape, Custom) and not model.shape.is_described


@dataclass(frozen=True, slots=True)
class Rated:
    """What a measured rate is of."""

    workload: str
    """The model's name, and after a ``/`` what tells its batch and precision from others."""
    precision: str
    accelerators: int
    samples: int
    """Of one step."""


@dataclass(frozen=True, slots=True)
class Pace:
    """One measured run."""

    of: Rated
    pool: str
    step_seconds: float

    @property
    def place(self) -> Place:
        """The operator spreads no run over more nodes than it needs."""
        return Place(self.of.workload, self.pool, self.of.accelerators, packed=True)


@dataclass(frozen=True, slots=True)
class Accelerators:
    """Those of one pool."""

    pool: str
    device: Device


@dataclass(frozen=True, slots=True)
class Paces:
    """All that measured runs tell."""

    measured: tuple[Pace, ...] = ()
    pools: tuple[Accelerators, ...] = ()
    _rates: dict[str, Rates] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By precision, as they are asked for."""

    def of(self, workload: str, work: TrainingWork, pool: str) -> Undescribed:
        """What is known of a work in a pool."""
        rates = self._of(work.precision)
        if rates.has_run(workload):
            return Undescribed(workload, work, pool, rates)
        kin = rates.kin(workload)
        samples = {pace.of.workload: pace.of.samples for pace in self.measured}
        return Undescribed(workload, work, pool, rates, {each: samples[each] for each in kin})

    def _of(self, precision: str) -> Rates:
        """Peaks depend on the arithmetic, so that each has rates of its own."""
        if precision not in self._rates:
            rates = (
                (pace.place, 1.0 / pace.step_seconds)
                for pace in self.measured
                if pace.of.precision == precision and pace.step_seconds > 0.0
            )
            self._rates[precision] = Rates.measured(tuple(_specs(self.pools, precision)), rates)
        return self._rates[precision]


def _specs(pools: Iterable[Accelerators], precision: str) -> Iterable[PoolSpec]:
    for each in pools:
        peaks = each.device.peak_flops_per_second
        unit = arithmetic(precision, peaks)
        bytes_per_second = each.device.memory_bandwidth_bytes_per_second
        if unit is not None and peaks[unit] > 0.0 and bytes_per_second > 0.0:
            yield PoolSpec(each.pool, peaks[unit], bytes_per_second)


@dataclass(frozen=True, slots=True)
class Undescribed:
    """What is known of one work in one pool."""

    workload: str
    work: TrainingWork
    pool: str
    rates: Rates
    kin: Mapping[str, int] = field(default_factory=dict)
    """Where it never ran: who of its model did, and the samples of a step of theirs."""

    def corrected(
        self, prediction: TrainingPrediction, layout: TrainingLayout
    ) -> TrainingPrediction:
        """With the step's time, rates and ledger as they are expected here."""
        told = self.rates.among(self.workload, layout.count).get(self.pool)
        if told is None:
            return prediction
        modelled = prediction.step_seconds.mid
        saving = sum(term.seconds for term in prediction.ledger if term.name == CHECKPOINT)
        seconds = self._step_seconds(told, layout.count, _host_seconds(prediction))
        seconds = seconds.scaled(modelled / (modelled - saving))
        factor = seconds.mid / modelled
        return replace(
            prediction,
            step_seconds=seconds,
            own_spread=told.own_spread,
            ledger=tuple(Term(each.name, each.seconds * factor) for each in prediction.ledger),
            samples_per_second=prediction.samples_per_second / factor,
            provenance=self._provenance,
        )

    def words(self) -> str:
        """Clause: what its speed rests on."""
        here = self.rates.runs(self.workload, self.pool)
        if here:
            rests_on = f"its speed is that of {_runs(here)} here"
        elif self.rates.has_run(self.workload):
            rests_on = "its speed follows from its runs elsewhere"
        elif self.kin:
            rests_on = "its speed follows from runs of its model with other batches"
        else:
            rests_on = "its speed is estimated from data sheets until a run is measured"
        return f"its FLOPs are not given: {rests_on}"

    @property
    def _provenance(self) -> str:
        is_measured = self.rates.runs(self.workload, self.pool) > 0
        return Provenance.MEASURED if is_measured else Provenance.SPECIFICATION

    def _step_seconds(self, told: Belief, accelerators: int, host_seconds: float) -> Interval:
        """A guess by FLOPs has the host's part beside them, which a measured time has in it: few
        FLOPs make no step of nanoseconds."""
        rate = told.rate
        if self.rates.has_run(self.workload):
            return rate.inverse
        if self.kin:
            seconds, doubt = self._seconds_by_kin(accelerators) / rate.mid, KIN_SPREAD
        else:
            seconds, doubt = self._guessed_seconds() / rate.mid + host_seconds, GUESS_SPREAD
        return Interval.around(seconds, math.hypot(doubt, told.own_spread))

    def _seconds_by_kin(self, accelerators: int) -> float:
        """Times its rate: samples take as long as those of its kin, in the mean of the pools."""
        mine = self.rates.among(self.workload, accelerators)
        logs = [
            math.log(mine[pool].rate.mid / theirs.rate.mid * self._samples / samples)
            for kin, samples in self.kin.items()
            for pool, theirs in self.rates.among(kin, accelerators).items()
        ]
        return math.exp(sum(logs) / len(logs))

    @property
    def _samples(self) -> int:
        return self.work.global_batch_samples

    def _guessed_seconds(self) -> float:
        """Of a step on one accelerator as fast as the pools are in the mean."""
        shape = self.work.model.shape
        assert isinstance(shape, Custom), "others are described"
        speeds = [math.log(spec.flops_per_second) for spec in self.rates.specs]
        peak = math.exp(sum(speeds) / len(speeds))
        flops = BACKWARD * shape.forward_flops_per_sample * self._samples
        return flops / (UTILISATION * peak)


def _host_seconds(prediction: TrainingPrediction) -> float:
    """Of a step as the model has it, whatever the device computes."""
    return sum(term.seconds for term in prediction.ledger if term.name == OVERHEAD)


def _runs(count: int) -> str:
    return "one measured run" if count == 1 else f"{count} measured runs"
