"""Time of one micro-batch on one device: products, attention, everything elementwise, launches.

Each part is held against both roofs by itself, since attention and norms may be bound by memory
while the products of the same layer are bound by compute; the times then add, because the kernels
run one after the other. Backward takes twice the forward products (once when only adapters are
trained: no weight gradients) and 2.5 times its attention (flash attention computes the scores
again: five products for two, arXiv 2205.14135).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

from poolwise.model import transformer
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Device
from poolwise.model.roofline import Rates
from poolwise.model.shapes import Custom, Experts, Transformer
from poolwise.model.training import activations, eager
from poolwise.model.training.eager import is_eager
from poolwise.model.training.maturity import immaturity, is_folded
from poolwise.model.training.rates import Reachable, rates, reachable
from poolwise.model.training.shard import Shard, sequence_tokens
from poolwise.model.work import Method, Recompute, TrainingLayout, TrainingWork

ATTENTION_BACKWARD = 2.5
LOSS_BYTES = 20.0
"""Moved per token and vocabulary entry: logits written and read in 16 bits and fp32, and back."""
EXCHANGE_BYTES = 12.0
"""Moved per routed token and hidden element: sorted out and back, forward, in 16 bits."""


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
    mixer_bytes: float


@dataclass(slots=True)  # not frozen: searches make thousands, and freezing takes longer
class Busy:
    """Seconds of one device, by the roof that sets them, with the work behind them."""

    compute_seconds: float = 0.0
    memory_seconds: float = 0.0
    flops: float = 0.0
    moved_bytes: float = 0.0

    @property
    def seconds(self) -> float:
        """Both together: kernels run one after the other."""
        return self.compute_seconds + self.memory_seconds

    def __add__(self, other: Busy) -> Busy:
        return Busy(
            self.compute_seconds + other.compute_seconds,
            self.memory_seconds + other.memory_seconds,
            self.flops + other.flops,
            self.moved_bytes + other.moved_bytes,
        )

    def slowed(self, factor: float) -> Busy:
        """The same work in so many times the seconds."""
        return Busy(
            self.compute_seconds * factor,
            self.memory_seconds * factor,
            self.flops,
            self.moved_bytes,
        )

    def times(self, factor: float) -> Busy:
        """The same work so many times."""
        return Busy(
            self.compute_seconds * factor,
            self.memory_seconds * factor,
            self.flops * factor,
            self.moved_bytes * factor,
        )


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


def micro_batch(
    work: TrainingWork,
    layout: TrainingLayout,
    share: Shard,
    device: Device,
    calibration: Calibration,
) -> Busy:
    """Forward and backward of one micro-batch through the layers of the fullest stage."""
    shape = work.model.shape
    if isinstance(shape, Custom):
        return _custom(work, shape, layout, share, rates(work, device, calibration, "custom"))
    speed = reachable(work, device, calibration)
    token = _token(shape, sequence_tokens(work), share.routed_width)
    count = passes(work, layout.recompute)
    layer = _products(work, layout, share, speed, token).times(count.products)
    layer += _attention(layout, share, speed, token).times(count.attention)
    layer += _elementwise(shape, layout, share, speed, token).times(count.elementwise)
    body = layer.times(share.stage_layers)
    if is_eager(work):
        counts = eager.traffic_counts(work, shape, layout, share, count.elementwise)
        body += _busy(speed.products, 0.0, eager.moved_bytes(counts))
    head = _exposed_head(body, _head(work, shape, layout, share, speed), share)
    return (body + head).slowed(immaturity(work, device, calibration))


@lru_cache(maxsize=1024)
def _token(shape: Transformer, sequence_tokens: int, routed_width: float) -> _Token:
    dense_bytes, routed_bytes = activations.product_bytes(shape, routed_width)
    keys = transformer.attended_keys(shape, sequence_tokens) / shape.layers
    return _Token(
        dense_bytes=dense_bytes,
        routed_bytes=routed_bytes,
        attention_flops=transformer.attention_flops_per_key(shape) * keys,
        kept_bytes=activations.layer_bytes_per_token(shape, routed_width=routed_width),
        mixer_bytes=activations.mixer_bytes_per_token(shape),
    )


def _busy(speed: Rates, flops: float, moved_bytes: float, unhidden: float = 0.0) -> Busy:
    """The longer of the two, and the share of the shorter that does not hide behind it."""
    compute = flops / speed.flops_per_second
    memory = moved_bytes / speed.bytes_per_second
    if compute >= memory:
        return Busy(compute, unhidden * memory, flops, moved_bytes)
    return Busy(unhidden * compute, memory, flops, moved_bytes)


def _products(
    work: TrainingWork, layout: TrainingLayout, share: Shard, speed: Reachable, token: _Token
) -> Busy:
    """Dense and expert matrix products of a mean layer, forward."""
    shape, tokens = work.model.shape, share.tokens
    dense = _busy(
        speed.products,
        2.0 * share.dense_parameters * tokens,
        2.0 * share.dense_parameters + token.dense_bytes * tokens / layout.tensor,
        speed.unhidden,
    )
    if not isinstance(shape, Transformer) or shape.experts is None:
        return dense
    ranks = layout.tensor if is_folded(work) else 1
    grouped = speed.expert_rates(tokens_per_expert(shape.experts, layout, share) / ranks)
    return dense + _busy(
        grouped,
        2.0 * share.active_expert_parameters * tokens,
        2.0 * share.expert_parameters + token.routed_bytes * tokens / layout.tensor,
        speed.unhidden,
    )


def tokens_per_expert(experts: Experts, layout: TrainingLayout, share: Shard) -> float:
    """Tokens that one expert works on in a micro-batch, at balanced routing."""
    return share.tokens * layout.expert * experts.top_k / experts.count


def _attention(layout: TrainingLayout, share: Shard, speed: Reachable, token: _Token) -> Busy:
    flops = token.attention_flops * share.tokens / layout.tensor
    return _busy(speed.attention, flops, 0.0)


def _elementwise(
    shape: Transformer, layout: TrainingLayout, share: Shard, speed: Reachable, token: _Token
) -> Busy:
    """Norms, activation functions, residuals and routing: in proportion to what they keep."""
    scanned = speed.scan_traffic * shape.linear_attention_layers / shape.layers
    kept = token.kept_bytes + scanned * token.mixer_bytes
    moved = speed.traffic * kept / layout.tensor
    if shape.experts is not None:
        sparse = transformer.sparse_layers(shape) / shape.layers
        moved += EXCHANGE_BYTES * share.routed_width * shape.experts.top_k * sparse
    return _busy(speed.products, 0.0, moved * share.tokens)


def _exposed_head(body: Busy, head: Busy, share: Shard) -> Busy:
    """What the head adds to the fullest stage: the last one may have fewer layers to make up."""
    room = (1 - share.last_stage_fill) * body.seconds
    return head.times(max(0.0, head.seconds - room) / head.seconds) if head.seconds else head


def _head(
    work: TrainingWork, shape: Transformer, layout: TrainingLayout, share: Shard, speed: Reachable
) -> Busy:
    """Output projection and loss, forward and backward; on the last stage only, which waits."""
    flops = passes(work, Recompute.NONE).products * 2.0 * share.head_parameters * share.tokens
    loss_bytes = LOSS_BYTES * share.tokens * shape.vocab / layout.tensor
    return _busy(speed.wide, flops, 0.0) + _busy(speed.wide, 0.0, loss_bytes)


def _custom(
    work: TrainingWork, shape: Custom, layout: TrainingLayout, share: Shard, speed: Rates
) -> Busy:
    """A model of unknown layers: its FLOPs against reading and writing its activations."""
    count = passes(work, layout.recompute)
    samples = share.tokens / layout.tensor
    flops = shape.forward_flops_per_sample * samples * count.products
    moved = 2.0 * shape.activation_bytes_per_sample * samples * count.elementwise
    weights = 3 * 2.0 * shape.parameters / layout.tensor
    return _busy(speed, flops, moved + weights)
