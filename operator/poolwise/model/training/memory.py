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
from poolwise.model.training import activations
from poolwise.model.training.shard import Shard, shard
from poolwise.model.work import Method, Optimizer, Recompute, TrainingLayout, TrainingWork

DRIVER_CONTEXT_BYTES = 0.5e9
"""Taken by the driver for a process that computes: 0.5 GB and more."""
COMMUNICATION_BYTES_PER_GROUP = 0.4e9
"""Buffers of the communication library: 0.5 to 2 GB, growing with the groups a rank is in."""
ALLOCATOR_SLACK = 0.04
"""Fragmentation and workspaces over what is allocated: 3 to 8 %."""
LOGITS_BYTES = 4.0
"""Per token and vocabulary entry: 16-bit output and its gradient; a fused or compiled loss keeps
no copy in fp32. With 6, runs of llm-foundry that ran would be said not to fit, and torchtitan's
peaks are met worse (``python -m bench.memory``)."""
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


@dataclass(slots=True)  # not frozen: searches make thousands, and freezing takes longer
class _Bytes:
    """Per parameter."""

    weight: float
    gradient: float
    optimizer: float


def usable_bytes(device: Device) -> float:
    """What a process can fill: what the driver exposes less its own context."""
    return device.memory_bytes - (0.0 if device.is_cpu else DRIVER_CONTEXT_BYTES)


def peak_bytes(memory: Memory) -> Interval:
    """What will be needed, and the range that holds nine measured peaks in ten."""
    return Interval.around(memory.needed_bytes, PEAK_SPREAD)


def training_memory(
    work: TrainingWork, layout: TrainingLayout, machine: Machine, known: Shard | None = None
) -> Memory:
    """Peak by use. Does not ask whether the layout divides the model evenly."""
    share = known or shard(work, layout)
    if work.method is Method.FULL:
        weights, gradients, optimizer = _full_state(work, layout, share)
    else:
        weights, gradients, optimizer = _adapter_state(work, layout, share)
    kept = _activation_bytes(work, layout, share)
    return Memory(
        usable_bytes=usable_bytes(machine.device),
        weights_bytes=weights,
        gradients_bytes=gradients,
        optimizer_bytes=optimizer,
        activations_bytes=kept,
        reserve_bytes=_reserve_bytes(layout, machine, weights + gradients + optimizer + kept),
    )


def _full_state(
    work: TrainingWork, layout: TrainingLayout, share: Shard
) -> tuple[float, float, float]:
    per = _bytes_per_parameter(work, share, layout)
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
    frozen = weight_bytes("int4" if work.method is Method.QLORA else master_format(work.precision))
    stage = layout.zero_stage
    gathered = _gathered_bytes(share) if stage >= 3 else 0.0
    trained = share.adapter_parameters
    state = (4 + STATE_BYTES[work.optimizer]) * trained
    return (
        frozen * _sharded(share, stage >= 3) + gathered + 2 * trained,
        2 * trained,
        state / share.replicas if stage >= 1 else state,
    )


def _bytes_per_parameter(work: TrainingWork, share: Shard, layout: TrainingLayout) -> _Bytes:
    weight = weight_bytes(master_format(work.precision))
    accumulates = share.micro_batches > 1 and layout.zero_stage < 3
    gradient = 4.0 if accumulates else weight
    master = 4.0 if weight < 4 else 0.0
    return _Bytes(weight, gradient, master + STATE_BYTES[work.optimizer])


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


def _activation_bytes(work: TrainingWork, layout: TrainingLayout, share: Shard) -> float:
    """The fuller of first stage (most micro-batches in flight) and last (the logits)."""
    shape = work.model.shape
    if isinstance(shape, Custom):
        per_sample = shape.activation_bytes_per_sample * CUSTOM_RECOMPUTED[layout.recompute]
        return per_sample * share.tokens / layout.tensor
    element = weight_bytes(master_format(work.precision)) / 2
    kept = (
        activations.layer_bytes_per_token(shape, layout.recompute, share.routed_width)
        / layout.tensor
    )
    stage = element * kept * share.tokens * share.stage_layers
    working = element * _working_bytes(shape, layout, share, kept)
    logits = LOGITS_BYTES * share.tokens * shape.vocab / layout.tensor
    return working + max(stage * _in_flight(layout, share), stage + logits)


def _working_bytes(shape: Transformer, layout: TrainingLayout, share: Shard, kept: float) -> float:
    """The layer being recomputed, gradients of activations, and what sequence parallelism
    gathers around matrix products (inputs of attention and MLP, and one gradient)."""
    whole = (
        activations.layer_bytes_per_token(shape, routed_width=share.routed_width) / layout.tensor
    )
    gradients = 4.0 * shape.hidden / layout.tensor
    gathered = 6.0 * shape.hidden if layout.tensor > 1 else 0.0
    return share.tokens * (whole - kept + gradients + gathered)


def _in_flight(layout: TrainingLayout, share: Shard) -> float:
    """Micro-batches that the first stage holds: 1F1B min(p, m), more when interleaved."""
    held = float(min(layout.pipeline, share.micro_batches))
    if layout.interleave > 1:
        held *= 1 + (layout.pipeline - 1) / (layout.pipeline * layout.interleave)
    return max(1.0, min(held, share.micro_batches))


def _reserve_bytes(layout: TrainingLayout, machine: Machine, allocated: float) -> float:
    if machine.device.is_cpu:
        return ALLOCATOR_SLACK * allocated
    sizes = (layout.data, layout.tensor, layout.pipeline, layout.context, layout.expert)
    groups = sum(size > 1 for size in sizes)
    return ALLOCATOR_SLACK * allocated + COMMUNICATION_BYTES_PER_GROUP * groups
