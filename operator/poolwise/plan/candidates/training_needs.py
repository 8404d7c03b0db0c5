"""What the layouts of a run need of memory, whatever the accelerator, and which of them fit one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from poolwise.model.hardware import Machine
from poolwise.model.training.memory import peak_bytes, training_memory
from poolwise.model.training.shard import Shard
from poolwise.model.work import Recompute, TrainingLayout, TrainingWork
from poolwise.plan.candidates.training_divisions import micro_batches
from poolwise.plan.requests.request import FixedLayout

RECOMPUTE = (Recompute.FULL, Recompute.SELECTIVE, Recompute.NONE)
"""Least memory first."""


_Need = tuple[float, float, float]
"""Needed bytes; the upper end of their range, which decides: a run that starts only with luck is
none; and those of activations. A bare tuple: searches keep thousands, and the garbage collector
walks everything else."""


class Needs:
    """Of one division into parallel sizes, for each micro-batch and degree of recomputation.

    All accelerators need as much; ``machine`` is any that has some.
    """

    def __init__(
        self,
        work: TrainingWork,
        fixed: FixedLayout,
        sizes: TrainingLayout,
        machine: Machine,
        share: Callable[[TrainingLayout], Shard],
    ) -> None:
        self._work, self._sizes, self._machine = work, sizes, machine
        self._share = share
        self._options = micro_batches(work, fixed, sizes)
        self._degrees = [each for each in RECOMPUTE if fixed.recompute in (None, each)]
        self._known: dict[Recompute, dict[int, _Need]] = {each: {} for each in self._degrees}

    def fitting(self, usable_bytes: float) -> list[TrainingLayout]:
        """For each degree of recomputation, the largest micro-batch that fits.

        Recomputing more at the same micro-batch only costs time, so it is left out.
        """
        recompute, largest = self._degrees[-1], self._options[-1]
        if self._peak_bytes(recompute, largest) <= usable_bytes:
            return [with_batch(self._sizes, recompute, largest)]
        found = {each.micro_batch_size: each for each in self._largest(usable_bytes)}
        return list(found.values())

    def _largest(self, usable_bytes: float) -> Iterator[TrainingLayout]:
        for recompute in self._degrees:
            if self._peak_bytes(recompute, self._options[0]) > usable_bytes:
                return
            size = self._largest_batch(recompute, usable_bytes)
            yield with_batch(self._sizes, recompute, size)

    def _largest_batch(self, recompute: Recompute, usable_bytes: float) -> int:
        bound = self._bound(recompute, usable_bytes)
        for size in reversed(self._options[1:]):
            if size <= bound and self._peak_bytes(recompute, size) <= usable_bytes:
                return size
        return self._options[0]

    def _bound(self, recompute: Recompute, usable_bytes: float) -> float:
        """Samples of a micro-batch that there is room for at most, from those of the least."""
        least = self._options[0]
        needed_bytes, _, activations_bytes = self._need(recompute, least)
        if activations_bytes <= 0:
            return math.inf
        return least * (1 + (usable_bytes - needed_bytes) / activations_bytes)

    def _peak_bytes(self, recompute: Recompute, micro_batch_size: int) -> float:
        return self._need(recompute, micro_batch_size)[1]

    def _need(self, recompute: Recompute, micro_batch_size: int) -> _Need:
        known = self._known[recompute]
        if micro_batch_size not in known:
            known[micro_batch_size] = self._counted(recompute, micro_batch_size)
        return known[micro_batch_size]

    def _counted(self, recompute: Recompute, micro_batch_size: int) -> _Need:
        layout = with_batch(self._sizes, recompute, micro_batch_size)
        memory = training_memory(self._work, layout, self._machine, self._share(layout))
        return memory.needed_bytes, peak_bytes(memory).high, memory.activations_bytes


def with_batch(
    sizes: TrainingLayout, recompute: Recompute, micro_batch_size: int
) -> TrainingLayout:
    """The same parallel sizes with another batch; searches make many."""
    return TrainingLayout(
        sizes.data,
        sizes.tensor,
        sizes.pipeline,
        sizes.expert,
        sizes.context,
        sizes.zero_stage,
        micro_batch_size,
        recompute,
        sizes.interleave,
    )
