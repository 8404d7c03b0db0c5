"""Weights of a residual's sites, and what they would have said of runs that were left out.

With K the covariances between sites and N their noise, the weights solve ``(K + N) w = r`` for the
residuals r of the runs (Rasmussen and Williams 2006, eq. 2.27). Runs that no function fits (another
prediction layer, a client that did not keep up) get more noise, as in a least-squares fit with
Cauchy's loss, so that they bend nothing around them. The estimate for a block B of runs from all
others needs no second fit: with P = (K + N)^-1 it is off by ``(P_BB)^-1 (P r)_B`` (eq. 5.12).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.accuracy import Vector
from poolwise.model.residual import Kernel, Sites
from poolwise.model.site import Site

Matrix = NDArray[np.float64]

WILD = 0.3
"""|r| from which a run counts as wild before anything is fitted."""
OUTLYING = 2.0
"""The same in units of the noise afterwards."""
ROUNDS = 3


def covariances(kernel: Kernel, sites: Sequence[Site]) -> Matrix:
    """Between all pairs."""
    known, found = Sites(kernel, sites), np.zeros((len(sites), len(sites)))
    for row, site in enumerate(sites):
        kin, alike = known.alike(site)
        found[row, kin.indices] = kernel.variance * alike
    return found


def weights(covariance: Matrix, residuals: Vector, noise: float) -> Vector:
    """Of each site; ``noise`` is the deviation between runs of one configuration."""
    trust = _trust(residuals, WILD)
    for _ in range(ROUNDS):
        found = np.linalg.solve(covariance + np.diag(noise**2 / trust), residuals)
        trust = _trust(residuals - covariance @ found, OUTLYING * noise)
    return found.astype(np.float64)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Runs by what all others say of them."""

    errors: Vector
    """What the estimate is off by."""
    nearness: Vector
    """Largest correlation with a run that was not left out."""


def left_out(
    covariance: Matrix, residuals: Vector, noise: float, units: Sequence[Sequence[Hashable]]
) -> list[LeftOut]:
    """For each way to divide the runs into blocks: every block estimated from the others."""
    noisy = covariance + np.diag(noise**2 / _trust(residuals, WILD))
    precision = np.linalg.inv(noisy).astype(np.float64)
    explained: Vector = precision @ residuals
    return [_left_out(covariance, precision, explained, blocks) for blocks in units]


def _left_out(
    covariance: Matrix, precision: Matrix, explained: Vector, blocks: Sequence[Hashable]
) -> LeftOut:
    variance = covariance.diagonal().max(initial=0.0)
    errors, nearness = np.zeros(len(blocks)), np.zeros(len(blocks))
    numbers = {block: number for number, block in enumerate(dict.fromkeys(blocks))}
    numbered = np.array([numbers[block] for block in blocks])
    for number in numbers.values():
        inside = np.flatnonzero(numbered == number)
        outside = np.flatnonzero(numbered != number)
        errors[inside] = np.linalg.solve(precision[np.ix_(inside, inside)], explained[inside])
        near = covariance[np.ix_(inside, outside)].max(axis=1, initial=0.0)
        nearness[inside] = near / variance
    return LeftOut(errors, nearness)


def _trust(errors: Vector, usual: float) -> Vector:
    """1 for a good run, towards 0 for a wild one."""
    trust: Vector = 1.0 / (1.0 + (errors / usual) ** 2)
    return trust
