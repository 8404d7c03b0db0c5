"""What the planner is told of run times in a replay, and the shapes that a gang may have."""

from __future__ import annotations

from typing import Protocol

from poolwise.model.prediction import Interval
from poolwise.plan.joint.problem import Option
from poolwise.sim.fleet import Placement, Pool
from poolwise.sim.jobs import Job, Run


class Engine(Protocol):
    """What is believed of run times."""

    def options(self, job: Job, left: float) -> tuple[Option, ...]:
        """Ways to run what is left of a job (a share of its work)."""
        ...

    def expected_seconds(self, job: Job, placement: Placement) -> float:
        """Of the whole job, at a place where it runs."""
        ...

    def observe(self, run: Run, now_seconds: float) -> None:
        """A run has been watched for long enough."""
        ...


def shape(pool: Pool, accelerators: int) -> tuple[int, int] | None:
    """Pods and accelerators of each, as the operator divides a gang: one pod per node, as large as
    divides it (:func:`poolwise.plan.candidates.training.answers.gang_of`); None: too large."""
    if accelerators > pool.accelerators:
        return None
    size = next(n for n in range(max(pool.nodes), 0, -1) if accelerators % n == 0)
    return accelerators // size, size


def exactly(value: float) -> Interval:
    """Without any doubt."""
    return Interval(value, value, value)
