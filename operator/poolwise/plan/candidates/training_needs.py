"""What the layouts of a run need of memory, whatever the accelerator, and which of them fit one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from poolwise.model.hardware import Machine
from poolwise.model.training.memory import peak_bytes, training_memory
from poolwise.model.training.shard import Shard, shard
from poolwise.model.work import Recompute, TrainingLayout, TrainingWork
from poolwise.plan.candidates.training_divisions import micro_batches
from poolwise.plan.requests.request import FixedLayout

RECOMPUTE = (Recompute.FULL, Recompute.SELECTIVE, Recompute.NONE)
"""Least memory first."""


@dataclass(slots=True)  # not frozen: searches make thousands, and freezing takes longer
class _Need:
    layout: TrainingLayout
    needed_bytes: float
    peak_bytes: float
    """Upper end of its range, which decides: a run that starts only with luck is none."""
    activations_bytes: float

    def bound(self, usable_bytes: float) -> float:
        """Samples of a micro-batch that there is room for at most, from those of this one."""
        if self.activations_bytes <= 0:
            return math.inf
        spare = (usable_bytes - self.needed_bytes) / self.activations_bytes
        return self.layout.micro_batch_size * (1 + spare)


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
    ) -> None:
        self._work, self._sizes, self._machine = work, sizes, machine
        self._options = micro_batches(work, fixed, sizes)
        self._degrees = [each for each in RECOMPUTE if fixed.recompute in (None, each)]
        self._shares: dict[int, Shard] = {}
        self._known: dict[tuple[Recompute, int], _Need] = {}

    def fitting(self, usable_bytes: float) -> list[TrainingLayout]:
        """For each degree of recomputation, the largest micro-batch that fits.

        Recomputing more at the same micro-batch only costs time, so it is left out.
        """
        whole = self._need(self._degrees[-1], self._options[-1])
        if whole.peak_bytes <= usable_bytes:
            return [whole.layout]
        found = {each.micro_batch_size: each for each in self._largest(usable_bytes)}
        return list(found.values())

    def _largest(self, usable_bytes: float) -> Iterator[TrainingLayout]:
        for recompute in self._degrees:
            least = self._need(recompute, self._options[0])
            if least.peak_bytes > usable_bytes:
                return
            yield self._largest_batch(least, usable_bytes)

    def _largest_batch(self, least: _Need, usable_bytes: float) -> TrainingLayout:
        bound = least.bound(usable_bytes)
        for size in reversed(self._options[1:]):
            if size <= bound:
                larger = self._need(least.layout.recompute, size)
                if larger.peak_bytes <= usable_bytes:
                    return larger.layout
        return least.layout

    def _need(self, recompute: Recompute, micro_batch_size: int) -> _Need:
        found = self._known.get((recompute, micro_batch_size))
        if found is None:
            found = self._counted(with_batch(self._sizes, recompute, micro_batch_size))
            self._known[recompute, micro_batch_size] = found
        return found

    def _counted(self, layout: TrainingLayout) -> _Need:
        size = layout.micro_batch_size
        if size not in self._shares:
            self._shares[size] = shard(self._work, layout)
        memory = training_memory(self._work, layout, self._machine, self._shares[size])
        needed = memory.needed_bytes
        return _Need(layout, needed, peak_bytes(memory).high, memory.activations_bytes)


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
