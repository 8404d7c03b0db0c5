"""Which runs tell of which: the covariance of their log rates, a sum of independent causes.

ln(rate) of a workload w on pool p with n accelerators, spread over nodes or not, is taken as ::

    level(w) + v(p) + mix(w) * v(p) + tilt(w) * t(p) + own(w, p)
      + slope(w, p) * ln n + [spread] * penalty(w, p) + rest(w, p, n, spread)

with v the log of the geometric mean of FLOP/s and bytes/s of the pool's accelerator, and t that of
their ratio, both around their means over the pools. So a workload may gain less from a faster chip
than its datasheet says (it waits for its host or its network), more from FLOP/s than from bytes,
and suffer from spreading on one pool and not on another. Every coefficient has a part that all
workloads share, one that its kin share (one model at several batch sizes) and one of its own, each
normal around its mean; the :class:`Shares` below are their deviations, round figures that nobody
fitted. The matrix completion of Gavel and Quasar is the case of a few such coefficients without
datasheets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Shares:
    """Deviation of a coefficient: what all workloads have in common, its kin, itself."""

    all: float = 0.0
    kin: float = 0.0
    own: float = 0.0


LEVEL = Shares(0.0, 2.0, 5.0)
"""Of ln(rate) itself: steps of two workloads have nothing to do with each other."""
MIX = Shares(0.25, 0.4, 0.2)
TILT = Shares(0.3, 1.0, 0.5)
POOL = Shares(0.2, 0.25, 0.15)
SLOPE = Shares(0.15, 0.25, 0.1)
POOL_SLOPE = Shares(0.05, 0.15, 0.1)
SPREAD = Shares(0.2, 0.3, 0.15)
POOL_SPREAD = Shares(0.2, 0.4, 0.2)
REST = Shares(0.0, 0.15, 0.15)
NOISE = 0.05
"""Of one measurement: rates of a few minutes differ by so much."""
MEAN_SLOPE = 0.8
"""Rate grows with the number of accelerators to this power until something else is seen."""
MEAN_PENALTY = 0.25
"""Of spreading over nodes, in ln(rate)."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Columns of what is compared, one entry for each kind of run."""

    workload: Vector
    kin: Vector
    pool: Vector
    speed: Vector
    tilt: Vector
    log_count: Vector
    spread: Vector

    @staticmethod
    def of(rows: Sequence[tuple[int, int, int, float, float, float, float]]) -> Cells:
        """From rows in the order of the fields."""
        columns = np.array(rows, float).reshape(-1, 7).T
        return Cells(*columns)

    @property
    def mean(self) -> Vector:
        """Of ln(rate) before anything was seen, up to the level of the workload."""
        mean: Vector = self.speed + MEAN_SLOPE * self.log_count - MEAN_PENALTY * self.spread
        return mean


_CAUSES = (LEVEL, MIX, TILT, POOL, SLOPE, POOL_SLOPE, SPREAD, POOL_SPREAD, REST)
_VARIANCES = np.array(
    [[getattr(cause, name) ** 2 for cause in _CAUSES] for name in ("all", "kin", "own")]
)


def covariance(one: Cells, other: Cells) -> Vector:
    """Of the log rates of every run of ``one`` with every run of ``other``, without noise."""
    own, kin, pool = (
        np.equal.outer(getattr(one, name), getattr(other, name)).astype(float)
        for name in ("workload", "kin", "pool")
    )
    speed, tilt, count, spread = (
        np.multiply.outer(getattr(one, name), getattr(other, name))
        for name in ("speed", "tilt", "log_count", "spread")
    )
    alike = np.equal.outer(one.log_count, other.log_count) * pool
    alike *= np.equal.outer(one.spread, other.spread)
    level = np.ones_like(pool)
    causes = np.stack((level, speed, tilt, pool, count, pool * count, spread, pool * spread, alike))
    shared, of_kin, of_own = np.tensordot(_VARIANCES, causes, 1)
    total: Vector = shared + kin * of_kin + own * of_own
    return total
