"""What the layouts of a run need of memory, whatever the accelerator, and which of them fit one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from poolwise.model.hardware import Machine
from poolwise.model.training.memory import Footprint, needed_at_most_bytes
from poolwise.model.training.shard import Shard
from poolwise.model.work import Recompute, TrainingLayout, TrainingWork
from poolwise.plan.candidates.training.divisions import micro_batches
from poolwise.plan.requests.request import FixedLayout

RECOMPUTE = (Recompute.FULL, Recompute.SELECTIVE, Recompute.NONE)
"""Least memory first."""


_Need = tuple[float, float]
"""Bytes in all, and of activations alone. A bare tuple: searches keep thousands, and the garbage
collector walks everything else."""


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
        share: Shard,
    ) -> None:
        self._sizes = sizes
        self._footprint = Footprint(work, sizes, machine, share)
        self._options = micro_batches(work, fixed, sizes)
        self._degrees = [each for each in RECOMPUTE if fixed.recompute in (None, each)]
        self._known: dict[Recompute, dict[int, _Need]] = {each: {} for each in self._degrees}

    def fitting(self, usable_bytes: float) -> list[TrainingLayout]:
        """For each degree of recomputation, the largest micro-batch that fits.

        Recomputing more at the same micro-batch only costs time, so it is left out.
        """
        most_bytes = needed_at_most_bytes(usable_bytes)
        recompute, largest = self._degrees[-1], self._options[-1]
        if self._need(recompute, largest)[0] <= most_bytes:
            return [with_batch(self._sizes, recompute, largest)]
        found = {size: recompute for recompute, size in self._largest(most_bytes)}
        return [with_batch(self._sizes, recompute, size) for size, recompute in found.items()]

    def _largest(self, most_bytes: float) -> Iterator[tuple[Recompute, int]]:
        for recompute in self._degrees:
            size = self._largest_of(recompute, most_bytes)
            if size is None:
                return
            yield recompute, size

    def _largest_of(self, recompute: Recompute, most_bytes: float) -> int | None:
        """The whole batch at once is asked first: it adds no gradients up, which takes half their
        bytes, and may fit where less of it does not."""
        least, whole = self._options[0], self._options[-1]
        if self._need(recompute, whole)[0] <= most_bytes:
            return whole
        if self._need(recompute, least)[0] > most_bytes:
            return None
        sizes = reversed(self._options[1 : self._end(recompute, most_bytes)])
        fitting = (size for size in sizes if self._need(recompute, size)[0] <= most_bytes)
        return next(fitting, least)

    def _end(self, recompute: Recompute, most_bytes: float) -> int:
        """Of the sizes that there is room for at most, by the activations of the least."""
        least = self._options[0]
        needed_bytes, activations_bytes = self._need(recompute, least)
        if activations_bytes <= 0:
            return len(self._options)
        more = (most_bytes - needed_bytes) / activations_bytes
        return bisect_right(self._options, least * (1 + more))

    def bytes_of(self, recompute: Recompute, micro_batch_size: int) -> float:
        """In all."""
        return self._need(recompute, micro_batch_size)[0]

    def _need(self, recompute: Recompute, micro_batch_size: int) -> _Need:
        known = self._known[recompute]
        found = known.get(micro_batch_size)
        if found is None:
            found = known[micro_batch_size] = self._footprint.needed_bytes(
                recompute, micro_batch_size
            )
        return found


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
