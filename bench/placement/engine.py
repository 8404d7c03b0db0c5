"""What the planner is told of run times in a replay, and the shapes that a gang may have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

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


def shapes(pool: Pool, accelerators: int) -> Iterator[tuple[int, int, bool, bool]]:
    """Pods, accelerators of each, one per node, packed: on the fewest nodes, and anywhere."""
    largest = max(pool.nodes)
    if accelerators <= pool.accelerators:
        pods = -(-accelerators // largest)
        if pods * min(accelerators, largest) == accelerators:
            yield pods, accelerators // pods, True, True
        if accelerators > 1:
            yield accelerators, 1, False, False
