"""How far demand that is foreseen comes to pass, and how far it falls back to the usual.

Bursts that are shorter than a start are over when what was asked for is there; then the usual
demand says more than the present one does. Optimal linear prediction of ln(demand): towards its
mean by the slope of its regression on what was foreseen. The slope is 1 where demand lasts, and 0
where nothing that is seen tells of what comes; it begins at 1. The mean of what comes begins at the
mean of what was foreseen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from poolwise.plan.scaling.cadence import steps
from poolwise.plan.scaling.grid import Vector

HALF_LIFE_SECONDS = 5400.0
PRIOR_STEPS, PRIOR_DEVIATION = 40.0, 0.4
"""How many steps of so large a deviation, all of them come to pass, the slope begins with."""
PRIOR_OF_MEAN_STEPS = 5.0
"""How many steps at which as much came as was foreseen the mean begins with. The first that can be
judged lie within one start of each other, and so within one rise: at their word three of them had a
service that had just doubled ask for twice as much again."""
LEAST_SHARE = 0.03
"""Of the mean demand: less is as good as none, and its logarithm would count too much."""


@dataclass(frozen=True, slots=True)
class Persistence:
    """Fading sums, weighted by demand: hours without any tell little of the others."""

    weight: float = 0.0
    foreseen: float = 0.0
    came: float = 0.0
    squares: float = 0.0
    """Of ln(foreseen)."""
    products: float = 0.0
    demand: float = 0.0
    steps: float = 0.0
    weights_squared: float = 0.0

    def after(self, foreseen: float, came: float, seconds: float) -> Persistence:
        """What had been foreseen came out as this."""
        kept, count = 0.5 ** (seconds / HALF_LIFE_SECONDS), steps(seconds)
        weight = count * (foreseen + came)
        if weight <= 0.0:
            return self
        least = LEAST_SHARE * max(self.mean, (foreseen + came) / 2.0)
        x, y = math.log(max(foreseen, least)), math.log(max(came, least))
        return Persistence(
            kept * self.weight + weight,
            kept * self.foreseen + weight * x,
            kept * self.came + weight * y,
            kept * self.squares + weight * x * x,
            kept * self.products + weight * x * y,
            kept * self.demand + weight / 2.0,
            kept * self.steps + count,
            kept * kept * self.weights_squared + weight * weight / count,
        )

    @property
    def mean(self) -> float:
        """Demand."""
        return self.demand / self.steps if self.steps else 0.0

    @property
    def growth(self) -> float:
        """ln(what comes / what is foreseen) on average.

        One step of a high demand outweighs a hundred of a low one, and says no more than one step
        does: so many count as there would have to be of equal weight (Kish's effective sample).
        """
        if self.weights_squared <= 0.0:
            return 0.0
        equal_steps = self.weight**2 / self.weights_squared
        share = equal_steps / (equal_steps + PRIOR_OF_MEAN_STEPS)
        return share * (self.came - self.foreseen) / self.weight

    @property
    def slope(self) -> float:
        """Of what comes over what is foreseen; 0 to 1."""
        if self.weight <= 0.0:
            return 1.0
        x, y = self.foreseen / self.weight, self.came / self.weight
        prior = PRIOR_STEPS * PRIOR_DEVIATION**2 / self.steps
        variance = max(self.squares / self.weight - x * x, 0.0) + prior
        covariance = self.products / self.weight - x * y + prior
        return min(max(covariance / variance, 0.0), 1.0)

    def expected(self, foreseen: float, trusted_share: float = 1.0) -> float:
        """What is likely to come."""
        if foreseen <= 0.0 or self.slope >= 1.0:
            return foreseen
        found = self.log_expected(np.array([math.log(foreseen)]), trusted_share)
        return math.exp(float(found[0]))

    def log_expected(self, log_foreseen: Vector, trusted_share: float) -> Vector:
        """The same of several, as logarithms.

        :param trusted_share: of the growth from what was foreseen to what came, on the whole. A
            service that grew tenfold within its first long start would else be ready for ten times
            of whatever there is.
        """
        slope = self.slope
        if slope >= 1.0:  # what is there lasts; a level that has jumped since jumps once
            return log_foreseen
        usual = self.foreseen / self.weight
        held = np.maximum(log_foreseen, math.log(LEAST_SHARE * self.mean))
        told: Vector = usual + trusted_share * self.growth + slope * (held - usual)
        return told
