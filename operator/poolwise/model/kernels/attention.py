"""Attention over a prompt, and of single tokens over their context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from poolwise.model.kernels.gemm import smooth_maximum
from poolwise.model.kernels.precision import SIXTEEN_BIT_BYTES, Speeds

PROCESSORS = 132
"""Of a large accelerator (108 on A100, 132 on H100, 148 on B200): no data sheet figure is needed,
since the constants beside it are fitted."""
TILE_ROWS = 128
"""Queries that one block takes, as FlashAttention does."""


@dataclass(frozen=True, slots=True)
class Prefill:
    """Causal attention of whole prompts; on this device are so many heads."""

    operation: ClassVar[str] = "prefill"
    sequences: float
    tokens: float
    heads: float
    kv_heads: float
    head_size: float
    window: float | None
    kv_bytes: float

    def seconds(self, speeds: Speeds, constants: Mapping[str, float]) -> float:
        """max(products, bytes) + a cost per block + launch.

        Blocks at the diagonal and at a window's edge are computed whole. ``softmax_size`` is the
        exponentials' cost as columns of a head; short prompts fill few processors.
        """
        rows = self.sequences * self.heads
        pairs = self._pairs(constants)
        flops = 4.0 * rows * pairs * (self.head_size + constants["softmax_size"])
        filled = 1.0 + constants["idle_rows"] / (rows * self.tokens)
        compute = filled * flops / (speeds.flops_per_second * constants["compute"])
        blocks = rows * (1.0 + self.tokens / TILE_ROWS) * constants["block_seconds"]
        both_ways = 2.0 * self.heads * SIXTEEN_BIT_BYTES
        stored = 2.0 * self.kv_heads * (SIXTEEN_BIT_BYTES + self.kv_bytes)
        moved = self.sequences * self.tokens * self.head_size * (both_ways + stored)
        memory = moved / (speeds.bytes_per_second * constants["bandwidth"])
        busy = smooth_maximum(compute + blocks, memory, constants["sharpness"])
        return constants["launch_seconds"] + busy

    def _pairs(self, constants: Mapping[str, float]) -> float:
        """Query-key pairs of one head that are computed, whole blocks included."""
        reach = self.tokens
        if self.window is not None:
            reach = min(reach, self.window + constants["window_edge"])
        seen = reach * self.tokens - reach * reach / 2.0
        return seen + constants["block_rows"] * reach + constants["block_keys"] * self.tokens


@dataclass(frozen=True, slots=True)
class Decode:
    """Attention of one new token per sequence over its context."""

    operation: ClassVar[str] = "decode"
    sequences: float
    context: float
    heads: float
    kv_heads: float
    head_size: float
    window: float | None
    kv_bytes: float

    def seconds(self, speeds: Speeds, constants: Mapping[str, float]) -> float:
        """max(products, bytes, the longest walk along a context) + blocks + launch.

        Heads that share keys are packed into one product, padded to a tile. One block walks a
        context, or several do where there are more processors than blocks (split-KV).
        """
        reach = self.context if self.window is None else min(self.context, self.window)
        blocks = self.sequences * self.kv_heads
        keys = blocks * reach * self.head_size
        read = 2.0 * keys * self.kv_bytes
        moved = read + 2.0 * self.sequences * self.heads * self.head_size * SIXTEEN_BIT_BYTES
        cached = constants["cache_gain"] / (1.0 + (read / constants["cache_bytes"]) ** 2)
        memory = moved / (speeds.bytes_per_second * constants["bandwidth"] * (1.0 + cached))
        packed = self.heads / self.kv_heads + constants["idle_heads"]
        compute = 4.0 * keys * packed / (speeds.flops_per_second * constants["compute"])
        splits = 1.0 + constants["splitting"] * PROCESSORS / blocks
        walk = constants["key_seconds"] * reach * self.head_size / splits
        sharpness = constants["sharpness"]
        busy = smooth_maximum(smooth_maximum(compute, memory, sharpness), walk, sharpness)
        queued = blocks * constants["block_seconds"]
        queued += self.sequences * self.heads * constants["head_seconds"]
        return constants["launch_seconds"] + busy + queued
