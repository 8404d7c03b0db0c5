"""What the parts that predictions are made of come to: published totals are held against it."""

from __future__ import annotations

from poolwise.model import transformer
from poolwise.model.shapes import Model, Transformer


def forward_flops_per_token(model: Model, sequence_tokens: int) -> dict[str, float]:
    """FLOPs of one token of a sequence processed whole, by term; the mean over its tokens."""
    shape = model.shape
    assert isinstance(shape, Transformer)
    count = transformer.parameters(model)
    keys = transformer.attended_keys(shape, sequence_tokens)
    routed = count.experts * count.routed_fraction
    return {
        "projections": 2 * (count.attention + count.norms),
        "attention": transformer.attention_flops_per_key(shape) * keys,
        "mlp": 2 * count.mlp,
        "experts": 2 * (routed + count.shared_experts + count.router),
        "head": 2 * (count.head + count.tied_head),
    }
