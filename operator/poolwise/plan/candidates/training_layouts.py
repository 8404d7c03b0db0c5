"""How a training run may be laid over a number of accelerators, and which way is fastest.

Parallel sizes are enumerated under what the user fixed and what divides; for each, memory decides
the micro-batch and how much is recomputed; the predicted step time decides between them. The
search is bounded by what divides, so it takes about as long for 8 accelerators as for 4,096.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter

from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Machine
from poolwise.model.prediction import Memory, TrainingPrediction
from poolwise.model.training.memory import peak_bytes, training_memory
from poolwise.model.training.shard import shard
from poolwise.model.training.step import (
    Alone,
    alone,
    fed_seconds,
    held_up_seconds,
    predict_training,
)
from poolwise.model.work import Recompute, TrainingLayout, TrainingWork
from poolwise.plan.candidates.memo import Page
from poolwise.plan.candidates.training_divisions import (
    divisions_of,
    micro_batches,
    why_indivisible,
)
from poolwise.plan.requests.request import FixedLayout
from poolwise.plan.wording import significant

REFINED = 3
"""Best parallel sizes whose smaller micro-batches are tried too: only the best can change."""
SURELY_SLOWER = 1.01
"""Factor on a time beyond which its three digits are larger."""

_RECOMPUTE = (Recompute.FULL, Recompute.SELECTIVE, Recompute.NONE)
"""Least memory first."""
_SIZES = attrgetter(
    "data", "tensor", "pipeline", "expert", "context", "micro_batch_size", "interleave"
)
"""Of a layout: what sets a device's share of the work."""


@dataclass(frozen=True, slots=True)
class TrainingShape:
    """A layout that fits, with what it would reach."""

    layout: TrainingLayout
    prediction: TrainingPrediction


@dataclass(frozen=True, slots=True)
class _Timed:
    layout: TrainingLayout
    step_seconds: float


@dataclass(frozen=True, slots=True)
class NoTrainingShape:
    """Why there is none: the memory of the smallest layout, or what does not divide."""

    smallest: Memory | None
    problem: str


@dataclass(frozen=True, slots=True)
class TrainingSearch:
    """The search for one run on one machine."""

    work: TrainingWork
    fixed: FixedLayout
    machine: Machine
    calibration: Calibration
    alone: Page = field(default_factory=Page)
    """What fits this device, and what it takes by itself, whatever its links."""
    linked: Page = field(default_factory=Page)
    """What layouts take over these links, whatever feeds them."""

    def best(self, count: int) -> TrainingShape | NoTrainingShape:
        """The fastest layout over exactly ``count`` accelerators, with what it would reach."""
        found = self.fastest(count)
        if isinstance(found, NoTrainingShape):
            return found
        return TrainingShape(found, self.told(found))

    def fastest(self, count: int) -> TrainingLayout | NoTrainingShape:
        """The layout alone."""
        fitting = self._fitting_over(count)
        if not fitting:
            return self._none(count)
        leaders = self._leaders(fitting)
        refined = [each for leader in leaders for each in self._smaller_batches(leader)]
        return min([*leaders, *refined], key=_speed_then_simplicity).layout

    def rechosen(self, layout: TrainingLayout) -> float:
        """Step time of the same parallel sizes with micro-batch and recomputation chosen anew."""
        timed = list(self._fitting(layout))
        refined = [each for leader in timed for each in self._smaller_batches(leader)]
        return min((each.step_seconds for each in [*timed, *refined]), default=math.inf)

    def told(self, layout: TrainingLayout) -> TrainingPrediction:
        """Everything about one layout."""
        return predict_training(self.work, layout, self.machine, self.calibration)

    def _fitting_over(self, count: int) -> list[tuple[float, TrainingLayout]]:
        """All layouts that fit, and what a device alone takes for each: the fastest first."""
        link = self.machine.interconnect
        question = (count, link.accelerators_per_node, link.domain_accelerators)
        return self.alone.get(question, lambda: self._ranked(count))

    def _ranked(self, count: int) -> list[tuple[float, TrainingLayout]]:
        found = [
            (self._alone(layout).seconds, layout)
            for sizes in self._divisions(count)
            for layout in self.sizes_that_fit(sizes)
        ]
        return sorted(found, key=itemgetter(0))

    def _divisions(self, count: int) -> Iterator[TrainingLayout]:
        return divisions_of(count, self.work, self.fixed, self.machine.interconnect)

    def _leaders(self, ranked: list[tuple[float, TrainingLayout]]) -> list[_Timed]:
        """The best few. Those that a device alone would take longer for are not timed."""
        found: list[_Timed] = []
        for seconds, layout in ranked:
            last = found[-1].step_seconds if len(found) == REFINED else math.inf
            if seconds > last * SURELY_SLOWER:
                break
            found = sorted([*found, self._timed(layout)], key=_speed_then_simplicity)[:REFINED]
        return found

    def step_seconds(self, layout: TrainingLayout) -> float:
        """Time of one layout."""
        fed = self.linked.get(layout, lambda: self._fed_seconds(layout))
        return held_up_seconds(fed, self.work, layout.count, self.machine)

    def _fed_seconds(self, layout: TrainingLayout) -> float:
        known = self._alone(layout)
        return fed_seconds(self.work, layout, self.machine, self.calibration, known)

    def _timed(self, layout: TrainingLayout) -> _Timed:
        return _Timed(layout, self.step_seconds(layout))

    def _alone(self, layout: TrainingLayout) -> Alone:
        """ZeRO's stages beyond the first change what is sent and kept, not what is done."""
        question = (*_SIZES(layout), layout.recompute, layout.zero_stage > 0)
        return self.alone.get(
            question, lambda: alone(self.work, layout, self.machine, self.calibration)
        )

    def _memory(self, layout: TrainingLayout) -> Memory:
        share = self.alone.get(_SIZES(layout), lambda: shard(self.work, layout))
        return training_memory(self.work, layout, self.machine, share)

    def _fitting(self, sizes: TrainingLayout) -> Iterator[_Timed]:
        return map(self._timed, self.sizes_that_fit(sizes))

    def sizes_that_fit(self, sizes: TrainingLayout) -> list[TrainingLayout]:
        """For each degree of recomputation, the largest micro-batch that fits."""
        return self.alone.get(sizes, lambda: self._sizes_that_fit(sizes))

    def _sizes_that_fit(self, sizes: TrainingLayout) -> list[TrainingLayout]:
        """Recomputing more at the same micro-batch only costs time, so it is left out."""
        degrees = [each for each in _RECOMPUTE if self.fixed.recompute in (None, each)]
        options = micro_batches(self.work, self.fixed, sizes)
        whole = replace(sizes, recompute=degrees[-1], micro_batch_size=options[-1])
        if surely_fits(self._memory(whole)):
            return [whole]
        found: dict[int, TrainingLayout] = {}
        for recompute in degrees:
            largest = self._largest_batch(replace(sizes, recompute=recompute), options)
            if largest is None:
                break
            found[largest.micro_batch_size] = largest
        return list(found.values())

    def _largest_batch(self, sizes: TrainingLayout, options: list[int]) -> TrainingLayout | None:
        least = replace(sizes, micro_batch_size=options[0])
        memory = self._memory(least)
        if not surely_fits(memory):
            return None
        bound = options[0] * (1 + _spare(memory))
        for size in reversed([option for option in options[1:] if option <= bound]):
            larger = replace(sizes, micro_batch_size=size)
            if surely_fits(self._memory(larger)):
                return larger
        return least

    def _smaller_batches(self, larger: _Timed) -> Iterator[_Timed]:
        """More and smaller micro-batches: slower each, but they shorten a pipeline's bubble."""
        layout = larger.layout
        if layout.pipeline > 1:
            for size in micro_batches(self.work, self.fixed, layout):
                if size < layout.micro_batch_size:
                    yield self._timed(replace(layout, micro_batch_size=size))

    def _none(self, count: int) -> NoTrainingShape:
        recompute = self.fixed.recompute or Recompute.FULL
        memories = [
            self._memory(
                replace(
                    sizes,
                    recompute=recompute,
                    micro_batch_size=micro_batches(self.work, self.fixed, sizes)[0],
                )
            )
            for sizes in self._divisions(count)
        ]
        if memories:
            return NoTrainingShape(min(memories, key=lambda memory: memory.needed_bytes), "")
        in_pod = min(count, self.machine.interconnect.accelerators_per_node)
        return NoTrainingShape(None, why_indivisible(count, in_pod, self.work, self.fixed))


def surely_fits(memory: Memory) -> bool:
    """At the upper end of its range: a run that starts only with luck is none."""
    return peak_bytes(memory).high <= memory.usable_bytes


def _spare(memory: Memory) -> float:
    """How many more activations like these there is room for, at least."""
    if memory.activations_bytes <= 0:
        return math.inf
    return (memory.usable_bytes - memory.needed_bytes) / memory.activations_bytes


def _speed_then_simplicity(timed: _Timed) -> tuple[float, ...]:
    """Step time to three digits, so that what is as fast is decided by the simpler layout."""
    layout = timed.layout
    return (
        significant(timed.step_seconds, 3),
        layout.pipeline,
        layout.context,
        layout.tensor,
        layout.expert,
        layout.zero_stage,
        -_RECOMPUTE.index(layout.recompute),
        -layout.micro_batch_size,
    )
