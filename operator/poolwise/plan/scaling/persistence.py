"""How far demand that is foreseen comes to pass, and how far it falls back to the usual.

Bursts that are shorter than a start are over when what was asked for is there; then the usual
demand says more than the present one does. Optimal linear prediction of ln(demand): towards its
mean by the slope of its regression on what was foreseen. The slope is 1 where demand lasts, and 0
where nothing that is seen tells of what comes; it begins at 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

HALF_LIFE_SECONDS = 5400.0
PRIOR_STEPS, PRIOR_DEVIATION = 40.0, 0.4
"""How many steps of so large a deviation, all of them come to pass, the slope begins with."""
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

    def after(self, foreseen: float, came: float, seconds: float) -> Persistence:
        """What had been foreseen came out as this."""
        kept = 0.5 ** (seconds / HALF_LIFE_SECONDS)
        weight = foreseen + came
        if weight <= 0.0:
            return self
        least = LEAST_SHARE * max(self.mean, weight / 2.0)
        x, y = math.log(max(foreseen, least)), math.log(max(came, least))
        return Persistence(
            kept * self.weight + weight,
            kept * self.foreseen + weight * x,
            kept * self.came + weight * y,
            kept * self.squares + weight * x * x,
            kept * self.products + weight * x * y,
            kept * self.demand + weight / 2.0,
            kept * self.steps + 1.0,
        )

    @property
    def mean(self) -> float:
        """Demand."""
        return self.demand / self.steps if self.steps else 0.0

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

    def log_expected(self, log_foreseen: Vector, trusted_share: float = 1.0) -> Vector:
        """The same of several, as logarithms.

        :param trusted_share: of the growth from what was foreseen to what came, on the whole. A
            service that grew tenfold within its first long start would else be ready for ten times
            of whatever there is.
        """
        slope = self.slope
        if slope >= 1.0:
            return log_foreseen
        x, y = self.foreseen / self.weight, self.came / self.weight
        held = np.maximum(log_foreseen, math.log(LEAST_SHARE * self.mean))
        told: Vector = x + trusted_share * (y - x) + slope * (held - x)
        return told
