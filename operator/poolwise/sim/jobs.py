"""Jobs, their runs, and what a policy answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from poolwise.sim.fleet import Placement, Pool, Room


@dataclass(frozen=True, slots=True)
class Job:
    """A gang that runs whole, from start to end."""

    name: str
    arrival_seconds: float
    accelerators: int
    kind: str
    """What recurs: jobs of one kind differ only in size and length."""
    work: float
    """In the units of the truth (steps)."""
    tenant: str = ""


Truth = Callable[[Job, Placement], float]
"""Seconds of the whole job there; infinite where it cannot run."""


@dataclass(frozen=True, slots=True)
class Run:
    """A job that runs."""

    job: Job
    placement: Placement
    started_seconds: float
    ready_seconds: float
    """When it gets on again: the start, or later where it was restarted."""
    done: float
    """Share of its work that was done at ``started_seconds``."""
    whole_seconds: float
    """Of all its work, here."""

    def done_at(self, now_seconds: float) -> float:
        """Share of its work."""
        return min(1.0, self.done + max(0.0, now_seconds - self.ready_seconds) / self.whole_seconds)

    @property
    def ends_seconds(self) -> float:
        """When, if nothing stops it."""
        return self.ready_seconds + (1.0 - self.done) * self.whole_seconds


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that waits for a place."""

    job: Job
    done: float = 0.0
    """Share of its work, where it was stopped."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a policy sees. ``room`` is its own to change."""

    now_seconds: float
    pools: Sequence[Pool]
    waiting: Sequence[Waiting]
    """In order of arrival."""
    running: Mapping[str, Run]
    """By name of the job, in order of start."""
    room: Room


@dataclass(frozen=True, slots=True)
class Moves:
    """What a policy answers: stops first, then starts."""

    starts: Sequence[tuple[str, Placement]] = ()
    stops: Sequence[str] = ()
    wake_seconds: float | None = None
    """When to be asked again, at the latest; None: at the next arrival or end."""


class Policy(Protocol):
    """Places jobs; may remember."""

    def __call__(self, scene: Scene) -> Moves:
        """Asked at every arrival and end, and when it wished."""
        ...
