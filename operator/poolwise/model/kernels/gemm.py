"""One matrix product."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from poolwise.model.kernels.precision import SIXTEEN_BIT_BYTES, Speeds


def smooth_maximum(first: float, second: float, sharpness: float) -> float:
    """The larger of two times, or a little more where they are close and overlap badly."""
    larger, smaller = max(first, second), min(first, second)
    return larger * math.pow(1.0 + math.pow(smaller / larger, sharpness), 1.0 / sharpness)


@dataclass(frozen=True, slots=True)
class Gemm:
    """``rows`` tokens times a matrix of ``depth`` by ``columns``."""

    operation: ClassVar[str] = "gemm"
    rows: float
    columns: float
    depth: float

    def seconds(self, speeds: Speeds, constants: Mapping[str, float]) -> float:
        """max(compute, memory) + launch + quantisation of the rows.

        A product with few outputs leaves processors idle, and one of little depth waits for its
        first operands: both act as more outputs and depth than there are. Operands that fit the
        last cache come faster than memory gives them.
        """
        read = self.rows * self.depth
        weights = self.columns * self.depth * speeds.weight_bytes
        moved = (
            weights + read * speeds.activation_bytes + self.rows * self.columns * SIXTEEN_BIT_BYTES
        )
        cached = constants["cache_gain"] / (1.0 + (moved / constants["cache_bytes"]) ** 2)
        memory = moved / (speeds.bytes_per_second * constants["bandwidth"] * (1.0 + cached))
        outputs = self.rows * self.columns + constants["idle_outputs"]
        depth = self.depth + constants["idle_depth"]
        compute = 2.0 * outputs * depth / (speeds.flops_per_second * constants["compute"])
        quantise = constants["quantise"] * read * SIXTEEN_BIT_BYTES / speeds.bytes_per_second
        busy = smooth_maximum(compute, memory, constants["sharpness"])
        return constants["launch_seconds"] + busy + quantise
