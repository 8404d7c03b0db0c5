"""How sure a fit is of its parameters: what the rows and the priors leave open.

Rows of one group are one configuration, so what a formula misses of it, it misses in all of them: a
group of 200 rows does not make a constant 14 times surer than one row. With J the slopes of the
errors, W the weights of the last step, P the priors as inverse variances, and V the covariance of
the errors (within a group that of the group's own error, and each row's beside it)::

    C = H (J' W V W J + P) H,   H = (J' W J + P)^-1

A parameter that no row speaks for keeps the variance of its prior.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bench.accuracy import Vector
from bench.fit.kriging import Matrix


def covariance(
    slopes: Matrix, errors: Vector, weights: Vector, widths: Vector, groups: Sequence[Hashable]
) -> Matrix:
    """Of the parameters.

    :param slopes: of each row's error (rows) by each parameter (columns).
    :param weights: of each row, with its robustness, over the square of the noise.
    :param widths: deviations of the priors.
    """
    prior = np.diag(np.asarray(widths) ** -2.0)
    weighted = slopes * weights[:, None]
    places = {group: index for index, group in enumerate(dict.fromkeys(groups))}
    of_group = np.array([places[group] for group in groups], dtype=np.intp)
    together = np.zeros((len(places), slopes.shape[1]))
    np.add.at(together, of_group, weighted)
    between, within = _variances(errors, weights, of_group)
    told = between * together.T @ together + within * weighted.T @ weighted
    inverse = np.linalg.inv(weighted.T @ slopes + prior)
    found: Matrix = inverse @ (told + prior) @ inverse
    return found


def deviation(known: Matrix, parts: Iterable[int]) -> float:
    """Of the sum of some parameters."""
    chosen = list(parts)
    return math.sqrt(max(float(known[np.ix_(chosen, chosen)].sum()), 0.0))


def _variances(errors: Vector, weights: Vector, of_group: NDArray[np.intp]) -> tuple[float, float]:
    """Of a group's own error, and of a row's about it."""
    if not weights.sum():
        return 0.0, 0.0
    total = np.bincount(of_group, weights)
    mean = np.bincount(of_group, weights * errors) / np.where(total, total, 1.0)
    between = float(total @ mean**2 / total.sum())
    within = float(weights @ (errors - mean[of_group]) ** 2 / weights.sum())
    return between, within
