"""By how much demand comes out above or below what is expected of it a start earlier.

Every look tells one such error, whether anybody was late or not: what was foreseen is compared with
what came when a replica that was asked for then would have been ready. Kept are fading counts of
such pairs, and not of the errors that were made then: what is expected of a demand is learned too
(:mod:`.persistence`), and the past is measured against what would be expected of it now. A service
that has learned that its lulls end in bursts is not surprised by them, and one that expects its
mean after all is as far off as demand lies apart. Errors are taken where about as much is expected,
since a service at its low jumps further than one at its peak.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from poolwise.plan.scaling.grid import Vector, nearest, spread

LOG_ERRORS = np.linspace(-1.5, 3.0, 91)
"""ln(what came / what is expected)."""
LOG_SIZES = np.linspace(-4.0, 7.0, 45)
"""ln(what was foreseen)."""
LOG_RATIOS = np.linspace(-5.0, 5.0, 201)
"""ln(what came / what was foreseen)."""
SIZE_WIDTH = 0.5
"""Errors where twice or half as much is expected count four in ten."""
PRIOR_STEPS = 8.0
"""How many looks the prior counts as."""
USUAL_DEVIATION, USUAL_SECONDS = 0.16, 60.0
"""Prior of an error, and the start time that it is for; it grows as the root of the time. In the
first minutes demand came out 0.2 to 0.5 above what was foreseen (84th percentile, on half of twelve
hours of traces). With 0.16 eleven hours of five traces all attain their aim, for 2 % more replicas
than 0.08 takes, which misses it on two: it lets fleets go in their first lull."""
RARE_SHARE, RARE_DEVIATION = 0.01, 0.4
HALF_LIFE_SECONDS = 2 * 3600.0


@dataclass(frozen=True, eq=False)
class Errors:
    """Fading counts of pairs: what was foreseen, by what came over it."""

    counts: Vector

    def as_list(self) -> list[Any]:
        """For JSON: (size, ratio, count) of those that are not 0."""
        sizes, ratios = np.nonzero(self.counts > 1e-3)
        return [
            [int(size), int(ratio), round(float(self.counts[size, ratio]), 4)]
            for size, ratio in zip(sizes, ratios, strict=True)
        ]

    @staticmethod
    def read(listed: list[Any]) -> Errors:
        """What :meth:`as_list` made; IndexError or ValueError for anything else."""
        counts = none().counts.copy()
        for size, ratio, count in listed:
            counts[int(size), int(ratio)] = float(count)
        return Errors(counts)


@lru_cache(maxsize=1)
def none() -> Errors:
    """Nothing seen yet."""
    return Errors(np.zeros((len(LOG_SIZES), len(LOG_RATIOS))))


@dataclass(frozen=True, slots=True)
class Checked:
    """Demand at one moment: as seen a start before, and as it is."""

    foreseen: float
    """If what was there had lasted."""
    expected: float
    """As far as it was taken to."""
    came: float


def observed(
    errors: Errors, told: Checked, seconds: float, requests: float, chance: float = 0.0
) -> Errors:
    """After one look, ``seconds`` after the last, at which so many requests came.

    ``chance`` is the deviation from what was expected then that counting so few requests makes; it
    is no error of a forecast.
    """
    counts = errors.counts * 0.5 ** (seconds / HALF_LIFE_SECONDS)
    if min(told.foreseen, told.expected, told.came) > 0.0:
        error = math.log(told.came / told.expected)
        own = math.copysign(math.sqrt(max(error * error - chance * chance, 0.0)), error)
        log_ratio = np.array([math.log(told.expected / told.foreseen) + own])
        log_size = np.array([math.log(told.foreseen)])
        # Between two sizes, so that none is moved on the whole.
        sizes = spread(log_size, np.array([requests]), LOG_SIZES)
        counts[:, nearest(log_ratio, LOG_RATIOS)[0]] += sizes
    return Errors(counts)


def shares(
    errors: Errors,
    expectation: Callable[[Vector], Vector],
    expected: float,
    horizon_seconds: float,
    usual_requests: float,
) -> Vector:
    """Of requests by the error that they will meet; they sum to 1.

    :param expectation: ln(what is expected) of ln(what is foreseen), as it is now.
    :param usual_requests: that come between two looks.
    """
    log_expected = expectation(LOG_SIZES)
    distance = (log_expected - math.log(max(expected, 1e-9))) / SIZE_WIDTH
    weights = np.exp(-0.5 * distance**2)[:, None] * errors.counts
    made = (LOG_SIZES - log_expected)[:, None] + LOG_RATIOS
    at = nearest(made.ravel(), LOG_ERRORS)
    seen = np.bincount(at, weights.ravel(), len(LOG_ERRORS))
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
