"""The shape of a workload that needs least memory, told of where not even that one fits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from poolwise.model.prediction import Memory
from poolwise.model.work import ServingLayout, TrainingLayout
from poolwise.plan.decision import Candidate
from poolwise.plan.pool import Pool
from poolwise.plan.wording import GIB, apart


@dataclass(frozen=True, slots=True)
class Smallest:
    """What it needs of one accelerator, and what that has."""

    layout: TrainingLayout | ServingLayout
    memory: Memory

    def shown(self, candidate: Candidate) -> Candidate:
        """The candidate that it rules out, with the shape that the reason is about."""
        return replace(candidate, count=self.layout.count, layout=self.layout, memory=self.memory)


def memory_clause(memory: Memory, pool: Pool) -> str:
    """What is needed and what there is, in one clause."""
    needed, usable = apart(memory.needed_bytes / GIB, memory.usable_bytes / GIB)
    if pool.is_cpu:
        return f"needs {needed} GiB at the smallest shape, a node has {usable} usable"
    return (
        f"needs {needed} GiB per accelerator at the smallest shape,"
        f" {pool.accelerator} has {usable} usable"
    )
