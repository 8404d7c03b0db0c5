"""What one serving replica holds: weights, working memory, and the key-value cache.

An engine claims a fraction of the device, loads its weights, and gives what is left to the cache.
It refuses to start when the cache cannot hold one request of the maximum length
(vllm-project/vllm#2418), so that request is part of what a replica needs at least.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from poolwise.model import kv_cache
from poolwise.model.efficiency import Calibration
from poolwise.model.formats import weight_bytes
from poolwise.model.hardware import Device, Machine
from poolwise.model.prediction import NINE_IN_TEN, Memory
from poolwise.model.shapes import Custom, Transformer
from poolwise.model.transformer import parameters
from poolwise.model.work import ServingLayout, ServingWork

PHASE = "serving"

ACTIVATION_BYTES = 2.0
"""Of one element; weight-only formats compute in 16 bits, and so do fp8 layers between products."""
LOGITS_BYTES = 4.0
"""Of one entry of the vocabulary, in the fp32 that samplers take."""
WEIGHTS, WORKING = "weights_bytes", "working_bytes"
"""Terms whose spreads are those of the weights (by their format), and of what an engine works with
beside them: activations and reserve together, for engines only log what both leave to the cache.
Their value is 1."""
CUSTOM_WORKING_SHARE = 0.25
"""Of the activations that training keeps, what a forward pass has alive at once, and also what it
moves once norms and activations are fused into the products before them. It frees each layer's
input; a quarter is what full recomputation keeps, and above any two neighbouring layers of
ResNet-50, ViT and U-Nets."""

KEEPING_ENGINES = ("triton",)
"""Engines that keep all keys of layers with a window unless they are told otherwise: TensorRT-LLM's
``KvCacheConfig.max_attention_window`` is unset by default. vLLM and SGLang free what left it."""


@dataclass(slots=True)  # not frozen: searches make many, and freezing takes longer
class Footprint:
    """Bytes of the fullest device, without the cache."""

    usable_bytes: float
    weights_bytes: float
    activations_bytes: float
    reserve_bytes: float
    more_bytes: float = 0.0
    """What weights, activations and reserve may take beyond that: the upper end of nine in ten."""

    @property
    def cache_bytes(self) -> float:
        """What is left for the key-value cache; negative when the rest does not fit."""
        taken = self.weights_bytes + self.activations_bytes + self.reserve_bytes
        return self.usable_bytes - taken

    def at_most(self) -> Footprint:
        """The upper end as a footprint of its own: what may be needed beyond is reserve."""
        return Footprint(
            self.usable_bytes,
            self.weights_bytes,
            self.activations_bytes,
            self.reserve_bytes + self.more_bytes,
        )

    @property
    def holds_weights(self) -> bool:
        """Whether there is room for them at least: else no batch is small enough."""
        return self.weights_bytes + self.reserve_bytes <= self.usable_bytes

    def surely_holds(self, kv_cache_bytes: float) -> bool:
        """Whether a cache of that size fits even beside the most that the rest may take."""
        return kv_cache_bytes <= self.cache_bytes - self.more_bytes

    def with_cache(self, kv_cache_bytes: float) -> Memory:
        """The whole need, with a cache of that size."""
        return Memory(
            usable_bytes=self.usable_bytes,
            weights_bytes=self.weights_bytes,
            activations_bytes=self.activations_bytes,
            kv_cache_bytes=kv_cache_bytes,
            reserve_bytes=self.reserve_bytes,
            more_bytes=self.more_bytes,
        )

    def under_load(self, kv_cache_bytes: float) -> Memory:
        """The need while the cache holds that much. An engine's cache has what the rest leaves, so
        that where the rest takes more there is less of it, and never more of the whole."""
        needed = self.with_cache(kv_cache_bytes)
        left = max(needed.usable_bytes - needed.needed_bytes, 0.0)
        return replace(needed, more_bytes=min(needed.more_bytes, left))


def replica_machine(layout: ServingLayout, machine: Machine) -> Machine:
    """The machine as one replica sees it: on CPU, its share of the node's cores.

    FLOP/s and bandwidth go with the cores. A few busy cores can draw more than their share of the
    bandwidth on an idle node; neighbours may take it, so nothing is built on that.
    """
    device = machine.device
    if not device.is_cpu or not layout.cpu_cores:
        return machine
    share = min(1.0, layout.cpu_cores / (machine.host.cores or device.cores))
    scaled = replace(
        device,
        memory_bytes=layout.cpu_memory_bytes or device.memory_bytes * share,
        memory_bandwidth_bytes_per_second=device.memory_bandwidth_bytes_per_second * share,
        peak_flops_per_second={
            unit: peak * share for unit, peak in device.peak_flops_per_second.items()
        },
        power_watts=device.power_watts * share,
        cores=device.cores * share,
    )
    return replace(machine, device=scaled)


def serving_memory(
    work: ServingWork, layout: ServingLayout, machine: Machine, calibration: Calibration
) -> Memory:
    """The least with which the engine starts: room for one request of ``max_model_tokens``."""
    longest = request_cache_bytes(work, layout, layout.max_model_tokens)
    return footprint(work, layout, machine, calibration).with_cache(longest)


def footprint(
    work: ServingWork, layout: ServingLayout, machine: Machine, calibration: Calibration
) -> Footprint:
    """Everything but the cache, and what may be used.

    vLLM and SGLang claim a fraction of the device (``gpu_memory_utilization``); TensorRT-LLM claims
    a fraction of what is free after loading for its cache (``free_gpu_memory_fraction``).
    """
    device = replica_machine(layout, machine).device
    fraction = None if device.is_cpu else work.memory_fraction
    if fraction is None:
        fraction = calibration.value(PHASE, "memory_fraction", device, work.engine)
    free_fraction = calibration.value(PHASE, "free_memory_fraction", device, work.engine)
    reserve = calibration.value(PHASE, "reserve_bytes", device, work.engine)
    if layout.tensor * layout.pipeline > 1:
        reserve += calibration.value(PHASE, "communication_reserve_bytes", device)
    found = Footprint(
        usable_bytes=device.memory_bytes * fraction,
        weights_bytes=resident_weight_bytes(work, layout),
        activations_bytes=_activation_bytes(work, layout),
        reserve_bytes=reserve,
    )
    found.usable_bytes -= (1.0 - free_fraction) * max(found.cache_bytes, 0.0)
    found.more_bytes = _more_bytes(found, work.engine, layout.weight_format, device, calibration)
    return found


def _more_bytes(
    found: Footprint, engine: str, weight_format: str, device: Device, calibration: Calibration
) -> float:
    """How far the upper end is above the prediction.

    The parts add in squares: a checkpoint that is larger than its count has nothing to do with an
    engine that keeps more workspaces. Activations and reserve go together, as they are measured.
    """
    working = found.activations_bytes + found.reserve_bytes
    parts = ((found.weights_bytes, WEIGHTS, weight_format), (working, WORKING, engine))
    squares = 0.0
    for size, term, number_format in parts:
        spread = calibration.efficiency(PHASE, term, device, number_format).spread
        squares += (size * math.expm1(NINE_IN_TEN * spread)) ** 2
    return math.sqrt(squares)


def resident_weight_bytes(work: ServingWork, layout: ServingLayout) -> float:
    """Weights on the fullest device: layers in their format, embedding and head in 16 bits or more.

    Layers divide by tensor times pipeline, their experts by attention DP too; the embedding sits on
    the first stage, the head on the last, both divided by tensor alone.
    """
    count = parameters(work.model)
    ends = (count.embedding, count.head)
    outer = sum(ends) if layout.pipeline == 1 else max(ends)
    experts = count.experts * weight_bytes(layout.weight_format)
    dense = layer_weight_bytes(work, layout) - experts
    body = (experts / layout.data + dense) * stage_share(work, layout) / layout.tensor
    return body + outer * unquantised_weight_bytes(layout) / layout.tensor


def stage_share(work: ServingWork, layout: ServingLayout) -> float:
    """Of all layers, those of the fullest pipeline stage: engines cut between layers."""
    shape = work.model.shape
    if isinstance(shape, Custom):
        return 1.0 / layout.pipeline
    return math.ceil(shape.layers / layout.pipeline) / shape.layers


def layer_weight_bytes(work: ServingWork, layout: ServingLayout) -> float:
    """Weights of all layers together; mxfp4 (gpt-oss) is a format of the experts alone."""
    count = parameters(work.model)
    stored, dense = weight_bytes(layout.weight_format), weight_bytes(dense_format(layout))
    return count.experts * stored + (count.body - count.experts) * dense


def dense_format(layout: ServingLayout) -> str:
    """Of what is outside the experts."""
    return "bf16" if layout.weight_format == "mxfp4" else layout.weight_format


def unquantised_weight_bytes(layout: ServingLayout) -> float:
    """Stored bytes of one parameter of embedding and head, which checkpoints leave in 16 bits."""
    return max(2.0, weight_bytes(layout.weight_format))


def request_cache_bytes(work: ServingWork, layout: ServingLayout, context_tokens: float) -> float:
    """Cache of one request at a context, on each device; nothing is cached without decoding.

    Under attention DP a request is cached by one group: the mean over groups counts.
    """
    shape = work.model.shape
    if isinstance(shape, Custom) or not shape.is_decoder:
        return 0.0
    shards = kv_cache.shards(shape, layout.tensor) * layout.data
    stored, is_freed = weight_bytes(layout.kv_format), work.engine not in KEEPING_ENGINES
    whole = kv_cache.cache_bytes(shape, context_tokens, stored, is_freed)
    return whole * stage_share(work, layout) / shards


def item_traffic_bytes(shape: Custom, layout: ServingLayout) -> float:
    """Activations of one item of a custom model through memory: written and read once, fused.

    An answer of several passes moves them in proportion to its FLOPs.
    """
    element = min(1.0, weight_bytes(layout.weight_format) / ACTIVATION_BYTES)
    once = 2.0 * shape.activation_bytes_per_sample * CUSTOM_WORKING_SHARE * element
    forward = shape.forward_flops_per_sample
    return once * shape.answer.flops / forward if forward else once


def kv_tokens(
    work: ServingWork, layout: ServingLayout, machine: Machine, calibration: Calibration
) -> float:
    """Tokens that the cache holds, over all requests (before any window saves some)."""
    return tokens_beside(footprint(work, layout, machine, calibration), work, layout)


def tokens_beside(taken: Footprint, work: ServingWork, layout: ServingLayout) -> float:
    """Tokens that the cache holds beside the rest."""
    one = request_cache_bytes(work, layout, 1.0)
    return max(taken.cache_bytes, 0.0) / one if one else float("inf")


def _activation_bytes(work: ServingWork, layout: ServingLayout) -> float:
    """Peak of one step at the full batch: the widest layer's inputs and outputs, and the logits of
    who writes tokens."""
    shape = work.model.shape
    if isinstance(shape, Custom):
        per_item = shape.activation_bytes_per_sample * CUSTOM_WORKING_SHARE
        return per_item * layout.max_num_seqs / layout.tensor
    words = shape.vocab if shape.is_decoder else 0
    logits = LOGITS_BYTES * words * layout.max_num_seqs / layout.tensor
    return layout.max_batched_tokens * _token_bytes(shape, layout.tensor) + logits


def _token_bytes(shape: Transformer, tensor: int) -> float:
    """Residual stream twice, and the wider of the MLP's halves and the attention's projections."""
    width = shape.ffn
    if shape.experts:
        width = max(width, shape.experts.ffn * shape.experts.top_k)
    projected = (shape.heads + 2 * shape.kv_heads) * shape.head_dim
    inner = max(width * (2 if shape.gated_mlp else 1), projected)
    return ACTIVATION_BYTES * (2 * shape.hidden + inner / tensor)
