"""Fields that every workload has."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from poolwise.api.base import ApiModel
from poolwise.api.markers import Rule
from poolwise.api.names import DnsName
from poolwise.api.placement import Placement
from poolwise.api.run import Run

PriorityClassName = Annotated[
    DnsName,
    Rule("!self.startsWith('system-')", "must not be a class of the system (system-...)"),
]


class WorkloadSpec(ApiModel):
    """What a TrainingJob and an InferenceService have in common."""

    placement: Placement = Field(default_factory=Placement)
    """Which pools may be used. Example: `{pools: [h100-ib]}`."""
    run: Run = Field(default_factory=Run)
    """What runs in each pod. Example: `{image: "ghcr.io/you/train:1.4"}`."""
    mode: Literal["Run", "Plan"] = "Run"
    """Plan decides and reports, and creates nothing. Example: `Run`."""
    priority_class_name: PriorityClassName = ""
    """PriorityClass of the pods; higher ones are placed first. Example: `research`."""
