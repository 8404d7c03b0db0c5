"""How a training run may be laid over a number of accelerators, and which way is fastest.

Parallel sizes are enumerated under what the user fixed and what divides; for each, memory decides
the micro-batch and how much is recomputed; the predicted step time decides between them. The
search is bounded by what divides, so it takes about as long for 8 accelerators as for 4,096.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import attrgetter, itemgetter

from poolwise.model.collectives import Links
from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Machine
from poolwise.model.prediction import TrainingPrediction
from poolwise.model.training.counts import counts
from poolwise.model.training.layer import Busy, pace, timed
from poolwise.model.training.memory import training_memory, usable_bytes
from poolwise.model.training.shard import Shard, shard, with_micro_batch
from poolwise.model.training.step import (
    Alone,
    alone,
    fed_seconds,
    held_up_seconds,
    predict_training,
)
from poolwise.model.work import Recompute, TrainingLayout, TrainingWork
from poolwise.plan.candidates.smallest import Smallest
from poolwise.plan.candidates.training.divisions import (
    divisions_of,
    micro_batches,
    why_indivisible,
)
from poolwise.plan.candidates.training.needs import RECOMPUTE, Needs, with_batch
from poolwise.plan.memo import Page
from poolwise.plan.requests.request import FixedLayout
from poolwise.plan.wording import significant

REFINED = 3
"""Best parallel sizes whose smaller micro-batches are tried too."""
CLEARLY_FASTER = 0.95
"""Factor on the time of the best of these, below which a pipeline that was none of them is taken:
for less nobody runs more stages."""
SURELY_SLOWER = 1.01
"""Factor on a time beyond which its three digits are larger."""

_FIRST = itemgetter(0)
_SIZES = attrgetter(
    "data", "tensor", "pipeline", "expert", "context", "micro_batch_size", "interleave"
)
"""Of a layout: what sets a device's share of the work."""
_RANKS = attrgetter("data", "tensor", "pipeline", "expert", "context")
"""Of these, all but the batch."""
_BATCH = attrgetter("tensor", "pipeline", "expert", "context", "micro_batch_size")
"""What of them sets its share of one micro-batch."""
_DIVISION = attrgetter(
    "data", "tensor", "pipeline", "expert", "context", "interleave", "zero_stage"
)
"""All but the batch and what is recomputed."""


@dataclass(frozen=True, slots=True)
class TrainingShape:
    """A layout that fits, with what it would reach."""

    layout: TrainingLayout
    prediction: TrainingPrediction


@dataclass(slots=True)  # not frozen: searches make thousands, and freezing takes longer
class _Timed:
    layout: TrainingLayout
    step_seconds: float


_Ranked = tuple[float, TrainingLayout, Alone]
"""Seconds that a device alone takes for a layout, and what they are made of."""


@dataclass(frozen=True, slots=True)
class NoTrainingShape:
    """Why there is none: not even the smallest layout fits, or what does not divide."""

    smallest: Smallest | None
    problem: str


@dataclass(frozen=True, slots=True)
class TrainingSearch:
    """The search for one run on one machine."""

    work: TrainingWork
    fixed: FixedLayout
    machine: Machine
    calibration: Calibration
    shared: Page = field(default_factory=Page)
    """What holds for the run on every accelerator."""
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
        refined = [each for leader in leaders for each in self._smaller_batches(leader.layout)]
        best = min([*leaders, *refined], key=_speed_then_simplicity)
        return min([best, *self._deeper(fitting, best)], key=_speed_then_simplicity).layout

    def _deeper(self, fitting: list[_Ranked], best: _Timed) -> Iterator[_Timed]:
        """Pipelines that lead only with smaller micro-batches, and then clearly."""
        enough = CLEARLY_FASTER * best.step_seconds
        for _, layout, own in fitting:
            if layout.pipeline > 1 and own.unfilled_seconds < enough:
                smaller = self._smaller_batches(layout)
                yield from (each for each in smaller if each.step_seconds < enough)

    def rechosen(self, layout: TrainingLayout) -> float:
        """Step time of the same parallel sizes with micro-batch and recomputation chosen anew."""
        timed = list(self._fitting(layout))
        refined = [each for larger in timed for each in self._smaller_batches(larger.layout)]
        return min((each.step_seconds for each in [*timed, *refined]), default=math.inf)

    def told(self, layout: TrainingLayout) -> TrainingPrediction:
        """Everything about one layout."""
        known = self._alone(layout)
        return predict_training(self.work, layout, self.machine, self.calibration, known)

    def _fitting_over(self, count: int) -> list[_Ranked]:
        """All layouts that fit, and what a device alone takes for each: the fastest first."""
        return self.alone.get(self._linked_count(count), lambda: self._ranked(count))

    def _ranked(self, count: int) -> list[_Ranked]:
        found = [
            ((own := self._alone(layout)).seconds, layout, own)
            for layout in self._layouts_that_fit(count)
        ]
        return sorted(found, key=_FIRST)

    def _layouts_that_fit(self, count: int) -> list[TrainingLayout]:
        """The same on every device with as much memory."""
        device = self.machine.device
        return self.shared.get(
            ("fitting", device.is_cpu, usable_bytes(device), *self._linked_count(count)),
            lambda: list(chain.from_iterable(map(self.sizes_that_fit, self._divisions(count)))),
        )

    def _divisions(self, count: int) -> list[TrainingLayout]:
        """Of so many accelerators, under what the links allow."""
        link = self.machine.interconnect
        return self.shared.get(
            self._linked_count(count),
            lambda: list(divisions_of(count, self.work, self.fixed, link)),
        )

    def _leaders(self, ranked: list[_Ranked]) -> list[_Timed]:
        """The best few. Those that a device alone would take longer for are not timed, and those
        that surely take longer not compared."""
        found: list[tuple[tuple[float, ...], _Timed]] = []
        for seconds, layout, own in ranked:
            last = found[-1][1].step_seconds if len(found) == REFINED else math.inf
            if seconds > last * SURELY_SLOWER:
                break
            timed = _Timed(layout, self.step_seconds(layout, own))
            if timed.step_seconds > last * SURELY_SLOWER:
                continue
            found = sorted([*found, (_speed_then_simplicity(timed), timed)], key=_FIRST)[:REFINED]
        return [timed for _, timed in found]

    def step_seconds(self, layout: TrainingLayout, own: Alone | None = None) -> float:
        """Time of one layout; who knows the device's own part saves looking for it."""
        question = (*_SIZES(layout), layout.recompute, _sent(layout))
        fed = self.linked.get(question, lambda: self._fed_seconds(layout, own))
        return held_up_seconds(fed, self.work, layout.count, self.machine)

    def _fed_seconds(self, layout: TrainingLayout, own: Alone | None) -> float:
        links = self.linked.get("links", lambda: Links(self.machine, self.calibration))
        return fed_seconds(self.work, layout, own or self._alone(layout), links)

    def _timed(self, layout: TrainingLayout) -> _Timed:
        return _Timed(layout, self.step_seconds(layout))

    def _alone(self, layout: TrainingLayout) -> Alone:
        """ZeRO's stages beyond the first change what is sent and kept, not what is done."""
        question = (*_SIZES(layout), layout.recompute, layout.zero_stage > 0)
        return self.alone.get(question, lambda: self._new_alone(layout))

    def _new_alone(self, layout: TrainingLayout) -> Alone:
        share, question = self._share(layout), ("once", *_BATCH(layout), layout.recompute)
        once = self.alone.get(question, lambda: self._once(layout, share, question))
        return alone(self.work, layout, self.machine, self.calibration, share, once)

    def _once(self, layout: TrainingLayout, share: Shard, question: Hashable) -> Busy:
        """One micro-batch: counted once for all accelerators, and timed on this one."""
        work, device = self.work, self.machine.device
        counted = self.shared.get(question, lambda: counts(work, layout, share))
        reached = self.alone.get("pace", lambda: pace(work, device, self.calibration))
        return timed(counted, reached)

    def _share(self, layout: TrainingLayout) -> Shard:
        return self.shared.get(_SIZES(layout), lambda: self._new_share(layout))

    def _new_share(self, layout: TrainingLayout) -> Shard:
        question = ("share", *_RANKS(layout))
        of_any_batch = self.shared.get(question, lambda: shard(self.work, layout))
        return with_micro_batch(of_any_batch, self.work, layout)

    def _fitting(self, sizes: TrainingLayout) -> Iterator[_Timed]:
        return map(self._timed, self.sizes_that_fit(sizes))

    def sizes_that_fit(self, sizes: TrainingLayout) -> list[TrainingLayout]:
        """For each degree of recomputation, the largest micro-batch that fits."""
        return self._needs(sizes).fitting(usable_bytes(self.machine.device))

    def _needs(self, sizes: TrainingLayout) -> Needs:
        return self.shared.get(
            (*_DIVISION(sizes), self.machine.device.is_cpu),
            lambda: Needs(self.work, self.fixed, sizes, self.machine, self._share(sizes)),
        )

    def _smaller_batches(self, layout: TrainingLayout) -> Iterator[_Timed]:
        """More and smaller micro-batches: slower each, but they shorten a pipeline's bubble."""
        if layout.pipeline > 1:
            for size in micro_batches(self.work, self.fixed, layout):
                if size < layout.micro_batch_size:
                    yield self._timed(with_batch(layout, layout.recompute, size))

    def _none(self, count: int) -> NoTrainingShape:
        least = self._least(count)
        if least:
            return NoTrainingShape(least, "")
        in_pod = min(count, self.machine.interconnect.accelerators_per_node)
        return NoTrainingShape(None, why_indivisible(count, in_pod, self.work, self.fixed))

    def has_room_on(self, count: int) -> bool:
        """Whether memory leaves any layout over so many accelerators; nothing is timed."""
        least = self._least(count)
        return least is not None and least.memory.most_bytes <= least.memory.usable_bytes

    def _least(self, count: int) -> Smallest | None:
        """What the smallest layout needs, beside what the device has."""
        question = ("least", self.machine.device.is_cpu, *self._linked_count(count))
        least: Smallest | None = self.shared.get(question, lambda: self._smallest(count))
        if least is None:
            return None
        usable = usable_bytes(self.machine.device)
        return replace(least, memory=replace(least.memory, usable_bytes=usable))

    def _smallest(self, count: int) -> Smallest | None:
        """The layout that needs least; all accelerators need as much."""
        recompute = self.fixed.recompute or Recompute.FULL
        every = (
            (self._needs(sizes).bytes_of(recompute, size), sizes, size)
            for sizes in self._divisions(count)
            for size in _ends(micro_batches(self.work, self.fixed, sizes))
        )
        least = min(every, key=_FIRST, default=None)
        if least is None:
            return None
        layout = with_batch(least[1], recompute, least[2])
        memory = training_memory(self.work, layout, self.machine, self._share(layout))
        return Smallest(layout, memory)

    def _linked_count(self, count: int) -> tuple[int, int, int]:
        """So many accelerators, with what of their links says how they may be divided."""
        link = self.machine.interconnect
        return count, link.accelerators_per_node, link.domain_accelerators


def _ends(sizes: list[int]) -> set[int]:
    """The least keeps fewest activations, and the whole batch at once no sum of gradients."""
    return {sizes[0], sizes[-1]}


def _sent(layout: TrainingLayout) -> int:
    """ZeRO's stages by what they send: the second only keeps less than the first."""
    return 1 if layout.zero_stage == 2 else layout.zero_stage


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
        -RECOMPUTE.index(layout.recompute),
        -layout.micro_batch_size,
    )
