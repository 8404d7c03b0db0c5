"""What the controller sees at one moment."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from poolwise.plan.signals.sample import Sample


class Phase(enum.StrEnum):
    """Life of a replica."""

    STARTING = "Starting"
    READY = "Ready"
    DRAINING = "Draining"
    """Takes nothing new, and ends when it is empty."""


@dataclass(frozen=True, slots=True)
class ReplicaSeen:
    """What Kubernetes tells of one replica."""

    name: str
    pool: str
    phase: Phase
    requested_at_seconds: float
    ready_at_seconds: float | None = None
    """Since when; of one that starts, when it is expected. None: as its pool's starts usually."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at a service."""

    now_seconds: float
    replicas: tuple[ReplicaSeen, ...]
    samples: Mapping[str, Sample]
    """The newest of each replica that answered, by name of the replica."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Replicas whose metrics cannot be used, and why: timed out, no such series, too large, in the
    future. One that is in neither was not read yet."""
    expected_requests_per_second: float | None = None
    """When a start would end, from who knows it: a replay, for what a forecast costs. None: to be
    forecast, as the operator does."""
    held_requests: float = 0.0
    """That wait in front of the service, in a gateway's queue."""
