"""How parallel sizes divide a number of accelerators for one training run, and the batch over them.

What is enumerated is what divides, under what the user fixed: the search over it
(:mod:`poolwise.plan.candidates.training.layouts`) takes about as long for 8 as for 4,096.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache

from poolwise.model.hardware import Interconnect
from poolwise.model.shapes import Transformer
from poolwise.model.work import Method, TrainingLayout, TrainingWork
from poolwise.plan.requests.request import FixedLayout

LEAST_CONTEXT_TOKENS = 8192
"""Tokens that each context-parallel rank keeps at least. Llama 3 trained 8,192 tokens without
context parallelism and 131,072 with 16 ranks (arXiv 2407.21783, table 4)."""
MOST_IDLE_STAGES = 0.1
"""Share of the stages' time that an uneven division of layers may waste. Llama 3 405B ran 126
layers in 16 stages, which wastes 1.6 % (same table)."""


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
    domain = max(link.domain_accelerators, link.accelerators_per_node, 1)
    return [
        size
        for size in divisors(count)
        if fixed.tensor in (None, size)
        and size <= domain
        and (shape.divides_heads(size) if isinstance(shape, Transformer) else size == 1)
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
    """Of a custom model nobody knows how it divides along a sequence."""
    tokens = work.sequence_tokens or 0
    if not isinstance(work.model.shape, Transformer):
        return [1] if fixed.context in (None, 1) else []
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
        for stage in _zero_stages(sizes, work, fixed):
            yield TrainingLayout(
                sizes.data, sizes.tensor, sizes.pipeline, expert, sizes.context, stage
            )


def _expert_sizes(data: int, work: TrainingWork, fixed: FixedLayout) -> list[int]:
    shape = work.model.shape
    experts = shape.experts.count if isinstance(shape, Transformer) and shape.experts else 1
    return [size for size in divisors(data) if experts % size == 0 and fixed.expert in (None, size)]


def _zero_stages(sizes: TrainingLayout, work: TrainingWork, fixed: FixedLayout) -> Iterable[int]:
    """Stages 2 and 3 with a pipeline would gather gradients and weights for every micro-batch.
    Stage 2 divides the gradients, of adapters next to nothing."""
    if fixed.zero_stage is not None:
        return (fixed.zero_stage,)
    if sizes.data * sizes.context == 1:
        return (0,)
    if sizes.pipeline > 1:
        return (1,)
    return (1, 2, 3) if work.method is Method.FULL else (1, 3)
