"""How much longer than the formulas a replica's times are, as measured runs alike tell.

One factor for all loads, that of the geometric middle between one request and all slots: were it to
grow with the load, a fuller replica would serve fewer requests, which no engine does, and a search
for the highest rate would have no one answer. Its length scale is a factor of 30 in requests.
"""

from __future__ import annotations

import math
from dataclasses import replace

from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Device
from poolwise.model.serving.load import Replica
from poolwise.model.serving.site import serving_site
from poolwise.model.work import ServingLayout, ServingWork

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
    middle = math.sqrt(max(served.slots, 1.0))
    of_steps = (TOKEN, middle) if work.targets else (SATURATED, served.slots)

    def slowness(figure: str, in_flight: float) -> float:
        residual = calibration.residual(figure)
        if residual is None or math.isinf(in_flight):
            return 1.0
        return residual.at(serving_site(work, layout, device, served, in_flight)).factor

    return replace(
        served,
        slowness=slowness(*of_steps),
        first_token_slowness=slowness(FIRST_TOKEN, middle),
    )
