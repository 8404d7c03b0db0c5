"""What the formulas leave, learnt from measured runs that are like the one asked for.

A figure's residual, ln(measured / predicted seconds), is taken as a sum of smooth functions of the
run's sizes, one for each set of labels: runs of one model share one, runs of one model on one
engine another. Its values at two sites are then correlated as ::

    k(a, b) = variance * (sets of labels alike) * exp(-sum(((x_a - x_b) / length)^2) / 2)

and the estimate is the mean of this Gaussian process given the measured runs, ``sum_i w_i k(site,
site_i)`` (kriging; Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, eq. 2.25;
sums of kernels over subsets of inputs: Duvenaud et al., arXiv 1112.4394). So a model that nobody
measured gets nothing, far from every run nothing is left of it, and it is bounded.

How sure a prediction is depends on how near the nearest run is: ``nearness`` is the largest
correlation with one, 0 to 1, and the spread is that of held-out runs that were as near.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from poolwise.model.efficiency import Efficiency, Provenance
from poolwise.model.site import Site

if TYPE_CHECKING:  # the tables take a while to import
    from poolwise.tables.residuals import ResidualRow

Vector = NDArray[np.float64]

BOUND = 0.4
"""Of the logarithm, either way: what is off by more is rather another machine or workload."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """The covariance of residuals at two sites."""

    levels: tuple[tuple[int, ...], ...]
    """Sets of labels that have a function in common, by their places in :attr:`Site.labels`."""
    variance: float
    """Of each function."""
    lengths: tuple[float, ...]
    """Of each coordinate: how far a function stays alike."""


@dataclass(frozen=True, slots=True)
class Nearness:
    """Spread of held-out runs whose nearest known one was at least so near."""

    least: float
    spread: float
    """Standard deviation of ln(measured / predicted) with the residual taken into account."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """What measured runs say of a prediction."""

    log_factor: float
    """Of a time: what it is to be multiplied by."""
    spread: float
    """Of held-out runs that were as near to a known one."""
    has_kin: bool = True
    """Whether any known run has labels in common."""

    @property
    def factor(self) -> float:
        """What a predicted time is multiplied by."""
        return math.exp(self.log_factor)

    def spread_beside(self, constant: Efficiency) -> float:
        """Of a prediction by constants with a spread of their own, by accelerator and engine.

        Runs that are near narrow it; those that are far leave it as it is, and so do those of other
        accelerators where this one has none. Without any kin it is the wider one: the constants'
        own is that of models that they were fitted on.
        """
        if not self.has_kin:
            return max(self.spread, constant.spread)
        is_own = constant.provenance in (Provenance.MEASURED, Provenance.FITTED)
        return min(self.spread, constant.spread) if is_own else constant.spread


def residuals(rows: Iterable[ResidualRow]) -> dict[str, Residual]:
    """Of each figure, from the tables."""
    return {row.figure: residual(row) for row in rows}


def residual(row: ResidualRow) -> Residual:
    """Of one figure."""
    sites = [Site(site.labels, site.coordinates) for site in row.sites]
    spreads = [Nearness(each.least, each.spread) for each in row.spreads]
    return Residual(kernel(row), sites, [site.weight for site in row.sites], spreads)


def kernel(row: ResidualRow) -> Kernel:
    """Of one figure; labels by their place in a site."""
    levels = (tuple(map(row.labels.index, level)) for level in row.levels)
    return Kernel(tuple(levels), row.variance, tuple(row.lengths.values()))


class Sites:
    """Known sites as arrays; labels by number, which compare ten times as fast."""

    def __init__(self, kernel: Kernel, sites: Sequence[Site]) -> None:
        self._levels = [list(level) for level in kernel.levels]
        self.lengths = np.array(kernel.lengths)
        self._numbers: dict[str, int] = {}
        self._labels = np.array(
            [
                [self._numbers.setdefault(label, len(self._numbers)) for label in site.labels]
                for site in sites
            ]
        )
        self.places = np.array([site.coordinates for site in sites]) / self.lengths

    def levels_alike(self, labels: Sequence[str]) -> NDArray[np.int64]:
        """Of each site, how many sets of labels it has in common."""
        alike = self._labels == np.array([self._numbers.get(label, -1) for label in labels])
        return sum(
            (np.all(alike[:, level], axis=1).astype(np.int64) for level in self._levels),
            start=np.zeros(len(alike), dtype=np.int64),
        )

    def closeness(self, coordinates: Sequence[float], places: Vector) -> Vector:
        """To each of some places: 1 at the place itself, and 0 far away."""
        apart = places - np.array(coordinates) / self.lengths
        closeness: Vector = np.exp(-0.5 * np.einsum("ij,ij->i", apart, apart))
        return closeness


@dataclass(frozen=True, slots=True)
class _Kin:
    """Known sites with anything in common with some labels."""

    indices: NDArray[np.int64]
    places: Vector
    alike: Vector
    """Share of the sets of labels."""


class Residual:
    """The estimate of one figure. Immutable, but for kin that it remembers."""

    def __init__(
        self,
        kernel: Kernel,
        sites: Sequence[Site],
        weights: Sequence[float],
        spreads: Sequence[Nearness],
    ) -> None:
        """``spreads`` by falling nearness, the last one from 0."""
        self._kernel = kernel
        self._sites = Sites(kernel, sites)
        self._weights = np.array(weights, dtype=np.float64)
        self._spreads = tuple(spreads)
        self._kin: dict[tuple[str, ...], _Kin] = {}

    def at(self, site: Site) -> Learnt:
        """Bounded factor, and how sure the prediction is with it."""
        kin, correlation = self._correlation(site)
        found = self._variance * float(correlation @ self._weights[kin.indices])
        nearness = float(correlation.max(initial=0.0))
        spread = next(each.spread for each in self._spreads if nearness >= each.least)
        return Learnt(max(-BOUND, min(BOUND, found)), spread, has_kin=len(kin.indices) > 0)

    @property
    def _variance(self) -> float:
        return self._kernel.variance * len(self._kernel.levels)

    def _correlation(self, site: Site) -> tuple[_Kin, Vector]:
        """With those known sites that it has anything in common with."""
        kin = self._kin_of(site.labels)
        return kin, kin.alike * self._sites.closeness(site.coordinates, kin.places)

    def _kin_of(self, labels: tuple[str, ...]) -> _Kin:
        if labels not in self._kin:
            shared = self._sites.levels_alike(labels)
            chosen = np.flatnonzero(shared)
            alike = shared[chosen] / len(self._kernel.levels)
            self._kin[labels] = _Kin(chosen, self._sites.places[chosen], alike)
        return self._kin[labels]
