"""Peak memory of a training run, on its fullest device.

State, in bytes per parameter, for 16-bit training with Adam: weights 2, gradients 2 (4 where
several micro-batches are accumulated, in fp32 as Megatron-LM and DeepSpeed do), a master copy 4
and two moments 8. ZeRO divides the last two by the ranks that hold the same parameters from
stage 1, gradients from stage 2, weights from stage 3 (arXiv 1910.02054).
"""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.model.formats import master_format, weight_bytes
from poolwise.model.hardware import Device, Machine
from poolwise.model.prediction import Interval, Memory
from poolwise.model.shapes import Custom, Transformer
from poolwise.model.training import activations, eager
from poolwise.model.training.eager import is_eager
from poolwise.model.training.shard import (
    Shard,
    micro_batch_count,
    micro_batch_tokens,
    shard,
)
from poolwise.model.work import Method, Optimizer, Recompute, TrainingLayout, TrainingWork

DRIVER_CONTEXT_BYTES = 0.5e9
"""Taken by the driver for a process that computes: 0.5 GB and more."""
COMMUNICATION_BYTES_PER_GROUP = 0.4e9
"""Buffers of the communication library: 0.5 to 2 GB, growing with the groups a rank is in."""
ALLOCATOR_SLACK = 0.04
"""Fragmentation and workspaces over what is allocated: 3 to 8 %."""
LOGIT_BYTES = 4.0
"""Per token and vocabulary entry: 16-bit output and its gradient; a fused or compiled loss keeps
no copy in fp32, and another one three (:mod:`poolwise.model.training.eager`). With 6, runs of
llm-foundry that ran would be said not to fit, and torchtitan's peaks are met worse
(``python -m bench.memory``)."""
CUSTOM_RECOMPUTED = {Recompute.NONE: 1.0, Recompute.SELECTIVE: 0.5, Recompute.FULL: 0.25}
"""Share of a custom model's activations that stays; its layers are not known."""

STATE_BYTES = {
    Optimizer.ADAMW: 8.0,
    Optimizer.ADAM_8BIT: 2.0,
    Optimizer.ADAFACTOR: 0.1,
    Optimizer.SGD: 4.0,
}
"""Per trained parameter, without a master copy: two fp32 moments, two in 8 bits, factored rows
and columns, one momentum."""


PEAK_SPREAD = 0.035
"""Standard deviation of ln(measured / predicted) that the upper bound is set by. What is needed
already holds the reserve; with more, some of llm-foundry's 133 runs, which fill 94 % of their
devices, would be refused though they ran. Of the 17 published peaks those of torchtune, whose loss
is not fused, lie above the bound (``python -m bench.memory``)."""


MOST_OVER_NEEDED = Interval.around(1.0, PEAK_SPREAD).high
"""Upper end of what a run may need over what is predicted."""


@dataclass(slots=True)  # not frozen: searches make thousands, and freezing takes longer
class _Bytes:
    """Per parameter."""

    weight: float
    gradient: float
    optimizer: float


@dataclass(slots=True)
class _Kept:
    """Activations at one degree of recomputation, in bytes per token of a micro-batch."""

    working: float
    """Of the layer at work."""
    stage: float
    """Of all layers of a stage, for each micro-batch in flight."""
    logits: float


def usable_bytes(device: Device) -> float:
    """What a process can fill: what the driver exposes less its own context."""
    return device.memory_bytes - (0.0 if device.is_cpu else DRIVER_CONTEXT_BYTES)


def peak_bytes(memory: Memory) -> Interval:
    """What will be needed, and the range that holds nine measured peaks in ten."""
    return Interval.around(memory.needed_bytes, PEAK_SPREAD)


def needed_at_most_bytes(usable_bytes: float) -> float:
    """What a run may be predicted to need where so much is usable: the upper end of the range
    decides, for a run that starts only with luck is none."""
    return usable_bytes / MOST_OVER_NEEDED


def training_memory(
    work: TrainingWork, layout: TrainingLayout, machine: Machine, known: Shard | None = None
) -> Memory:
    """Peak by use. Does not ask whether the layout divides the model evenly."""
    share = known or shard(work, layout)
    footprint = Footprint(work, layout, machine, share)
    weights, gradients, optimizer = footprint.state(share.micro_batches > 1)
    kept = footprint.activations_bytes(
        layout.recompute, layout.micro_batch_size, share.micro_batches
    )
    held = weights + gradients + optimizer + kept
    reserve = footprint.reserve_bytes(held)
    return Memory(
        usable_bytes=usable_bytes(machine.device),
        weights_bytes=weights,
        gradients_bytes=gradients,
        optimizer_bytes=optimizer,
        activations_bytes=kept,
        reserve_bytes=reserve,
        more_bytes=(held + reserve) * (MOST_OVER_NEEDED - 1.0),
    )


class Footprint:
    """What one division into parallel sizes needs, for every micro-batch and recomputation.

    Searches ask a division for dozens of them, and little changes from one to the next.
    """

    def __init__(
        self, work: TrainingWork, sizes: TrainingLayout, machine: Machine, share: Shard
    ) -> None:
        """``share`` is of any micro-batch."""
        self._work, self._sizes, self._share = work, sizes, share
        self._states: dict[bool, tuple[float, float, float]] = {}
        self._kept: dict[Recompute, _Kept] = {}
        groups = (sizes.data, sizes.tensor, sizes.pipeline, sizes.context, sizes.expert)
        count = 0 if machine.device.is_cpu else sum(size > 1 for size in groups)
        self._buffers_bytes = COMMUNICATION_BYTES_PER_GROUP * count

    def needed_bytes(self, recompute: Recompute, micro_batch_size: int) -> tuple[float, float]:
        """In all, and of activations alone."""
        batches = micro_batch_count(self._work, self._sizes.data, micro_batch_size)
        kept = self.activations_bytes(recompute, micro_batch_size, batches)
        held = sum(self.state(batches > 1)) + kept
        return held + self.reserve_bytes(held), kept

    def state(self, accumulates: bool) -> tuple[float, float, float]:
        """Bytes of weights, of gradients, which may add several micro-batches up, and of the
        optimizer."""
        if accumulates not in self._states:
            self._states[accumulates] = self._state(accumulates)
        return self._states[accumulates]

    def _state(self, accumulates: bool) -> tuple[float, float, float]:
        if self._work.method is Method.FULL:
            return _full_state(self._work, self._sizes, self._share, accumulates)
        return _adapter_state(self._work, self._sizes, self._share)

    def activations_bytes(
        self, recompute: Recompute, micro_batch_size: int, micro_batches: int
    ) -> float:
        """The fuller of first stage (most micro-batches in flight) and last (the logits)."""
        if recompute not in self._kept:
            self._kept[recompute] = _kept(self._work, self._sizes, self._share, recompute)
        kept = self._kept[recompute]
        tokens = micro_batch_tokens(self._work, self._sizes.context, micro_batch_size)
        first = kept.stage * _in_flight(self._sizes, micro_batches)
        return tokens * (kept.working + max(first, kept.stage + kept.logits))

    def reserve_bytes(self, allocated: float) -> float:
        """Of the allocator, and the buffers of each group that communicates."""
        return ALLOCATOR_SLACK * allocated + self._buffers_bytes


def _full_state(
    work: TrainingWork, layout: TrainingLayout, share: Shard, accumulates: bool
) -> tuple[float, float, float]:
    per = _bytes_per_parameter(work, layout, accumulates)
    stage = layout.zero_stage
    weights = per.weight * _sharded(share, stage >= 3)
    gradients = per.gradient * _sharded(share, stage >= 2)
    if stage >= 3:
        weights += _gathered_bytes(share)
        gradients += 2.0 * _layer_parameters(share)
    return weights, gradients, per.optimizer * _sharded(share, stage >= 1)


def _adapter_state(
    work: TrainingWork, layout: TrainingLayout, share: Shard
) -> tuple[float, float, float]:
    """Frozen weights, and Adam on the adapters alone."""
    stage = layout.zero_stage
    gathered = _gathered_bytes(share) if stage >= 3 else 0.0
    trained = share.adapter_parameters
    state = (4 + STATE_BYTES[work.optimizer]) * trained
    return (
        _frozen_bytes(work, share, stage >= 3) + gathered + 2 * trained,
        2 * trained,
        state / share.replicas if stage >= 1 else state,
    )


def _frozen_bytes(work: TrainingWork, share: Shard, is_sharded: bool) -> float:
    """QLoRA packs the layers' matrices: embedding and head stay as they are."""
    ends = share.embedding_parameters / (share.replicas if is_sharded else 1)
    layers = _sharded(share, is_sharded) - ends
    return layer_weight_bytes(work) * layers + weight_bytes(master_format(work.precision)) * ends


def layer_weight_bytes(work: TrainingWork) -> float:
    """Stored bytes of one parameter of a layer."""
    return weight_bytes("int4" if work.method is Method.QLORA else master_format(work.precision))


def optimizer_bytes(work: TrainingWork) -> float:
    """Per trained parameter: a master copy of weights of fewer bits, and the optimizer's own."""
    master = 4.0 if weight_bytes(master_format(work.precision)) < 4 else 0.0
    return master + STATE_BYTES[work.optimizer]


def _bytes_per_parameter(work: TrainingWork, layout: TrainingLayout, accumulates: bool) -> _Bytes:
    weight = weight_bytes(master_format(work.precision))
    adds_up = accumulates and layout.zero_stage < 3
    gradient = 4.0 if adds_up or is_eager(work) else weight
    return _Bytes(weight, gradient, optimizer_bytes(work))


def _sharded(share: Shard, is_sharded: bool) -> float:
    """Parameters of which this rank keeps something."""
    if not is_sharded:
        return share.stored_parameters
    experts = share.stage_layers * share.expert_parameters
    return share.dense_stored / share.replicas + experts / share.expert_replicas


def _gathered_bytes(share: Shard) -> float:
    """ZeRO-3 holds the weights of the layer at work and of the next, whole and in 16 bits."""
    return 2 * 2.0 * max(_layer_parameters(share), share.embedding_parameters / 2)


def _layer_parameters(share: Shard) -> float:
    return share.dense_parameters + share.expert_parameters


def _kept(work: TrainingWork, sizes: TrainingLayout, share: Shard, recompute: Recompute) -> _Kept:
    shape = work.model.shape
    if isinstance(shape, Custom):
        per_sample = shape.activation_bytes_per_sample * CUSTOM_RECOMPUTED[recompute]
        return _Kept(0.0, per_sample / sizes.tensor, 0.0)
    element = weight_bytes(master_format(work.precision)) / 2
    kept = _layer_bytes(work, shape, share, recompute) / sizes.tensor
    whole = _layer_bytes(work, shape, share, Recompute.NONE) / sizes.tensor
    logits = eager.LOGIT_BYTES if is_eager(work) else LOGIT_BYTES
    return _Kept(
        working=element * (whole - kept + _passing_bytes(shape, sizes)),
        stage=element * kept * share.stage_layers,
        logits=logits * shape.vocab / sizes.tensor,
    )


def _layer_bytes(
    work: TrainingWork, shape: Transformer, share: Shard, recompute: Recompute
) -> float:
    kept = activations.layer_bytes_per_token(shape, recompute, share.routed_width)
    if recompute is Recompute.NONE and is_eager(work):
        kept += eager.layer_kept_bytes(shape, work.method)
    return kept


def _passing_bytes(shape: Transformer, sizes: TrainingLayout) -> float:
    """Gradients of activations, and what sequence parallelism gathers around matrix products
    (inputs of attention and MLP, and one gradient)."""
    gradients = 4.0 * shape.hidden / sizes.tensor
    gathered = 6.0 * shape.hidden if sizes.tensor > 1 else 0.0
    return gradients + gathered


def _in_flight(sizes: TrainingLayout, micro_batches: int) -> float:
    """Micro-batches that the first stage holds: 1F1B min(p, m), more when interleaved."""
    held = float(min(sizes.pipeline, micro_batches))
    if sizes.interleave > 1:
        held *= 1 + (sizes.pipeline - 1) / (sizes.pipeline * sizes.interleave)
    return max(1.0, min(held, micro_batches))
