"""What one micro-batch does on its device, whatever that reaches: arithmetic and bytes by part.

It follows from the run and from how it is laid out, so a search over many accelerators counts it
once; :mod:`poolwise.model.training.layer` says how long it takes on one. Backward takes twice the
forward products (once when only adapters are trained: no weight gradients) and 2.5 times its
attention (flash attention computes the scores again: five products for two, arXiv 2205.14135).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from poolwise.model import transformer
from poolwise.model.shapes import Custom, Experts, Transformer
from poolwise.model.training import activations, eager
from poolwise.model.training.eager import is_eager
from poolwise.model.training.maturity import is_folded
from poolwise.model.training.memory import layer_weight_bytes
from poolwise.model.training.shard import Shard, sequence_tokens
from poolwise.model.work import Method, Recompute, TrainingLayout, TrainingWork

ATTENTION_BACKWARD = 2.5
LOSS_BYTES = 20.0
"""Moved per token and vocabulary entry: logits written and read in 16 bits and fp32, and back."""
EXCHANGE_BYTES = 12.0
"""Moved per routed token and hidden element: sorted out and back, forward, in 16 bits."""
UNPACKED_BYTES = 2.0
"""Of a packed weight that a product is about to read."""


class Part(NamedTuple):
    """Work of kernels that are held against one pair of roofs."""

    flops: float = 0.0
    moved_bytes: float = 0.0


NOTHING = Part()


@dataclass(slots=True)  # not frozen: searches make thousands, and freezing takes longer
class Counts:
    """Of one micro-batch: all passes through all layers of the fullest stage."""

    dense: Part
    """Products with what every token meets; of a model of unknown layers, everything."""
    experts: Part | None = None
    """Grouped products,"""
    tokens_per_group: float = 0.0
    """and the rows of each."""
    attention: Part = NOTHING
    kept_bytes: float = 0.0
    """By which norms, activation functions, residuals and routing move data,"""
    scanned_bytes: float = 0.0
    """and the part of it that mixers keep which scan (Mamba)."""
    carried_bytes: float = 0.0
    """Moved beside: to experts and back, to unpack weights, by operators that run one by one."""
    head: Part = NOTHING
    """Output projection, forward and backward; on the last stage only, which waits."""
    loss: Part = NOTHING
    last_stage_fill: float = 1.0
    """Layers of the last stage over those of the fullest one."""


@dataclass(frozen=True, slots=True)
class Passes:
    """How often the step runs a part, in units of its forward pass."""

    products: float
    attention: float
    elementwise: float


@dataclass(frozen=True, slots=True)
class _Token:
    """What one token of a sequence takes in a mean layer, undivided and forward."""

    dense_bytes: float
    routed_bytes: float
    attention_flops: float
    kept_bytes: float
    scanned_bytes: float
    exchanged_bytes: float
    """To its experts and back, which tensor parallelism does not divide."""


def passes(work: TrainingWork, recompute: Recompute) -> Passes:
    """Forward, backward and what is computed again."""
    return _passes(work.method, recompute)


@cache
def _passes(method: Method, recompute: Recompute) -> Passes:
    products = 2.0 if method is not Method.FULL else 3.0
    again = {Recompute.NONE: 0.0, Recompute.SELECTIVE: 0.5, Recompute.FULL: 1.0}[recompute]
    whole = 1.0 if recompute is Recompute.FULL else 0.0
    # Frozen weights need no inputs cast and transposed for their gradients.
    elementwise = 2.0 if method is not Method.FULL else 3.0
    elementwise += min(1.0, 2 * again)
    return Passes(products + again, 1 + ATTENTION_BACKWARD + whole, elementwise)


def counts(work: TrainingWork, layout: TrainingLayout, share: Shard) -> Counts:
    """Forward and backward through the layers of the fullest stage, taken as alike."""
    shape = work.model.shape
    if isinstance(shape, Custom):
        unpacked = _unpacked_bytes(work, share, passes(work, layout.recompute))
        return Counts(_of_custom(work, shape, layout, share), carried_bytes=unpacked)
    tokens, tensor, times = share.tokens, layout.tensor, passes(work, layout.recompute)
    token = _token(shape, sequence_tokens(work), share.routed_width)
    products = times.products * share.stage_layers
    elementwise = times.elementwise * share.stage_layers * tokens
    attention = times.attention * share.stage_layers * tokens
    return Counts(
        dense=_dense(layout, share, token, products),
        experts=_experts(layout, share, token, products) if shape.experts else None,
        tokens_per_group=_tokens_per_group(work, shape, layout, share),
        attention=Part(token.attention_flops / tensor * attention),
        kept_bytes=token.kept_bytes / tensor * elementwise,
        scanned_bytes=token.scanned_bytes / tensor * elementwise,
        carried_bytes=token.exchanged_bytes * elementwise
        + _eager_bytes(work, shape, layout, share, times)
        + _unpacked_bytes(work, share, times),
        head=Part(_head_flops(work, share)),
        loss=Part(0.0, LOSS_BYTES * tokens * shape.vocab / tensor),
        last_stage_fill=share.last_stage_fill,
    )


@lru_cache(maxsize=1024)
def _token(shape: Transformer, sequence_tokens: int, routed_width: float) -> _Token:
    dense_bytes, routed_bytes = activations.product_bytes(shape, routed_width)
    keys = transformer.attended_keys(shape, sequence_tokens) / shape.layers
    scanning = shape.linear_attention_layers / shape.layers
    return _Token(
        dense_bytes=dense_bytes,
        routed_bytes=routed_bytes,
        attention_flops=transformer.attention_flops_per_key(shape) * keys,
        kept_bytes=activations.layer_bytes_per_token(shape, routed_width=routed_width),
        scanned_bytes=activations.mixer_bytes_per_token(shape) * scanning,
        exchanged_bytes=_exchanged_bytes(shape, routed_width),
    )


def _exchanged_bytes(shape: Transformer, routed_width: float) -> float:
    if shape.experts is None:
        return 0.0
    sparse = transformer.sparse_layers(shape) / shape.layers
    return EXCHANGE_BYTES * routed_width * shape.experts.top_k * sparse


def _dense(layout: TrainingLayout, share: Shard, token: _Token, times: float) -> Part:
    flops = 2.0 * share.dense_parameters * share.tokens
    moved_bytes = 2.0 * share.dense_parameters + token.dense_bytes * share.tokens / layout.tensor
    return Part(flops * times, moved_bytes * times)


def _experts(layout: TrainingLayout, share: Shard, token: _Token, times: float) -> Part:
    flops = 2.0 * share.active_expert_parameters * share.tokens
    moved_bytes = 2.0 * share.expert_parameters + token.routed_bytes * share.tokens / layout.tensor
    return Part(flops * times, moved_bytes * times)


def _tokens_per_group(
    work: TrainingWork, shape: Transformer, layout: TrainingLayout, share: Shard
) -> float:
    if shape.experts is None:
        return 0.0
    ranks = layout.tensor if is_folded(work) else 1
    return tokens_per_expert(shape.experts, layout, share) / ranks


def tokens_per_expert(experts: Experts, layout: TrainingLayout, share: Shard) -> float:
    """Tokens that one expert works on in a micro-batch, at balanced routing."""
    return share.tokens * layout.expert * experts.top_k / experts.count


def _eager_bytes(
    work: TrainingWork, shape: Transformer, layout: TrainingLayout, share: Shard, times: Passes
) -> float:
    if not is_eager(work):
        return 0.0
    return eager.moved_bytes(eager.traffic_counts(work, shape, layout, share, times.elementwise))


def _unpacked_bytes(work: TrainingWork, share: Shard, times: Passes) -> float:
    """QLoRA multiplies in 16 bits: each pass over a layer reads its packed matrices and writes
    them out for the products, which read them as any others (arXiv 2305.14314, equation 5)."""
    if work.method is not Method.QLORA:
        return 0.0
    layer_parameters = share.dense_parameters + share.expert_parameters
    packed = share.stage_layers * layer_parameters
    return (layer_weight_bytes(work) + UNPACKED_BYTES) * packed * times.products


def _head_flops(work: TrainingWork, share: Shard) -> float:
    return passes(work, Recompute.NONE).products * 2.0 * share.head_parameters * share.tokens


def _of_custom(work: TrainingWork, shape: Custom, layout: TrainingLayout, share: Shard) -> Part:
    """A model of unknown layers: its FLOPs, and reading and writing its activations."""
    times = passes(work, layout.recompute)
    samples = share.tokens / layout.tensor
    moved_bytes = 2.0 * shape.activation_bytes_per_sample * samples * times.elementwise
    weights_bytes = 3 * 2.0 * shape.parameters / layout.tensor
    return Part(
        shape.forward_flops_per_sample * samples * times.products, moved_bytes + weights_bytes
    )
