"""How much longer than the formulas a replica's times are, as measured runs alike tell.

One factor for all loads, that of the geometric middle between one request and all slots: were it to
grow with the load, a fuller replica would serve fewer requests, which no engine does, and a search
for the highest rate would have no one answer. Runs that were measured for their throughput tell no
load, and are put down to one request for each data rank: so is what is run for throughput.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Device
from poolwise.model.serving.load import Replica
from poolwise.model.serving.site import serving_site
from poolwise.model.site import Site
from poolwise.model.work import ServingLayout, ServingWork

if TYPE_CHECKING:  # takes a while to import
    from poolwise.model.residual import Residual

FIRST_TOKEN, TOKEN, SATURATED = "ttft", "tpot", "offline_throughput"
"""Residuals: of times to the first token, between tokens, and of all work at saturation."""


def with_slowness(
    served: Replica,
    work: ServingWork,
    layout: ServingLayout,
    device: Device,
    calibration: Calibration,
) -> Replica:
    """What is run without targets is run for throughput."""
    steps = calibration.residual(TOKEN if work.targets else SATURATED)
    first = calibration.residual(FIRST_TOKEN)
    if steps is None and first is None:
        return served

    def where(in_flight: float) -> Site | None:
        is_endless = math.isinf(in_flight)
        return None if is_endless else serving_site(work, layout, device, served, in_flight)

    middle = where(math.sqrt(max(served.slots, 1.0)))
    return replace(
        served,
        slowness=_factor(steps, middle if work.targets else where(float(layout.data))),
        first_token_slowness=_factor(first, middle),
    )


def as_slow(served: Replica, known: Replica) -> Replica:
    """One replica with the factors of another."""
    return replace(served, slowness=known.slowness, first_token_slowness=known.first_token_slowness)


def _factor(residual: Residual | None, site: Site | None) -> float:
    return 1.0 if residual is None or site is None else residual.at(site).factor
