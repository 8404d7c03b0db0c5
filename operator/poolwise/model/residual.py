"""What the formulas leave, learnt from measured runs that are like the one asked for.

A figure's residual, ln(measured / predicted seconds), is taken as a sum of smooth functions of the
run's sizes, one for each set of labels: runs of one model share one, runs of one model on one
engine another. Its values at two sites are then correlated as ::

    k(a, b) = variance * (sets of labels alike) * exp(-sum(((x_a - x_b) / length)^2) / 2)

and the estimate is the mean of this Gaussian process given the measured runs, ``sum_i w_i k(site,
site_i)`` (kriging; Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, eq. 2.25;
sums of kernels over subsets of inputs: Duvenaud et al., arXiv 1112.4394). So a model that nobody
measured gets nothing, far from every run nothing is left of it, and it is bounded.

What a function learnt on one accelerator says of another holds as far as runs wait for the same on
both: a step that waits for memory tells little of one that waits for links. So functions that no
accelerator is named for fade with the distance between the shares of the step as well.

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

from poolwise.errors import InvalidInput
from poolwise.model.efficiency import Efficiency, Provenance
from poolwise.model.site import Site

if TYPE_CHECKING:  # the tables take a while to import
    from poolwise.tables.residuals import ResidualRow

Vector = NDArray[np.float64]

ACCELERATOR = "accelerator"
"""The label of functions that hold on one accelerator alone."""
BOUND = 0.4
"""Of the logarithm, either way: what is off by more is rather another machine or workload."""
REMEMBERED = 8
"""Places whose distances to known sites are remembered."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """The covariance of residuals at two sites."""

    levels: tuple[tuple[int, ...], ...]
    """Sets of labels that have a function in common, by their places in :attr:`Site.labels`."""
    variance: float
    """Of each function."""
    lengths: tuple[float, ...]
    """Of each coordinate: how far a function stays alike."""
    share_length: float = math.inf
    """The same of the shares of a step, all alike."""
    across: tuple[bool, ...] = ()
    """Whether each function spans accelerators, and so follows the shares; none without."""


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
    has_kin: bool
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
    sites = [Site(site.labels, site.coordinates, site.shares) for site in row.sites]
    spreads = [Nearness(each.least, each.spread) for each in row.spreads]
    return Residual(kernel(row), sites, [site.weight for site in row.sites], spreads)


def kernel(row: ResidualRow) -> Kernel:
    """Of one figure; labels by their place in a site."""
    levels = (tuple(map(row.labels.index, level)) for level in row.levels)
    return Kernel(
        tuple(levels),
        row.variance,
        tuple(row.lengths.values()),
        row.share_length,
        tuple(ACCELERATOR not in level for level in row.levels),
    )


@dataclass(frozen=True, slots=True)
class Kin:
    """Known sites with anything in common with some labels."""

    indices: NDArray[np.int64]
    places: Vector
    shares: Vector
    here: Vector
    """How many functions they have in common that name the accelerator,"""
    across: Vector
    """and how many that do not."""

    def near(self, place: Vector) -> Vector:
        """How near each is in sizes and lengths: 1 at the place itself."""
        return _faded(self.places - place)

    def alike(self, near: Vector, shares: Vector) -> Vector:
        """How many functions each has in common, faded by its distance."""
        alike: Vector = near * (self.here + self.across * _faded(self.shares - shares))
        return alike


def _faded(apart: Vector) -> Vector:
    """By distance in units of the length: 1 at the place itself, and 0 far away."""
    faded: Vector = np.exp(-0.5 * np.einsum("ij,ij->i", apart, apart))
    return faded


class Sites:
    """Known sites as arrays; labels by number, which compare ten times as fast."""

    def __init__(self, kernel: Kernel, sites: Sequence[Site]) -> None:
        across = kernel.across or (False,) * len(kernel.levels)
        self._levels = [
            (list(each), spans) for each, spans in zip(kernel.levels, across, strict=True)
        ]
        self._lengths = np.array(kernel.lengths)
        self._share_length = kernel.share_length
        self._numbers: dict[str, int] = {}
        self._labels = np.array(
            [
                [self._numbers.setdefault(label, len(self._numbers)) for label in site.labels]
                for site in sites
            ]
        )
        self._places = np.array([site.coordinates for site in sites]) / self._lengths
        self._shares = np.array([site.shares for site in sites]) / self._share_length
        self._kin: dict[tuple[str, ...], Kin] = {}
        self._near: dict[tuple[object, ...], Vector] = {}

    def alike(self, site: Site) -> tuple[Kin, Vector]:
        """Those with any function in common, and how many each has, faded by its distance."""
        kin = self._kin_of(site.labels)
        if not len(kin.indices):  # of most models, of which nobody measured a run
            return kin, kin.here
        near = self._nearness(kin, site)
        return kin, kin.alike(near, np.array(site.shares) / self._share_length)

    def _nearness(self, kin: Kin, site: Site) -> Vector:
        """A machine with more of something is asked for at the place of the machine as it is, and
        waits for other shares there: the last few places are remembered."""
        where = site.labels, site.coordinates
        found = self._near.get(where)
        if found is None:
            if len(self._near) >= REMEMBERED:
                self._near.clear()
            found = self._near[where] = kin.near(np.array(site.coordinates) / self._lengths)
        return found

    def _kin_of(self, labels: tuple[str, ...]) -> Kin:
        if labels not in self._kin:
            here, across = (self._levels_alike(labels, spans) for spans in (False, True))
            chosen = np.flatnonzero(here + across)
            self._kin[labels] = Kin(
                chosen, self._places[chosen], self._shares[chosen], here[chosen], across[chosen]
            )
        return self._kin[labels]

    def _levels_alike(self, labels: Sequence[str], spans: bool) -> Vector:
        """Of each site, how many sets of labels it has in common."""
        alike = self._labels == np.array([self._numbers.get(label, -1) for label in labels])
        return sum(
            (
                np.all(alike[:, level], axis=1).astype(np.float64)
                for level, does_span in self._levels
                if does_span == spans
            ),
            start=np.zeros(len(alike)),
        )


class Residual:
    """The estimate of one figure. Immutable, but for what it remembers."""

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

    def at(self, site: Site) -> Learnt:
        """Bounded factor, and how sure the prediction is with it.

        Raises InvalidInput for a site whose coordinates are beyond all numbers.
        """
        kin, alike = self._sites.alike(site)
        if not len(alike):
            return Learnt(0.0, self._spread(nearness=0.0), has_kin=False)
        found = self._kernel.variance * float(alike @ self._weights[kin.indices])
        nearness = float(alike.max()) / len(self._kernel.levels)
        if math.isnan(nearness):
            raise InvalidInput("", "sizes are too large to be held against measured runs")
        return Learnt(max(-BOUND, min(BOUND, found)), self._spread(nearness), has_kin=True)

    def _spread(self, nearness: float) -> float:
        return next(each.spread for each in self._spreads if nearness >= each.least)
