"""Where a service's figure is predicted, as far as its residual may depend on it."""

from __future__ import annotations

import math

from poolwise.model.hardware import Device
from poolwise.model.serving.load import Replica, decode_step
from poolwise.model.site import Site
from poolwise.model.transformer import parameters
from poolwise.model.work import ServingLayout, ServingWork

LABELS = ("model", "accelerator", "family", "engine", "weight_format")
COORDINATES = (
    "in_flight",
    "in_flight_per_group",
    "input_tokens",
    "output_tokens",
    "tensor",
    "data",
    "expert",
    "pipeline",
    "software_year",
    "parameters",
    "active_parameters",
)
"""Natural logarithms, but for the year."""
SHARES = ("memory_share", "compute_share", "link_share", "fixed_share")
"""Of a step without prompts, as the formulas have it."""
NEWEST_SOFTWARE_YEAR = 2026.5
"""Of the measured runs, for a service whose engine has no date."""


def serving_site(
    work: ServingWork, layout: ServingLayout, device: Device, served: Replica, in_flight: float
) -> Site:
    """Of one replica with so many requests in flight; those beyond its slots wait."""
    count = parameters(work.model)
    sizes = (
        in_flight,
        in_flight / layout.data,
        work.input_tokens.p50,
        work.output_tokens.p50,
        layout.tensor,
        layout.data,
        layout.expert,
        layout.pipeline,
    )
    return Site(
        (work.model.name, device.name, device.family, work.engine, layout.weight_format),
        (
            *(math.log(max(each, 1.0)) for each in sizes),
            work.software_year or NEWEST_SOFTWARE_YEAR,
            math.log(max(count.total, 1.0)),
            math.log(max(count.active, 1.0)),
        ),
        decode_step(served, min(in_flight, max(served.slots, 1.0))).shares,
    )
