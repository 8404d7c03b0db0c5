"""How much longer than the formulas a replica's times are, by its load, as runs alike tell.

The residual depends on the requests in flight, which a search for a capacity changes at every
look. So it is asked once at a few loads, and taken as straight between them over the logarithm:
its length scale is a factor of 30 in requests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Device
from poolwise.model.serving.site import serving_site
from poolwise.model.work import ServingLayout, ServingWork

FIRST_TOKEN, TOKEN, SATURATED = "ttft", "tpot", "offline_throughput"
"""Residuals: of times to the first token, between tokens, and of all work at saturation."""
KNOT_RATIO = 4.0
KNOTS = tuple(KNOT_RATIO**power for power in range(7))
"""Requests in flight."""


@dataclass(frozen=True, slots=True)
class Slowness:
    """Factor on a time."""

    log_factors: tuple[float, ...] = ()
    """At the knots; none: as the formulas have it."""

    def factor(self, in_flight: float) -> float:
        """With so many requests in flight."""
        if not self.log_factors:
            return 1.0
        place = math.log(max(in_flight, 1.0)) / math.log(KNOT_RATIO)
        left = min(int(place), len(self.log_factors) - 2)
        beyond = min(place - left, 1.0)
        low, high = self.log_factors[left], self.log_factors[left + 1]
        return math.exp(low + beyond * (high - low))


AS_FORMULAS = Slowness()


def slowness(
    figure: str, work: ServingWork, layout: ServingLayout, device: Device, calibration: Calibration
) -> Slowness:
    """Of one replica's times."""
    residual = calibration.residual(figure)
    if residual is None:
        return AS_FORMULAS
    return Slowness(
        tuple(residual.along([serving_site(work, layout, device, load) for load in KNOTS]))
    )


def token_figure(work: ServingWork) -> str:
    """What a service without targets is run for is throughput."""
    return TOKEN if work.targets else SATURATED
