"""From a service and its layout to a replica: lengths, slots, and the work of one request."""

from __future__ import annotations

from dataclasses import replace

from poolwise.model import kv_cache, transformer
from poolwise.model.efficiency import Calibration
from poolwise.model.formats import weight_bytes
from poolwise.model.hardware import Machine
from poolwise.model.serving.costs import computed_share, step_costs
from poolwise.model.serving.front_end import front_end
from poolwise.model.serving.load import Replica, State
from poolwise.model.serving.memory import (
    PHASE,
    Footprint,
    footprint,
    item_traffic_bytes,
    layer_weight_bytes,
    replica_machine,
    request_cache_bytes,
    unquantised_weight_bytes,
)
from poolwise.model.serving.queueing import Lengths, log_normal
from poolwise.model.serving.slowness import with_slowness
from poolwise.model.shapes import Custom, Transformer
from poolwise.model.work import ServingLayout, ServingWork

ONE_ITEM = Lengths(1.0, 0.0)
RESERVING_ENGINES = ("triton",)
"""Engines that admit a request only with room for its whole output: TensorRT-LLM's default policy,
GUARANTEED_NO_EVICT. The others admit on the prompt and preempt when the cache runs out."""


def replica(
    work: ServingWork, layout: ServingLayout, machine: Machine, calibration: Calibration
) -> Replica:
    """One replica of this layout; it has no slots when the model does not fit."""
    served = by_formulas(work, layout, machine, calibration)
    device = replica_machine(layout, machine).device
    return with_slowness(served, work, layout, device, calibration)


def by_formulas(
    work: ServingWork, layout: ServingLayout, machine: Machine, calibration: Calibration
) -> Replica:
    """The same without what measured runs alike tell beside the formulas."""
    held = replica_machine(layout, machine)
    ends = front_end(work, held, calibration)
    held_requests = cache_slots(
        footprint(work, layout, machine, calibration), slot_bytes(work, layout)
    )
    return Replica(
        costs=step_costs(work, layout, machine, calibration),
        prompt=_prompt(work, layout),
        generated=_generated(work, layout),
        context_tokens=context_tokens(work, layout),
        batched_tokens=float(batch_limit(work, layout)),
        cache_slots=held_requests,
        batch_slots=float(layout.max_num_seqs),
        pipeline=layout.pipeline,
        arrival_dispersion=work.arrival_dispersion,
        request_seconds=ends.request_seconds,
        serial_seconds=ends.serial_seconds,
        prompt_ratio=ends.prompt_ratio,
        held_steps=ends.held_steps,
        interference=calibration.value(PHASE, "interference", held.device, work.engine),
    )


def recosted(
    served: Replica,
    work: ServingWork,
    layout: ServingLayout,
    machine: Machine,
    calibration: Calibration,
) -> Replica:
    """The same replica by other constants of its steps: it holds what it held."""
    device = replica_machine(layout, machine).device
    return replace(
        served,
        costs=step_costs(work, layout, machine, calibration),
        interference=calibration.value(PHASE, "interference", device, work.engine),
    )


def resized(
    served: Replica, batched_tokens: float, cache_slots: float, batch_slots: float
) -> Replica:
    """The same replica under other limits of its batch, without a pipeline: the same steps."""
    return replace(
        served, batched_tokens=batched_tokens, cache_slots=cache_slots, batch_slots=batch_slots
    )


def context_tokens(work: ServingWork, layout: ServingLayout) -> float:
    """Mean context of a sequence in flight: the prompt, and half of what it will generate.

    Long answers stay longer, so what is in flight at an instant is biased towards them.
    """
    tokens = _input(work, layout).mean + _generated(work, layout).biased_mean / 2.0
    return min(tokens, float(layout.max_model_tokens))


def slot_tokens(work: ServingWork, layout: ServingLayout) -> float:
    """Cached tokens that admitting one request takes."""
    if work.engine not in RESERVING_ENGINES:
        return context_tokens(work, layout)
    tokens = _input(work, layout).mean + _generated(work, layout).mean
    return min(tokens, float(layout.max_model_tokens))


def served_tokens(work: ServingWork, layout: ServingLayout) -> float | None:
    """Prompt and generated tokens of one request on average; None where items have no tokens."""
    if isinstance(work.model.shape, Custom):
        return None
    first = 1.0 if work.model.generates else 0.0
    return _input(work, layout).mean + first + _generated(work, layout).mean


def arithmetic_intensity(
    work: ServingWork, layout: ServingLayout, served: Replica, at: State
) -> float:
    """FLOP per byte of device memory traffic, over all that one request causes at this state."""
    shape = work.model.shape
    if isinstance(shape, Custom):
        together = max(1.0, at.in_flight)
        answer = shape.answer
        stored = shape.active_parameters * weight_bytes(layout.weight_format) * answer.passes
        moved = item_traffic_bytes(shape, layout) + answer.cache_bytes + stored / together
        return answer.flops / moved
    flops = request_flops(work, shape, served)
    return flops / _request_traffic_bytes(work, layout, shape, served, at)


def request_flops(work: ServingWork, shape: Transformer, served: Replica) -> float:
    """Of one request on all devices of the replica, prompt and answer."""
    count = transformer.parameters(work.model)
    rows = served.prompt.mean + served.generated.mean
    inside = transformer.attention_flops_per_key(shape) * served.costs.prompt_keys
    keys = kv_cache.read_keys(shape, served.context_tokens)
    decoding = transformer.decode_attention_flops_per_key(shape) * keys * served.generated.mean
    return 2.0 * count.multiplied * rows + inside * served.prompt.mean + decoding


def _request_traffic_bytes(
    work: ServingWork, layout: ServingLayout, shape: Transformer, served: Replica, at: State
) -> float:
    """Weights once per step, shared by all that the step carries, and the request's own cache."""
    count = transformer.parameters(work.model)
    together = max(1.0, at.in_flight)
    touched = 1.0
    if count.experts:
        idle = (1.0 - count.routed_fraction) ** together
        touched -= idle * count.experts / (count.body or 1.0)
    weights = layer_weight_bytes(work, layout) * touched
    weights += (count.head + count.tied_head) * unquantised_weight_bytes(layout)
    steps = served.generated.mean / together + at.chunks * (0.0 if served.generates else 1.0)
    per_key = kv_cache.bytes_per_key(shape, weight_bytes(layout.kv_format))
    keys = kv_cache.read_keys(shape, served.context_tokens) * served.generated.mean
    return weights * steps + per_key * keys


def _generated(work: ServingWork, layout: ServingLayout) -> Lengths:
    """Tokens after the first, which the prompt's own step gives."""
    tokens = work.output_tokens
    if not work.model.generates or tokens.p95 <= 1.0:
        return Lengths(0.0, 0.0)
    lengths = log_normal(tokens.p50, tokens.p95).at_most(float(layout.max_model_tokens))
    return replace(lengths, mean=max(lengths.mean - 1.0, 0.0))


def _input(work: ServingWork, layout: ServingLayout) -> Lengths:
    """Of prompts, none of which is longer than a context."""
    lengths = log_normal(max(work.input_tokens.p50, 1.0), work.input_tokens.p95)
    return lengths.at_most(float(layout.max_model_tokens))


def _prompt(work: ServingWork, layout: ServingLayout) -> Lengths:
    """Tokens that are computed: those that the prefix cache does not have."""
    if isinstance(work.model.shape, Custom):
        return ONE_ITEM
    lengths = _input(work, layout)
    return replace(lengths, mean=max(1.0, lengths.mean * computed_share(work)))


def slot_bytes(work: ServingWork, layout: ServingLayout) -> float:
    """Cache that admitting one request takes of each device; whatever the batch is limited to."""
    return request_cache_bytes(work, layout, slot_tokens(work, layout))


def cache_slots(taken: Footprint, slot_bytes: float) -> float:
    """Requests whose cache has room; without end where nothing is cached."""
    room = taken.cache_bytes
    if slot_bytes:
        return max(room, 0.0) / slot_bytes
    return float("inf") if room >= 0.0 else 0.0


def batch_limit(work: ServingWork, layout: ServingLayout) -> int:
    """Tokens of one step at most; items, for a model of unknown layers."""
    is_custom = isinstance(work.model.shape, Custom)
    return layout.max_num_seqs if is_custom else layout.max_batched_tokens
