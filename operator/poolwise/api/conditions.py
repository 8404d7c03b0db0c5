"""Conditions, as the Kubernetes API conventions and kstatus have them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from poolwise.api.base import ApiModel
from poolwise.api.markers import list_map


class Condition(ApiModel):
    """One thing that is so, is not so, or is not known, and since when."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    """What is judged. Example: `Placed`."""
    status: Literal["True", "False", "Unknown"]
    """Whether it is so. Example: `"True"`."""
    observed_generation: int | None = Field(None, ge=0)
    """`metadata.generation` that was judged. Example: `3`."""
    last_transition_time: datetime
    """Since when the status is as it is. Example: `"2026-11-02T10:00:00Z"`."""
    reason: Annotated[str, Field(min_length=1, max_length=1024)]
    """A CamelCase word for programs. Example: `InsufficientCapacity`."""
    message: Annotated[str, Field(max_length=32768)] = ""
    """A sentence for people, with numbers. Example: `needs 64, 48 are free`."""


Conditions = Annotated[tuple[Condition, ...], Field(max_length=24), list_map("type")]
