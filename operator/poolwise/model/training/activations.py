"""Bytes that the forward pass keeps for the backward pass, per token and layer.

With flash attention and 16-bit elements a layer keeps the inputs of its norms and products
(``8*h``), queries, keys, values and the attention's output (``4*a*d + 4*g*d``), and of its MLP
gate, up and product (``6*f``: fused kernels compute the activation again, and compiled layers were
measured to keep no more, ``bench/device``; routed experts, which were not, count with it, ``8*f``;
``4*f`` without a gate). For a GELU model with f = 4h that is ``32*h``, and ``34*h`` with dropout
masks in arXiv 2205.05198. What is not fused keeps more: :mod:`poolwise.model.training.eager`.
"""

from __future__ import annotations

from poolwise.model import transformer
from poolwise.model.shapes import Transformer
from poolwise.model.work import Recompute

LAYER_INPUT_BYTES_PER_HIDDEN = 2.0
"""All that full recomputation keeps."""


def layer_bytes_per_token(
    shape: Transformer, recompute: Recompute = Recompute.NONE, routed_width: float | None = None
) -> float:
    """Mean over the layers, before tensor parallelism divides it (with sequence parallelism).

    ``SELECTIVE`` keeps the input, the attention's output and every second matrix product, as
    torchtitan's policy does, and recomputes the rest.
    """
    hidden = LAYER_INPUT_BYTES_PER_HIDDEN * shape.hidden
    if recompute is Recompute.FULL:
        return hidden
    if recompute is Recompute.SELECTIVE:
        kept = hidden + 2.0 * _attention_output_width(shape)
        return kept + product_width(shape)
    return mixer_bytes_per_token(shape) + _mlp_bytes(shape, routed_width or shape.hidden)


def mixer_bytes_per_token(shape: Transformer) -> float:
    """Of these, norms and what mixes tokens: attention, or a scan over them."""
    return 4 * LAYER_INPUT_BYTES_PER_HIDDEN * shape.hidden + _attention_bytes(shape)


def product_width(shape: Transformer) -> float:
    """Output elements of all matrix products of a mean layer, per token."""
    mlp = (2 if shape.gated_mlp else 1) * mlp_width(shape) + shape.hidden
    return _projected_width(shape) + shape.hidden + mlp


def product_bytes(shape: Transformer, routed_width: float) -> tuple[float, float]:
    """16-bit inputs and outputs of the products of a mean layer: dense ones, routed experts.

    ``routed_width`` is what a routed token carries (:func:`shard.routed_width`).
    """
    hidden, gates = shape.hidden, 3 if shape.gated_mlp else 2
    attention = 2 * hidden + _projected_width(shape) + _attention_output_width(shape)
    experts, sparse = shape.experts, transformer.sparse_layers(shape) / shape.layers
    routed = sparse * experts.top_k if experts else 0.0
    always = (1 - sparse) + (sparse * experts.shared if experts else 0.0)
    width = experts.ffn if experts else shape.ffn
    dense_width = (1 - sparse) * shape.ffn + (always - (1 - sparse)) * width
    dense = attention + 2 * hidden * always + gates * dense_width
    return 2.0 * dense, 2.0 * routed * (2 * routed_width + gates * width)


def _projected_width(shape: Transformer) -> float:
    """Queries, keys and values."""
    return _attention_bytes(shape) / 2 - _attention_output_width(shape)


def _attention_output_width(shape: Transformer) -> float:
    latent = shape.latent_attention
    return shape.heads * (latent.value_dim if latent else shape.head_dim)


def _attention_bytes(shape: Transformer) -> float:
    """Queries, keys, values and output."""
    latent = shape.latent_attention
    if latent is None:
        return 4.0 * shape.head_dim * (shape.heads + shape.kv_heads)
    per_head = 2 * (latent.nope_dim + latent.rope_dim) + 2 * latent.value_dim
    return 2.0 * (shape.heads * per_head + latent.query_rank + latent.kv_rank)


def _mlp_bytes(shape: Transformer, routed_width: float) -> float:
    """Intermediates; routed tokens are also kept once more on each side of the exchange."""
    experts = shape.experts
    if experts is None:
        return (6.0 if shape.gated_mlp else 4.0) * mlp_width(shape)
    sparse = transformer.sparse_layers(shape) / shape.layers
    exchanged = 4.0 * routed_width * experts.top_k * sparse
    return (8.0 if shape.gated_mlp else 4.0) * mlp_width(shape) + exchanged


def mlp_width(shape: Transformer) -> float:
    """Elements of the MLP's hidden layer that one token fills, mean over layers."""
    experts = shape.experts
    if experts is None:
        return shape.ffn
    sparse = transformer.sparse_layers(shape) / shape.layers
    routed = experts.ffn * (experts.top_k + experts.shared)
    return (1 - sparse) * shape.ffn + sparse * routed
