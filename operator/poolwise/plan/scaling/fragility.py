"""How many requests are late at a load, as the service itself shows it.

A fragility curve, as reliability engineering has them: of the requests that come while the load is
r times what the model calls full, the share ::

    late(r) = floor + (1 - floor) / (1 + odds * (strength / r) ** steepness)

is late, where r is the load of the replica that they are on (:mod:`.felt`) and ``odds`` are those
of the allowed share: ``strength`` is the load at which just as many are late as may be (1: where
the model says), ``steepness`` how sharp the edge is: high where load is smooth, low where more
comes at times than looks tell, beyond the bursts that are known of (:mod:`.swings`). ``floor`` is
late at any load, beside the prompts that are known to be late even alone (:mod:`.lone`). All that
the model and the forecast do not know shows in these three, so they are learned together: a
posterior on a grid, from how many were late at which load, fading towards the prior.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from poolwise.plan.scaling.grid import Vector
from poolwise.plan.scaling.lone import Known

LOG_STRENGTHS = np.linspace(-2.4, 1.6, 67)
STEEPNESSES = np.array([2.0, 3.0, 4.5, 7.0, 10.0, 15.0, 22.0, 35.0])
FLOORS = np.array([0.0, 0.002, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.065, 0.08])

STRENGTH_DEVIATION = 0.25
"""Of ln(strength) before anything is seen: the model's own error, and an even router or not."""
RARE_SHARE, RARE_MIDDLE, RARE_DEVIATION = 0.2, 0.5, 0.7
"""Of services that the model is far off: where requests are few and a router keeps them apart, or
where they come in bursts."""
MIDDLE_STEEPNESS, STEEPNESS_DEVIATION = 10.0, 0.7
FLOOR_WEIGHTS = np.array([0.7, 0.08, 0.07, 0.06, 0.04, 0.02, 0.01, 0.01, 0.005, 0.005])
"""Mostly no request is late at no load."""
LEAST_SHARE = 1e-5
"""A model is never certain."""
CACHE_MIDDLE, CACHE_DEVIATION = -0.02, 0.05
"""Of ln(strength) where a cache is what fills: about where it is full."""
FLOOR_DEVIATION = 0.03
"""Of the share that is late alone, by which others are late at any load: both are counted among the
same requests, and what is left is the error of the length from which on a prompt is late."""
HALF_LIFE_SECONDS = 1800.0
"""What nothing confirms is forgotten: a fleet far larger than its need sees nothing of its edge."""
LEAST_RATIO, MOST_RATIO = 0.02, 3.0
LOG_RATIOS = np.linspace(-5.0, 3.0, 81)
LOADS = 200
BLUR_STEP = 0.05
NORMALS = np.linspace(-3.0, 3.0, 13)
"""Of a standard normal number, for sums over it."""


@dataclass(frozen=True, eq=False)
class Belief:
    """Logarithm of the posterior, up to a constant: strength by steepness by floor."""

    log_weights: Vector

    @property
    def weights(self) -> Vector:
        """Of the cells; they sum to 1."""
        shifted = np.exp(self.log_weights - self.log_weights.max())
        told: Vector = shifted / shifted.sum()
        return told

    def as_list(self) -> list[Any]:
        """For JSON."""
        listed: list[Any] = np.round(self.log_weights - self.log_weights.max(), 3).tolist()
        return listed

    @staticmethod
    def read(listed: list[Any]) -> Belief:
        """What :meth:`as_list` made; ValueError for anything else."""
        log_weights = np.array(listed, float)
        if log_weights.shape != prior().log_weights.shape or not np.isfinite(log_weights).all():
            raise ValueError(f"a belief of shape {log_weights.shape} is none of this version")
        return Belief(log_weights)


@lru_cache(maxsize=1)
def prior() -> Belief:
    """Before anything is seen."""
    usual = np.exp(-0.5 * (LOG_STRENGTHS / STRENGTH_DEVIATION) ** 2) / STRENGTH_DEVIATION
    rare = np.exp(-0.5 * ((LOG_STRENGTHS - RARE_MIDDLE) / RARE_DEVIATION) ** 2) / RARE_DEVIATION
    strength = np.log((1.0 - RARE_SHARE) * usual + RARE_SHARE * rare)
    steepness = -0.5 * (np.log(STEEPNESSES / MIDDLE_STEEPNESS) / STEEPNESS_DEVIATION) ** 2
    floor = np.log(FLOOR_WEIGHTS)
    return Belief(strength[:, None, None] + steepness[None, :, None] + floor[None, None, :])


@dataclass(frozen=True, slots=True)
class Lateness:
    """Of the requests that were told of in one step."""

    late: float
    count: float
    relative_strength: float = 1.0
    """1 where late means beyond the target. Beyond a shorter time more are, as if what bears were
    weaker by this factor, by the model: so tails tell of the edge before anybody falls off it."""
    weight: float = 1.0
    """Share of the step's own."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Requests by the load that they felt: weighted counts over :data:`LOG_RATIOS`."""

    late: Vector
    timely: Vector


def faded(belief: Belief, seconds: float) -> Belief:
    """Some time later, without news."""
    kept = 0.5 ** (seconds / HALF_LIFE_SECONDS)
    return Belief(kept * belief.log_weights + (1.0 - kept) * prior().log_weights)


def informed(belief: Belief, edge: float | None, is_limit: bool, alone: Known | None) -> Belief:
    """With what the present mix alone tells: at which load caches are full, by their own word, and
    the share that even an idle replica is late with, which is not counted here: where that is
    known, few others are late at any load but those that may be late alone as well.

    :param is_limit: whether nothing but the cache is an edge; else it may be nearer.
    :param alone: None: not known.
    """
    told = belief.log_weights
    if edge is not None:
        distance = (LOG_STRENGTHS - math.log(edge) - CACHE_MIDDLE) / CACHE_DEVIATION
        if not is_limit:
            distance = np.maximum(distance, 0.0)
        told = told - 0.5 * distance[:, None, None] ** 2
    if alone is not None:
        beyond = np.maximum(FLOORS - alone.more, 0.0)
        away = beyond / (FLOOR_DEVIATION * alone.share + FLOORS[1])
        told = told - 0.5 * away[None, None, :] ** 2
    return Belief(told)


def observed(belief: Belief, evidence: Evidence, allowed_share: float, blur: float = 0.0) -> Belief:
    """After requests at their loads.

    :param blur: deviation of ln(load) that they met, about those (:mod:`.swings`).
    """
    (seen,) = np.nonzero(evidence.late + evidence.timely)
    of_load = _late(allowed_share, _rounded(blur))[seen, ..., None]
    late = FLOORS + (1.0 - FLOORS) * of_load
    told = np.tensordot(evidence.late[seen], np.log(np.maximum(late, LEAST_SHARE)), 1)
    told += np.tensordot(evidence.timely[seen], np.log(np.maximum(1.0 - late, LEAST_SHARE)), 1)
    return Belief(belief.log_weights + told)


def bearable(curve: Vector, log_errors: Vector, shares: Vector) -> Callable[[float], float]:
    """The highest load to aim at for which no more than a given share is expected to be late,
    when what comes differs from what is aimed at by errors that such shares of requests meet.

    :param curve: of :func:`curve_of`.
    """
    log_loads = np.linspace(math.log(LEAST_RATIO), math.log(MOST_RATIO), LOADS)
    late = np.interp(log_loads[:, None] + log_errors, LOG_RATIOS, curve) @ shares

    def highest(aim_share: float) -> float:
        return math.exp(float(np.interp(aim_share, late, log_loads)))

    return highest


def expected_floor(belief: Belief) -> float:
    """Share that is late at any load."""
    return float(np.sum(belief.weights * FLOORS))


def summary(belief: Belief) -> tuple[float, float]:
    """Strength and steepness: geometric means."""
    weights = belief.weights
    strength = float(np.exp(np.sum(weights * LOG_STRENGTHS[:, None, None])))
    steepness = float(np.exp(np.sum(weights * np.log(STEEPNESSES)[None, :, None])))
    return strength, steepness


def curve_of(belief: Belief, allowed_share: float, blur: float = 0.0) -> Vector:
    """Expected share that load makes late, over :data:`LOG_RATIOS`.

    :param blur: deviation of ln(load) that requests meet, about that.
    """
    weights = np.sum(belief.weights * (1.0 - FLOORS), axis=2)
    told: Vector = np.einsum("sk,rsk->r", weights, _late(allowed_share, _rounded(blur)))
    return told


def _rounded(blur: float) -> float:
    """Curves are remembered by it."""
    return round(blur / BLUR_STEP) * BLUR_STEP


@lru_cache(maxsize=64)
def _late(allowed_share: float, blur: float) -> Vector:
    """Share that load makes late: ratio by strength by steepness.

    Loads are log-normal about the ratio, whose mean they keep.
    """
    odds = math.log((1.0 - allowed_share) / allowed_share)
    normals = NORMALS if blur else np.zeros(1)
    shares = np.exp(-0.5 * normals**2)
    met = LOG_RATIOS[:, None] + blur * (normals - blur / 2.0)
    distance = (LOG_STRENGTHS[:, None] - met[:, None, :])[..., None] * STEEPNESSES
    late = 1.0 / (1.0 + np.exp(np.clip(odds + distance, -50.0, 50.0)))
    told: Vector = np.einsum("n,rsnk->rsk", shares / shares.sum(), late)
    return told
