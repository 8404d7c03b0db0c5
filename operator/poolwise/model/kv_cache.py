"""The key-value cache of a model, counted from its shape: keys kept, keys read, and their bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from poolwise.model.shapes import Transformer
from poolwise.model.transformer import attending_layers


def cached_keys(shape: Transformer, context_tokens: float, is_freed: bool = True) -> float:
    """Keys that are kept for a sequence, summed over layers; a window caps its layers.

    Engines differ in whether they free what left the window (``is_freed``).
    """
    windowed, whole = attending_layers(shape)
    window = shape.sliding_window if is_freed else None
    return whole * context_tokens + windowed * min(context_tokens, window or context_tokens)


@dataclass(frozen=True, slots=True)
class Reads:
    """What sets how many cached keys a new token attends to."""

    whole_layers: int
    windowed_layers: int
    window_tokens: float
    indexed_tokens: float

    def keys(self, context_tokens: float) -> float:
        """Summed over layers; an index picks some of those that are cached."""
        picked = min(context_tokens, self.indexed_tokens)
        return self.whole_layers * picked + self.windowed_layers * min(picked, self.window_tokens)


def reads(shape: Transformer) -> Reads:
    """Of one model."""
    windowed, whole = attending_layers(shape)
    window, indexed = shape.sliding_window or math.inf, shape.indexed_tokens or math.inf
    return Reads(whole, windowed, window, indexed)


def read_keys(shape: Transformer, context_tokens: float) -> float:
    """Cached keys that a new token attends to, summed over layers."""
    return reads(shape).keys(context_tokens)


def bytes_per_key(shape: Transformer, bytes_per_element: float = 2.0) -> float:
    """Cache of one token in one layer: ``2*g*d``, or ``kv_r + d_r`` when compressed."""
    latent = shape.latent_attention
    if latent is None:
        return 2.0 * shape.kv_heads * shape.head_dim * bytes_per_element
    return (latent.kv_rank + latent.rope_dim) * bytes_per_element


def cache_bytes(
    shape: Transformer,
    context_tokens: float,
    bytes_per_element: float = 2.0,
    is_freed: bool = True,
) -> float:
    """Cache of one request at a context."""
    return bytes_per_key(shape, bytes_per_element) * cached_keys(shape, context_tokens, is_freed)


def shards(shape: Transformer, tensor: int) -> int:
    """Tensor-parallel ranks that the cache is divided over: a compressed one is replicated."""
    return 1 if shape.latent_attention else min(tensor, shape.kv_heads)
