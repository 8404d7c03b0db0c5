"""What was measured of a training step, and of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measured:
    """Of a workload in its steady state."""

    step_seconds: float
    """Median, the optimizer's step included."""
    reserved_bytes: float
    """Most that the allocator held: what decides whether a run fits, beside the driver's own."""
    allocated_bytes: float
    """Most that tensors filled of it."""


@dataclass(frozen=True, slots=True)
class Timed:
    """One kernel, told by the columns of the table."""

    columns: Mapping[str, object]
    seconds: float
