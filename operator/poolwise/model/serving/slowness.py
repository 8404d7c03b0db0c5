"""How much longer than the formulas a replica's times are, as measured runs alike tell.

One factor for all loads, that of the geometric middle between one request and all slots: were it to
grow with the load, a fuller replica would serve fewer requests, which no engine does, and a search
for the highest rate would have no one answer. Its length scale is a factor of 30 in requests.
"""

from __future__ import annotations

import math

from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Device
from poolwise.model.serving.site import serving_site
from poolwise.model.work import ServingLayout, ServingWork

FIRST_TOKEN, TOKEN, SATURATED = "ttft", "tpot", "offline_throughput"
"""Residuals: of times to the first token, between tokens, and of all work at saturation."""


def step_slowness(
    work: ServingWork, layout: ServingLayout, device: Device, slots: float, calibration: Calibration
) -> float:
    """Of steps. What a service without targets is run for is throughput."""
    figure, in_flight = (TOKEN, math.sqrt(max(slots, 1.0))) if work.targets else (SATURATED, slots)
    return _slowness(figure, work, layout, device, in_flight, calibration)


def first_token_slowness(
    work: ServingWork, layout: ServingLayout, device: Device, slots: float, calibration: Calibration
) -> float:
    """Of the time to the first token."""
    in_flight = math.sqrt(max(slots, 1.0))
    return _slowness(FIRST_TOKEN, work, layout, device, in_flight, calibration)


def _slowness(
    figure: str,
    work: ServingWork,
    layout: ServingLayout,
    device: Device,
    in_flight: float,
    calibration: Calibration,
) -> float:
    residual = calibration.residual(figure)
    if residual is None or math.isinf(in_flight):
        return 1.0
    return residual.at(serving_site(work, layout, device, in_flight)).factor
