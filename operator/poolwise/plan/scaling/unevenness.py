"""How unevenly a fleet bears its load: most requests are on the fuller replicas.

Routers balance counts of requests, and requests are not alike: with the same number in flight one
cache is full while another has room. So of each look the loads of the replicas over their mean are
kept, as fading shares of what is in flight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from poolwise.plan.scaling.grid import Vector, nearest
from poolwise.plan.scaling.surprise import LOG_ERRORS

HALF_LIFE_SECONDS = 1800.0
PRIOR_SECONDS, PRIOR_DEVIATION = 120.0, 0.1
LEAST_REPLICAS = 2


@dataclass(frozen=True, eq=False)
class Unevenness:
    """Fading seconds, by ln(load of a replica / mean of all)."""

    seconds: Vector

    def as_list(self) -> list[Any]:
        """For JSON: (index, seconds) of those that are not 0."""
        (found,) = np.nonzero(self.seconds > 1e-3)
        return [[int(each), round(float(self.seconds[each]), 3)] for each in found]

    @staticmethod
    def read(listed: list[Any]) -> Unevenness:
        """What :meth:`as_list` made; IndexError or ValueError for anything else."""
        seconds = even().seconds.copy()
        for index, value in listed:
            seconds[int(index)] = float(value)
        return Unevenness(seconds)

    @property
    def shares(self) -> Vector:
        """Of requests; they sum to 1."""
        told = self.seconds + PRIOR_SECONDS * _prior()
        result: Vector = told / told.sum()
        return result

    @property
    def log_variance(self) -> float:
        """Of the loads' logarithms."""
        mean = float(self.shares @ LOG_ERRORS)
        return float(self.shares @ (LOG_ERRORS - mean) ** 2)

    def after(self, loads: Sequence[float], seconds: float, chance: float = 0.0) -> Unevenness:
        """A look at replicas that have been there for a while.

        What is nearly empty is uneven without anybody being late, so a look counts by how loaded
        the fleet is. ``chance`` is the deviation of a load that counting few requests makes.
        """
        kept = 0.5 ** (seconds / HALF_LIFE_SECONDS) * self.seconds
        total = math.fsum(loads)
        if len(loads) < LEAST_REPLICAS or total <= 0.0:
            return Unevenness(kept)
        mean = total / len(loads)
        held = np.maximum(np.array(loads), 1e-9)
        logs = np.log(held / mean)
        logs = np.sign(logs) * np.sqrt(np.maximum(logs**2 - chance**2, 0.0))
        weight = seconds * min(mean, 1.0) ** 2
        np.add.at(kept, nearest(logs, LOG_ERRORS), weight * held / total)
        return Unevenness(kept)


@lru_cache(maxsize=1)
def even() -> Unevenness:
    """Nothing seen yet."""
    return Unevenness(np.zeros(len(LOG_ERRORS)))


@lru_cache(maxsize=1)
def _prior() -> Vector:
    told = np.exp(-0.5 * (LOG_ERRORS / PRIOR_DEVIATION) ** 2)
    result: Vector = told / told.sum()
    return result
