"""What a placement says of the queue that its child waits in, and what Kueue says of that child."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from poolwise.plan.pool import Condition


@dataclass(frozen=True, slots=True)
class Queueing:
    """Of one child; written with its placement, so that it is rendered the same again."""

    name: str
    """LocalQueue in the job's namespace."""
    selector: Mapping[str, str] = field(default_factory=dict)
    """Labels of the ResourceFlavor that stands for the pool: Kueue tells flavors apart by nothing
    else, so that they are in the pods' node selector."""
    priority: str = ""
    """WorkloadPriorityClass; empty: the pods' PriorityClass counts."""
    is_pod_priority: bool = True
    """Whether ``priorityClassName`` is a PriorityClass too, which pods may name."""
    is_gated: bool = False
    """Whether our admission gate holds it back: its pool has no room yet, and may change."""


@dataclass(frozen=True, slots=True)
class Admission:
    """How far a child has come."""

    is_reserved: bool
    """Quota is reserved for it: from then on it holds its place, and its plan is final."""
    reason: str
    """Kueue's word for what it waits for."""
    message: str
    conditions: tuple[Condition, ...] = ()
    """Kueue's own, to be repeated."""
    is_gated: bool = False
    """Whether our admission gate is on it."""
    created: datetime | None = None
    """When the child was made."""
