"""Time of one optimizer step, as a ledger of named terms, with memory and an interval.

::

    step = (m + (p-1)/v) * (busy + exposed communication + launches)      per micro-batch
         + exposed data-parallel traffic + optimizer + fixed overhead
    step = max(step, input supply) * (1 + checkpoint share)

for m micro-batches through p pipeline stages of v virtual ones each (bubble ``(p-1)/(v*m)``,
arXiv 2104.04473). ``busy`` is :mod:`poolwise.model.training.layer`, communication
:mod:`poolwise.model.training.communication`, input and checkpoint
:mod:`poolwise.model.training.input`. These two follow from rates that a person or a setting states
and are taken at their word, so that the range is that of what stands before them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from poolwise.model.collectives import Links
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Device, Machine
from poolwise.model.prediction import CHECKPOINT, OVERHEAD, Interval, Term, TrainingPrediction
from poolwise.model.roofline import ridge_point
from poolwise.model.shapes import Custom, Transformer
from poolwise.model.training import communication, layer
from poolwise.model.training.communication import Fabric
from poolwise.model.training.input import checkpoint_share, supply_seconds
from poolwise.model.training.layer import Busy
from poolwise.model.training.maturity import PHASE, software_year
from poolwise.model.training.memory import STATE_BYTES, training_memory
from poolwise.model.training.shard import Shard, sequence_tokens, shard
from poolwise.model.transformer import sparse_layers
from poolwise.model.work import Method, TrainingLayout, TrainingWork

GRAPHS_BEGIN_YEAR = 2025.5
"""When the launch times of experts are as their constants say."""
IDLE_POWER = 0.35
"""Share of a device's power limit that it draws while it waits; the rest goes with its load."""


@dataclass(slots=True)  # not frozen: searches make thousands, and freezing takes longer
class _Step:
    """Seconds of one step by term, before input and checkpoints."""

    busy: Busy
    interconnect: float
    bubble: float
    optimizer: float
    overhead: float

    @property
    def seconds(self) -> float:
        return self.busy.seconds + self.interconnect + self.bubble + self.optimizer + self.overhead


def predict_training(
    work: TrainingWork,
    layout: TrainingLayout,
    machine: Machine,
    calibration: Calibration,
    known: Alone | None = None,
) -> TrainingPrediction:
    """One step of one layout on one machine, whether or not it fits the memory.

    Raises InvalidInput where the device has no unit for the precision.
    """
    own = known or alone(work, layout, machine, calibration)
    step = _step(work, own, Fabric(layout, Links(machine, calibration)))
    ledger = _ledger(work, layout, step, machine)
    mid = math.fsum(term.seconds for term in ledger)
    constant = calibration.efficiency(PHASE, _main_term(work), machine.device, work.precision)
    samples_per_second = work.global_batch_samples / mid
    moved = step.busy.moved_bytes
    return TrainingPrediction(
        step_seconds=_range(mid, step.seconds, constant.spread, work, layout.count, machine),
        ledger=ledger,
        memory=training_memory(work, layout, machine, own.share),
        samples_per_second=samples_per_second,
        tokens_per_second=_tokens_per_second(work, samples_per_second),
        arithmetic_intensity=step.busy.flops / moved if moved else math.inf,
        ridge_point=ridge_point(machine.device, work.precision),
        power_watts=_power_watts(machine.device, step.busy.seconds / mid),
        provenance=constant.provenance,
        fitted_spread=constant.spread,
    )


def step_seconds(
    work: TrainingWork,
    layout: TrainingLayout,
    machine: Machine,
    calibration: Calibration,
    known: Alone | None = None,
) -> float:
    """The middle of :func:`predict_training` alone, for searches.

    Who knows the device's own part from other links saves most of it.
    """
    own = known or alone(work, layout, machine, calibration)
    fed = fed_seconds(work, layout, own, Links(machine, calibration))
    return held_up_seconds(fed, work, layout.count, machine)


def fed_seconds(work: TrainingWork, layout: TrainingLayout, own: Alone, links: Links) -> float:
    """The same without input and checkpoints: it changes with no storage."""
    return _step(work, own, Fabric(layout, links)).seconds


def held_up_seconds(fed: float, work: TrainingWork, count: int, machine: Machine) -> float:
    """With the wait for input, and the share of time that checkpoints take."""
    supplied = max(fed, supply_seconds(work, count, machine))
    return supplied * (1.0 + checkpoint_share(work, count, machine))


def _range(
    mid: float, fed: float, spread: float, work: TrainingWork, count: int, machine: Machine
) -> Interval:
    """Of a whole step, whose part before input and checkpoints is uncertain.

    Longer parts make no shorter steps, so the ends of the one are the ends of the other.
    """
    of_fed = Interval.around(fed, spread)
    low, high = (held_up_seconds(end, work, count, machine) for end in (of_fed.low, of_fed.high))
    return Interval(mid, min(low, mid), max(high, mid))


@dataclass(slots=True)
class Alone:
    """The part of a step that is a device's own: it changes with no link, storage or memory."""

    share: Shard
    once: Busy
    """Of one micro-batch."""
    launches: float
    """Of one micro-batch too, in seconds; the rest is of a step."""
    optimizer: float
    overhead: float
    fill: float
    """Micro-batches' worth of time that a pipeline stands idle in."""

    @property
    def occupied_seconds(self) -> float:
        """Of one micro-batch: what communication can hide behind, be it the device that works or
        the host that launches. What hides launches hides no communication beside."""
        return self.once.seconds + self.launches

    @property
    def unfilled_seconds(self) -> float:
        """The least that any cut into micro-batches leaves: a pipeline that is never idle."""
        rounds = self.share.micro_batches
        return rounds * self.occupied_seconds + self.optimizer + self.overhead

    @property
    def seconds(self) -> float:
        """The least that the step takes, on any machine around this device."""
        rounds = self.share.micro_batches + self.fill
        return rounds * self.occupied_seconds + self.optimizer + self.overhead


def alone(
    work: TrainingWork,
    layout: TrainingLayout,
    machine: Machine,
    calibration: Calibration,
    known: Shard | None = None,
    known_once: Busy | None = None,
) -> Alone:
    """Of one layout on one device and the host's cores that dispatch to it.

    ``known_once`` is :func:`layer.micro_batch`, which is the same whatever the data-parallel size.
    """
    share, device = known or shard(work, layout), machine.device
    once = known_once or layer.micro_batch(work, layout, share, device, calibration)
    overhead = calibration.value(PHASE, "step_overhead_seconds", device)
    return Alone(
        share=share,
        once=once,
        launches=_launch_seconds(work, layout, share, once.seconds, machine, calibration),
        optimizer=_optimizer_seconds(work, layout, share, device, calibration),
        overhead=overhead / machine.host.dispatch_speed,
        fill=(layout.pipeline - 1) / layout.interleave,
    )


def _main_term(work: TrainingWork) -> str:
    """The constant whose spread and provenance speak for the prediction."""
    shape = work.model.shape
    if isinstance(shape, Custom):
        return "custom"
    return "products" if shape.experts is None else "experts"


def _step(work: TrainingWork, own: Alone, fabric: Fabric) -> _Step:
    share, once, occupied = own.share, own.once, own.occupied_seconds
    waits = communication.micro_batch_seconds(work, share, occupied, fabric)
    rounds = share.micro_batches
    return _Step(
        busy=once.times(rounds),
        interconnect=waits * rounds + communication.step_seconds(work, share, occupied, fabric),
        bubble=own.fill * (once.seconds + waits + own.launches),
        optimizer=own.optimizer,
        overhead=own.launches * rounds + own.overhead,
    )


def _launch_seconds(
    work: TrainingWork,
    layout: TrainingLayout,
    share: Shard,
    busy_seconds: float,
    machine: Machine,
    calibration: Calibration,
) -> float:
    """Gaps between kernels, and what the host cannot dispatch in time: each layer of experts, and
    each expert here, costs launches of its own, which outlast the device when its tokens are few.
    Newer software captures more of them in graphs."""

    def constant(term: str) -> float:
        return calibration.value(PHASE, term, machine.device)

    gaps = constant("layer_launch_seconds")
    layers = share.stage_layers / machine.host.dispatch_speed
    shape = work.model.shape
    if not isinstance(shape, Transformer) or shape.experts is None:
        return layers * gaps
    each = constant("expert_launch_seconds") * shape.experts.count / layout.expert
    age = software_year(work, machine.device, calibration) - GRAPHS_BEGIN_YEAR
    uncaptured = math.exp(-age / constant("graph_years"))
    sparse = sparse_layers(shape) / shape.layers
    host = (each + constant("routing_launch_seconds")) * sparse * uncaptured
    return layers * gaps + max(0.0, layers * host - busy_seconds)


def _optimizer_seconds(
    work: TrainingWork,
    layout: TrainingLayout,
    share: Shard,
    device: Device,
    calibration: Calibration,
) -> float:
    """State read and written once, gradient read, weights written; bound by memory."""
    if work.method is Method.FULL:
        experts = share.stage_layers * share.expert_parameters
        dense_ranks = share.replicas if layout.zero_stage else 1
        expert_ranks = share.expert_replicas if layout.zero_stage else 1
        owned = share.dense_stored / dense_ranks + experts / expert_ranks
    else:
        owned = share.adapter_parameters
    per_parameter = 2 * (STATE_BYTES[work.optimizer] + 4.0) + 4.0 + 2.0
    reached = calibration.value(PHASE, "bandwidth", device)
    bandwidth = device.memory_bandwidth_bytes_per_second * reached
    return owned * per_parameter / bandwidth


def _ledger(
    work: TrainingWork, layout: TrainingLayout, step: _Step, machine: Machine
) -> tuple[Term, ...]:
    """Every term that takes time; they sum to the step."""
    supply = supply_seconds(work, layout.count, machine)
    stalled = max(0.0, supply - step.seconds)
    checkpoint = (step.seconds + stalled) * checkpoint_share(work, layout.count, machine)
    terms = (
        Term("Compute", step.busy.compute_seconds),
        Term("MemoryBandwidth", step.busy.memory_seconds),
        Term("Interconnect", step.interconnect),
        Term("PipelineBubble", step.bubble),
        Term("Optimizer", step.optimizer),
        Term("Input", stalled),
        Term(CHECKPOINT, checkpoint),
        Term(OVERHEAD, step.overhead),
    )
    return tuple(term for term in terms if term.seconds > 0)


def _tokens_per_second(work: TrainingWork, samples_per_second: float) -> float | None:
    if isinstance(work.model.shape, Custom) or work.sequence_tokens is None:
        return None
    return samples_per_second * sequence_tokens(work)


def _power_watts(device: Device, load: float) -> float:
    return device.power_watts * (IDLE_POWER + (1 - IDLE_POWER) * load)
