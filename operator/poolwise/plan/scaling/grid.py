"""Values that lie between the points of an evenly spaced grid."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.int64]


def spread(values: Vector, weights: Vector, grid: Vector) -> Vector:
    """Weights at the points of the grid: each value's between its two neighbours, and at an end
    what lies beyond it."""
    at = np.clip((values - grid[0]) / (grid[1] - grid[0]), 0.0, len(grid) - 1.001)
    low = at.astype(int)
    told = np.zeros(len(grid))
    np.add.at(told, low, weights * (low + 1.0 - at))
    np.add.at(told, low + 1, weights * (at - low))
    return told


def nearest(values: Vector, grid: Vector) -> Indexes:
    """Index of the point that each value is nearest to."""
    at = np.rint((values - grid[0]) / (grid[1] - grid[0]))
    told: Indexes = np.clip(at, 0, len(grid) - 1).astype(np.int64)
    return told
