"""What a replay came to, in the figures that schedulers are compared by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from poolwise.sim.jobs import Job


@dataclass(frozen=True, slots=True)
class Finished:
    """One job after its end."""

    job: Job
    first_start_seconds: float
    end_seconds: float
    accelerator_seconds: float
    """Held, restarts included."""
    cost: float
    stops: int

    @property
    def completion_seconds(self) -> float:
        """From arrival to end (JCT)."""
        return self.end_seconds - self.job.arrival_seconds

    @property
    def wait_seconds(self) -> float:
        """From arrival to the first start."""
        return self.first_start_seconds - self.job.arrival_seconds


@dataclass(frozen=True)
class Outcome:
    """Of all jobs."""

    finished: tuple[Finished, ...]
    accelerators: int
    """Of the whole fleet."""

    @cached_property
    def _completions(self) -> list[float]:
        return sorted(each.completion_seconds for each in self.finished)

    @property
    def mean_completion_seconds(self) -> float:
        """Mean JCT."""
        return math.fsum(self._completions) / len(self._completions)

    def completion_seconds(self, percentile: float) -> float:
        """JCT that ``percentile`` % of the jobs do not exceed."""
        return nearest_rank(self._completions, percentile)

    def wait_seconds(self, percentile: float) -> float:
        """Wait that ``percentile`` % of the jobs do not exceed."""
        return nearest_rank(sorted(each.wait_seconds for each in self.finished), percentile)

    @property
    def makespan_seconds(self) -> float:
        """From the first arrival to the last end."""
        return max(each.end_seconds for each in self.finished) - self._begin_seconds

    @property
    def accelerator_hours(self) -> float:
        """Held by all jobs together."""
        return math.fsum(each.accelerator_seconds for each in self.finished) / 3600.0

    @property
    def cost(self) -> float:
        """Of what jobs held."""
        return math.fsum(each.cost for each in self.finished)

    @property
    def allocation_percent(self) -> float:
        """Share of the fleet's accelerators that jobs held from the first arrival to the last end.

        A long tail in which a few jobs run alone lowers it.
        """
        whole = self.makespan_seconds * self.accelerators / 3600.0
        return 100.0 * self.accelerator_hours / whole if whole else 0.0

    @property
    def stops(self) -> int:
        """How often a running job was stopped."""
        return sum(each.stops for each in self.finished)

    @property
    def _begin_seconds(self) -> float:
        return min(each.job.arrival_seconds for each in self.finished)


def nearest_rank(ordered: Sequence[float], percentile: float) -> float:
    """The least value that ``percentile`` % of an ascending series do not exceed.

    >>> nearest_rank([1.0, 2.0, 3.0, 4.0], 50)
    2.0
    """
    rank = math.ceil(len(ordered) * percentile / 100.0)
    return ordered[max(rank, 1) - 1]
