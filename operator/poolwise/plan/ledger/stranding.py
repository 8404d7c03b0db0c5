"""Accelerators that nobody can use for want of cores or memory beside them.

A node with 4 free accelerators and cores for 1 has 3 stranded. How much one accelerator takes is
not known ahead, so it is the mean of what runs in the pool. A pod goes to the node where it strands
least: with openb's nodes and pods (``bench.placement``) that allocates more than the gradient of
fragmentation does, which asks what every kind of pod could still use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

DIGITS = 6
"""Of an accelerator: cores and bytes are sums of binary fractions."""


@dataclass(frozen=True, slots=True)
class Mean:
    """What one accelerator takes beside itself; infinite: its share never runs out."""

    accelerators_per_core: float
    accelerators_per_byte: float

    @staticmethod
    def of(accelerators: float, cores: float, memory_bytes: float) -> Mean:
        """Of pods that hold so much together."""
        return Mean(
            accelerators / cores if cores > 0 else math.inf,
            accelerators / memory_bytes if memory_bytes > 0 else math.inf,
        )

    def stranded(self, accelerators: float, cores: float, memory_bytes: float) -> float:
        """Of a node's free accelerators those that are left once cores or memory are used up."""
        usable = cores * self.accelerators_per_core if cores > 0 else 0.0
        fed = memory_bytes * self.accelerators_per_byte if memory_bytes > 0 else 0.0
        least = usable if usable < fed else fed
        return accelerators - least if accelerators > least else 0.0
