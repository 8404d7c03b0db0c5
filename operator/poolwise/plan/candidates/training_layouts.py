"""How a training run may be laid over a number of accelerators, and which way is fastest.

Parallel sizes are enumerated under what the user fixed and what divides; for each, memory decides
the micro-batch and how much is recomputed; the predicted step time decides between them. The
search is bounded by what divides, so it takes about as long for 8 accelerators as for 4,096.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Interconnect, Machine
from poolwise.model.prediction import Memory, TrainingPrediction
from poolwise.model.training.memory import peak_bytes, training_memory
from poolwise.model.training.step import Alone, alone, predict_training, step_seconds
from poolwise.model.work import Recompute, TrainingLayout, TrainingWork, Transformer
from poolwise.plan.candidates.memo import Page
from poolwise.plan.requests.request import FixedLayout
from poolwise.plan.wording import significant

LEAST_CONTEXT_TOKENS = 8192
"""Tokens that each context-parallel rank keeps at least. Llama 3 trained 8,192 tokens without
context parallelism and 131,072 with 16 ranks (arXiv 2407.21783, table 4)."""
MOST_IDLE_STAGES = 0.1
"""Share of the stages' time that an uneven division of layers may waste. Llama 3 405B ran 126
layers in 16 stages, which wastes 1.6 % (same table)."""
REFINED = 3
"""Best parallel sizes whose smaller micro-batches are tried too: only the best can change."""
SURELY_SLOWER = 1.01
"""Factor on a time beyond which its three digits are larger."""

_RECOMPUTE = (Recompute.FULL, Recompute.SELECTIVE, Recompute.NONE)
"""Least memory first."""


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
    fits: Page = field(default_factory=Page)
    """What was found to fit this device, whatever its links."""
    parts: Page = field(default_factory=Page)
    """What layouts take of this device and host with these constants, whatever its links."""

    def best(self, count: int) -> TrainingShape | NoTrainingShape:
        """The fastest layout over exactly ``count`` accelerators."""
        divisions = list(divisions_of(count, self.work, self.fixed, self.machine.interconnect))
        fitting = [layout for sizes in divisions for layout in self.sizes_that_fit(sizes)]
        if not fitting:
            return self._none(count, divisions)
        leaders = self._fastest(fitting)
        refined = [each for leader in leaders for each in self._smaller_batches(leader)]
        chosen = min([*leaders, *refined], key=_speed_then_simplicity).layout
        return TrainingShape(chosen, self.told(chosen))

    def rechosen(self, layout: TrainingLayout) -> float:
        """Step time of the same parallel sizes with micro-batch and recomputation chosen anew."""
        timed = list(self._fitting(layout))
        refined = [each for leader in timed for each in self._smaller_batches(leader)]
        return min((each.step_seconds for each in [*timed, *refined]), default=math.inf)

    def told(self, layout: TrainingLayout) -> TrainingPrediction:
        """Everything about one layout."""
        return predict_training(self.work, layout, self.machine, self.calibration)

    def _fastest(self, layouts: list[TrainingLayout]) -> list[_Timed]:
        """The best few. Those that a device alone would take longer for are not timed."""
        found: list[_Timed] = []
        for layout in sorted(layouts, key=lambda each: self._alone(each).seconds):
            last = found[-1].step_seconds if len(found) == REFINED else math.inf
            if self._alone(layout).seconds > last * SURELY_SLOWER:
                break
            found = sorted([*found, self._timed(layout)], key=_speed_then_simplicity)[:REFINED]
        return found

    def step_seconds(self, layout: TrainingLayout) -> float:
        """Time of one layout."""
        known = self._alone(layout)
        return step_seconds(self.work, layout, self.machine, self.calibration, known)

    def _timed(self, layout: TrainingLayout) -> _Timed:
        return _Timed(layout, self.step_seconds(layout))

    def _alone(self, layout: TrainingLayout) -> Alone:
        return self.parts.get(
            layout, lambda: alone(self.work, layout, self.machine, self.calibration)
        )

    def _memory(self, layout: TrainingLayout) -> Memory:
        return training_memory(self.work, layout, self.machine)

    def _fitting(self, sizes: TrainingLayout) -> Iterator[_Timed]:
        return map(self._timed, self.sizes_that_fit(sizes))

    def sizes_that_fit(self, sizes: TrainingLayout) -> list[TrainingLayout]:
        """For each degree of recomputation, the largest micro-batch that fits."""
        return self.fits.get(sizes, lambda: self._sizes_that_fit(sizes))

    def _sizes_that_fit(self, sizes: TrainingLayout) -> list[TrainingLayout]:
        """Recomputing more at the same micro-batch only costs time, so it is left out."""
        found: dict[int, TrainingLayout] = {}
        for recompute in [r for r in _RECOMPUTE if self.fixed.recompute in (None, r)]:
            largest = self._largest_batch(replace(sizes, recompute=recompute))
            if largest is None:
                break
            found[largest.micro_batch_size] = largest
        return list(found.values())

    def _largest_batch(self, sizes: TrainingLayout) -> TrainingLayout | None:
        options = micro_batches(self.work, self.fixed, sizes)
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

    def _none(self, count: int, divisions: list[TrainingLayout]) -> NoTrainingShape:
        recompute = self.fixed.recompute or Recompute.FULL
        memories = [
            self._memory(
                replace(
                    sizes,
                    recompute=recompute,
                    micro_batch_size=micro_batches(self.work, self.fixed, sizes)[0],
                )
            )
            for sizes in divisions
        ]
        if memories:
            return NoTrainingShape(min(memories, key=lambda memory: memory.needed_bytes), "")
        in_pod = min(count, self.machine.interconnect.accelerators_per_node)
        return NoTrainingShape(None, why_indivisible(count, in_pod, self.work, self.fixed))


def divisions_of(
    count: int, work: TrainingWork, fixed: FixedLayout, link: Interconnect
) -> Iterator[TrainingLayout]:
    """Every admissible data x tensor x pipeline x context = ``count`` with its ZeRO stages."""
    for tensor in _tensor_sizes(count, work, fixed, link):
        for pipeline in _pipeline_sizes(count // tensor, work, fixed):
            for context in _context_sizes(count // (tensor * pipeline), work, fixed):
                data = count // (tensor * pipeline * context)
                sizes = TrainingLayout(data, tensor, pipeline, 1, context)
                if micro_batches(work, fixed, sizes) and fixed.data in (None, data):
                    yield from _sharded(sizes, work, fixed)


def micro_batches(work: TrainingWork, fixed: FixedLayout, sizes: TrainingLayout) -> list[int]:
    """Micro-batch sizes by which the global batch divides evenly; empty when it does not."""
    per_rank, rest = divmod(work.global_batch_samples, sizes.data)
    if rest or not per_rank:
        return []
    return [size for size in divisors(per_rank) if fixed.micro_batch_size in (None, size)]


def why_indivisible(count: int, in_pod: int, work: TrainingWork, fixed: FixedLayout) -> str:
    """One clause that names the numbers which do not divide; ``in_pod`` accelerators share links
    that are fast enough for tensor parallelism."""
    given = {
        name: value
        for name in ("data", "tensor", "pipeline", "context", "expert")
        if (value := getattr(fixed, name)) is not None
    }
    if given:
        listed = ", ".join(f"{name} {value}" for name, value in given.items())
        return (
            f"the given {listed} cannot be laid over its accelerators:"
            f" {count:,} of them, {in_pod} in each pod"
        )
    return (
        f"a global batch of {work.global_batch_samples} samples does not divide over "
        f"{count} accelerators"
    )


@lru_cache(maxsize=4096)
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending."""
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return tuple(sorted({*small, *(number // d for d in small)}))


def _tensor_sizes(
    count: int, work: TrainingWork, fixed: FixedLayout, link: Interconnect
) -> list[int]:
    """Sizes that divide heads and stay where links are fast: a node, or the scale-up domain."""
    shape = work.model.shape
    heads, kv_heads = (shape.heads, shape.kv_heads) if isinstance(shape, Transformer) else (1, 1)
    domain = max(link.domain_accelerators, link.accelerators_per_node, 1)
    return [
        size
        for size in divisors(count)
        if fixed.tensor in (None, size)
        and size <= domain
        and heads % size == 0
        and (kv_heads % size == 0 or size % kv_heads == 0)
        and _nests(size, min(count, link.accelerators_per_node))
    ]


def _nests(tensor: int, node: int) -> bool:
    """Whether groups of this size end where nodes end."""
    return node % tensor == 0 or tensor % node == 0


def _pipeline_sizes(count: int, work: TrainingWork, fixed: FixedLayout) -> list[int]:
    shape = work.model.shape
    layers = shape.layers if isinstance(shape, Transformer) else 1
    if fixed.pipeline is not None:
        fits = count % fixed.pipeline == 0 and fixed.pipeline <= layers
        return [fixed.pipeline] if fits else []
    return [
        stages
        for stages in divisors(count)
        if stages <= layers
        and math.ceil(layers / stages) * stages <= layers * (1 + MOST_IDLE_STAGES)
    ]


def _context_sizes(count: int, work: TrainingWork, fixed: FixedLayout) -> list[int]:
    tokens = work.sequence_tokens or 0
    if fixed.context is not None:
        return [fixed.context] if count % fixed.context == 0 else []
    return [
        size
        for size in divisors(count)
        if size == 1 or (tokens % (2 * size) == 0 and tokens >= size * LEAST_CONTEXT_TOKENS)
    ]


def _sharded(
    sizes: TrainingLayout, work: TrainingWork, fixed: FixedLayout
) -> Iterator[TrainingLayout]:
    for expert in _expert_sizes(sizes.data, work, fixed):
        for stage in _zero_stages(sizes, fixed):
            yield replace(sizes, expert=expert, zero_stage=stage)


def _expert_sizes(data: int, work: TrainingWork, fixed: FixedLayout) -> list[int]:
    shape = work.model.shape
    experts = shape.experts.count if isinstance(shape, Transformer) and shape.experts else 1
    return [size for size in divisors(data) if experts % size == 0 and fixed.expert in (None, size)]


def _zero_stages(sizes: TrainingLayout, fixed: FixedLayout) -> Iterable[int]:
    """Stages 2 and 3 with a pipeline would gather gradients and weights for every micro-batch."""
    if fixed.zero_stage is not None:
        return (fixed.zero_stage,)
    if sizes.data * sizes.context == 1:
        return (0,)
    return (1,) if sizes.pipeline > 1 else (1, 2, 3)


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
