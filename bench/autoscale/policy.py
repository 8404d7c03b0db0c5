"""What a replay shows to a policy, and what it asks of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from poolwise.plan.signals.sample import Sample


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """What Kubernetes tells of one replica."""

    name: str
    is_ready: bool
    is_draining: bool
    """It takes nothing new and leaves when it is empty."""
    requested_at_seconds: float
    ready_at_seconds: float | None
    """None while it starts."""


@dataclass(frozen=True, slots=True)
class View:
    """All that a policy may know at one moment."""

    now_seconds: float
    replicas: tuple[ReplicaView, ...]
    """Draining ones included."""
    samples: Mapping[str, Sample]
    """Newest scrape of each replica that ever answered one and still exists; a missed scrape
    leaves the one before, whose time tells its age. Gauges carry the replay's noise."""
    start_delay_seconds: float
    """What a start usually takes; everybody knows it."""


class Policy(Protocol):
    """One law of scaling; it may keep what it wants from call to call."""

    interval_seconds: float
    """How often it is asked."""

    def desired(self, view: View) -> int:
        """Replicas wanted now, those that start included and those that drain not.

        The replay clamps it to its bounds, requests what is missing and drains what is too much.
        """
        ...
