"""What the joint planner answers: a decision for each workload, and a price for each pool."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from poolwise.plan.joint.problem import Option, Reservation, Share, Workload
from poolwise.plan.joint.rooms import Hold
from poolwise.plan.wording import duration, plural


class Act(enum.StrEnum):
    """What is done with a workload."""

    START = "Start"
    STAY = "Stay"
    """It runs, and goes on where it is."""
    MOVE = "Move"
    WAIT = "Wait"
    REFUSE = "Refuse"
    """Nothing that is there can ever run it within its limits."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One workload's."""

    key: str
    act: Act
    option: Option | None
    """Where it runs; while waiting, what it waits for; refused, the nearest thing."""
    reason: str
    """One or two sentences with numbers."""
    nodes: Mapping[str, int] = field(default_factory=dict)
    """Pods by node; empty when it waits or is refused."""
    value: float = 0.0
    """What it adds to the objective."""
    starts: float | None = None
    """When a waiting workload may start; None where nobody can tell."""
    because: str = ""
    """Clause: why not where it would be best by itself, or (waiting) why not on what is free;
    empty where neither is so."""


@dataclass(frozen=True, slots=True)
class ShadowPrice:
    """What the use of a pool costs everybody else."""

    pool: str
    delay: float
    """Seconds by which one accelerator-second here delays waiting workloads, summed by weight."""
    per_hour: float
    """The same in money, per accelerator."""
    reason: str


@dataclass(frozen=True, slots=True)
class Preemption:
    """Runs that stop for one workload."""

    key: str
    """Of the workload."""
    option: Option
    victims: tuple[Workload, ...]
    lost_accelerator_seconds: float

    def reason(self, victim: Workload) -> str:
        """What the victim is told."""
        running = victim.running
        assert running is not None, "only what runs is stopped"
        return (
            f"stopped for {self.key}, which has a higher priority and needs"
            f" {self.option.accelerators} accelerators of {self.option.pool};"
            f" loses about {duration(running.restart_seconds)} of"
            f" {plural(running.option.accelerators, 'accelerator')}"
        )


@dataclass(frozen=True, slots=True)
class JointPlan:
    """One pass."""

    decisions: tuple[Decision, ...]
    """For every workload, by key."""
    prices: tuple[ShadowPrice, ...]
    """For every pool, in the order of the problem."""
    reservations: tuple[Reservation, ...]
    objective: float
    """Sum of the values of what starts or moves."""
    solver: str
    """``greedy``, ``milp``, or ``milp, stopped at its limit``."""
    shares: Mapping[str, Share]
    """By pool: what an accelerator-second takes of the whole cluster's time (:mod:`.pricing`)."""
    holds: Mapping[str, tuple[Hold, ...]]
    """By pool: what is kept for gangs that wait."""
    preemptions: tuple[Preemption, ...]
    """What is stopped for others."""
    is_as_queued: bool
    """Whether the queue in its order starts the same, so that others wait for what they were told
    of; False where two exchanged their pools, or the optimiser found better."""
