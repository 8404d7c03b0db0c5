"""By how much demand comes out above or below what was foreseen a start earlier.

Every look tells one such error, whether anybody was late or not: what is forecast is compared with
what came when a replica that was asked for then would have been ready. They are kept as fading
counts by the size of demand, since a service at its low jumps further than one at its peak.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

LOG_ERRORS = np.linspace(-1.5, 3.0, 91)
"""ln(what came / what was foreseen)."""
LOG_SIZES = np.linspace(-3.0, 7.0, 21)
SIZE_WIDTH = 0.5
"""Errors at a demand twice as large or small count four in ten."""
PRIOR_STEPS = 8.0
"""How many looks the prior counts as."""
USUAL_DEVIATION, USUAL_SECONDS = 0.08, 60.0
"""Prior of an error, and the start time that it is for; it grows as the root of the time."""
RARE_SHARE, RARE_DEVIATION = 0.01, 0.4
HALF_LIFE_SECONDS = 2 * 3600.0


@dataclass(frozen=True, eq=False)
class Errors:
    """Fading counts: size by error."""

    counts: Vector

    def as_list(self) -> list[Any]:
        """For JSON: (size, error, count) of those that are not 0."""
        sizes, errors = np.nonzero(self.counts > 1e-3)
        return [
            [int(size), int(error), round(float(self.counts[size, error]), 4)]
            for size, error in zip(sizes, errors, strict=True)
        ]

    @staticmethod
    def read(listed: list[Any]) -> Errors:
        """What :meth:`as_list` made; IndexError or ValueError for anything else."""
        counts = none().counts.copy()
        for size, error, count in listed:
            counts[int(size), int(error)] = float(count)
        return Errors(counts)


@lru_cache(maxsize=1)
def none() -> Errors:
    """Nothing seen yet."""
    return Errors(np.zeros((len(LOG_SIZES), len(LOG_ERRORS))))


def observed(
    errors: Errors,
    foreseen: float,
    came: float,
    seconds: float,
    requests: float,
    chance: float = 0.0,
) -> Errors:
    """After one look, ``seconds`` after the last, in which so many requests met this error.

    ``chance`` is the deviation that counting so few requests makes; it is no error of a forecast.
    """
    counts = errors.counts * 0.5 ** (seconds / HALF_LIFE_SECONDS)
    if foreseen > 0.0 and came > 0.0:
        size = _nearest(LOG_SIZES, math.log(foreseen))
        error = math.log(came / foreseen)
        own = math.copysign(math.sqrt(max(error * error - chance * chance, 0.0)), error)
        counts[size, _nearest(LOG_ERRORS, own)] += requests
    return Errors(counts)


def shares(
    errors: Errors, foreseen: float, horizon_seconds: float, usual_requests: float
) -> Vector:
    """Of requests by the error that they will meet; they sum to 1.

    :param usual_requests: that come between two looks.
    """
    distance = (LOG_SIZES - math.log(max(foreseen, 1e-9))) / SIZE_WIDTH
    seen = np.exp(-0.5 * distance**2) @ errors.counts
    told = seen + PRIOR_STEPS * max(usual_requests, 1.0) * _prior(horizon_seconds)
    result: Vector = told / told.sum()
    return result


@lru_cache(maxsize=64)
def _prior(horizon_seconds: float) -> Vector:
    usual = USUAL_DEVIATION * math.sqrt(max(horizon_seconds, 1.0) / USUAL_SECONDS)
    often = np.exp(-0.5 * (LOG_ERRORS / usual) ** 2)
    rare = np.exp(-0.5 * (LOG_ERRORS / RARE_DEVIATION) ** 2)
    looks = (1.0 - RARE_SHARE) * often / often.sum() + RARE_SHARE * rare / rare.sum()
    # More requests come when demand is above what was foreseen.
    told: Vector = looks * np.exp(LOG_ERRORS)
    return told


def _nearest(grid: Vector, value: float) -> int:
    step = float(grid[1] - grid[0])
    return min(max(round((value - float(grid[0])) / step), 0), len(grid) - 1)
