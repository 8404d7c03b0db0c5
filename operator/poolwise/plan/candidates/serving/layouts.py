"""How one replica may be laid over accelerators or CPU cores, and what each way can serve.

Sizes are those of :mod:`.sizes`. The format of the weights is the user's, or the published
one where the device computes in it. What is left free is set from the model: the longest context
from the room for its cache, the chunk of prompts and the number of sequences from the targets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from poolwise.model.efficiency import Calibration
from poolwise.model.formats import native_arithmetic, sixteen_bit_format, weight_bytes
from poolwise.model.hardware import Device, Machine
from poolwise.model.prediction import Memory
from poolwise.model.serving.capacity import NOTHING, Capacity, capacity
from poolwise.model.serving.latency import latencies
from poolwise.model.serving.load import Replica, state
from poolwise.model.serving.memory import (
    Footprint,
    footprint,
    request_cache_bytes,
    tokens_beside,
)
from poolwise.model.serving.replica import replica
from poolwise.model.serving.search import Probe, last_inside
from poolwise.model.serving.targets import miss
from poolwise.model.serving.tuning import CHUNK_TOKENS, tuned
from poolwise.model.work import ServingLayout, ServingWork, Tokens
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.candidates.serving.groups import nearest
from poolwise.plan.candidates.serving.sizes import Node, Sizes
from poolwise.plan.candidates.smallest import Smallest
from poolwise.plan.memo import Page
from poolwise.plan.requests.request import FixedReplica

MOST_SEQUENCES = 1024
"""vLLM's own limit on large devices; a tighter one comes from the targets."""
LEAST_SEQUENCES = 8
GRAPH_STEP = 8
DEVIATIONS = 3.0
"""Standard deviations of the number in flight that the engine still takes in at once."""
PACKED = ("int4", "mxfp4")
"""Formats whose weights every engine expands on the way to 16-bit arithmetic: no unit needed."""
P999_OVER_P95 = 1.88
"""Standard normal quantile of 99.9 % over that of 95 %: a log-normal's tail from two figures."""
UNKNOWN_CONTEXT_TOKENS = 8192
"""Longest context of a model whose own nobody told; what most engines assume."""
CPU_MEMORY_STEP_BYTES = 2**30
CPU_MEMORY_SLACK = 1.25
"""Of a CPU replica's memory over its need: the interpreter, libraries and buffers."""


@dataclass(frozen=True, slots=True)
class ReplicaShape:
    """A layout that starts, with the rate that it serves inside all targets."""

    layout: ServingLayout
    capacity: Capacity

    @property
    def capacity_requests_per_second(self) -> float:
        """The rate itself."""
        return self.capacity.requests_per_second

    @property
    def in_flight(self) -> float:
        """Requests that the engine works on at that rate."""
        return self.capacity.load

    @property
    def serves(self) -> bool:
        """Whether every target holds for one request at least."""
        return self.capacity_requests_per_second > 0


@dataclass(frozen=True, slots=True)
class NoReplicaShape:
    """Why there is none: not even the smallest layout fits, or a clause that says what is wrong."""

    verdict: Verdict
    problem: str
    smallest: Smallest | None = None


@dataclass(frozen=True, slots=True)
class ServingSearch:
    """The search for one service on one machine."""

    work: ServingWork
    fixed: FixedReplica
    machine: Machine
    node: Node
    calibration: Calibration
    may_pipeline: bool = True
    """Whether the engine can divide layers over stages."""
    over_nodes: bool = False
    """Whether replicas span nodes, instead of sharing one."""
    replicas: Page = field(default_factory=Page)
    """By layout."""

    def layouts(self) -> list[ServingLayout] | NoReplicaShape:
        """Every size that starts, the smallest first, whatever it can serve."""
        weights = weight_format(self.work, self.fixed.quantization, self.machine.device)
        if weights is None:
            return NoReplicaShape(
                Verdict.FORMAT_UNSUPPORTED,
                f"{self.machine.device.name} does not compute in {self.fixed.quantization}",
            )
        able = self._able()
        sizes = [self._as_told(each) for each in able.each(weights)]
        if not sizes:
            return NoReplicaShape(Verdict.SHAPE_DOES_NOT_FIT, able.why_none())
        layouts = [layout for size in sizes if (layout := self._starting(size))]
        if not layouts:
            return NoReplicaShape(Verdict.MEMORY_DOES_NOT_FIT, "", self._smallest(sizes))
        return nearest(layouts) if self.over_nodes else layouts

    def shape(self, layout: ServingLayout) -> ReplicaShape:
        """A layout with what it serves; nothing where it misses a target even for one request."""
        return ReplicaShape(layout, capacity(self.replica(layout), self.work.targets))

    def replica(self, layout: ServingLayout) -> Replica:
        """What a layout makes of the machine."""
        return self.replicas.get(
            layout, lambda: replica(self.work, layout, self.machine, self.calibration)
        )

    def tuned(self, layout: ServingLayout) -> ReplicaShape:
        """The same with the chunk of prompts that serves most.

        Engines want a step to hold a token of each sequence, and a whole prompt of a model that
        reads it at once.
        """
        asked = self.work, layout, self.machine, self.calibration
        better, found = tuned(*asked, self.replica, self._chunks())
        step_tokens = better.max_batched_tokens
        if not self.work.model.generates and self.fixed.max_batched_tokens is None:
            step_tokens = max(step_tokens, better.max_model_tokens)
        sequences = min(better.max_num_seqs, step_tokens)
        whole = replace(better, max_batched_tokens=step_tokens, max_num_seqs=sequences)
        is_found = whole == better and found is not NOTHING
        return ReplicaShape(whole, found) if is_found else self.shape(whole)

    def bounded(self, shape: ReplicaShape) -> ServingLayout:
        """The layout with no more sequences at once than its targets let it work on, unless the
        user said how many."""
        if self.fixed.max_num_seqs is not None:
            return shape.layout
        return self.in_time(shape, bounded(shape, self.work.arrival_dispersion))

    def in_time(self, shape: ReplicaShape, layout: ServingLayout) -> ServingLayout:
        """The layout with no more sequences than a batch may have whose tokens are in time, as a
        whole one: then no burst of requests makes those late that are under way.

        Never fewer than are in flight at the capacity, where all targets hold.
        """
        limits = tuple(each for each in self.work.targets if not each.metric.is_from_arrival)
        least, most = math.ceil(shape.in_flight), layout.max_num_seqs
        if not limits or not shape.serves or least >= most:
            return layout
        served = self.replica(shape.layout)

        def late(sequences: int) -> Probe:
            at = state(served, min(float(sequences), served.slots))
            return Probe(sequences, miss(latencies(served, at), limits))

        fullest, emptiest = late(most), late(least)
        if fullest.excess <= 0.0:
            return layout
        in_time = least
        if emptiest.excess <= 0.0:
            in_time = last_inside(lambda sequences: late(sequences).excess, emptiest, fullest)
        return replace(layout, max_num_seqs=max(least, _coarse(in_time)))

    def _as_told(self, size: ServingLayout) -> ServingLayout:
        """With what flags say of the cache and of a step."""
        tokens = self.fixed.max_batched_tokens or size.max_batched_tokens
        return replace(size, kv_format=self.fixed.kv_format, max_batched_tokens=tokens)

    def _chunks(self) -> tuple[int, ...]:
        """The largest first; of a given number of sequences each has a token in a step."""
        tokens, sequences = self.fixed.max_batched_tokens, self.fixed.max_num_seqs or 1
        if tokens is not None:
            return (tokens,)
        return tuple(each for each in CHUNK_TOKENS if each >= sequences) or (sequences,)

    def _able(self) -> Sizes:
        return Sizes(
            self.work.model.shape,
            self.fixed,
            self.node,
            self.machine.device.is_cpu,
            self.may_pipeline,
            self.over_nodes,
        )

    def _starting(self, size: ServingLayout) -> ServingLayout | None:
        """The size with as many sequences and as much context as fit beside the weights.

        Whether fewer help is asked of one sequence: the upper end of many has the range of their
        working memory in it, which says nothing about the weights.
        """
        one, told = self._taken(replace(size, max_num_seqs=1)), self.fixed.max_num_seqs
        may_be_fewer = one.holds_weights and told is None
        sequences = told or MOST_SEQUENCES
        while sequences >= 1:
            layout = replace(size, max_num_seqs=sequences)
            taken = self._taken(layout)
            longest = self._with_context(layout, taken)
            if longest is not None:
                return self._with_memory(longest, taken)
            sequences = sequences // 2 if may_be_fewer else 0
        return None

    def _with_context(self, layout: ServingLayout, taken: Footprint) -> ServingLayout | None:
        given = self.work.max_model_tokens
        most = given or self.work.model.max_context_tokens or UNKNOWN_CONTEXT_TOKENS
        least = given or min(most, needed_tokens(self.work))
        room = tokens_beside(taken, self.work, layout)
        tokens = most
        while tokens > room and tokens > least:
            tokens = max(least, tokens // 2)
        longest = replace(layout, max_model_tokens=tokens)
        return longest if self._memory(longest, taken).fits else None

    def _with_memory(self, layout: ServingLayout, taken: Footprint) -> ServingLayout:
        """On CPU, what the replica needs instead of its whole share, where nothing is cached."""
        needed = self._memory(layout, taken)
        if not layout.cpu_cores or needed.kv_cache_bytes:
            return layout
        wanted = needed.needed_bytes / needed.usable_bytes * layout.cpu_memory_bytes
        steps = math.ceil(wanted * CPU_MEMORY_SLACK / CPU_MEMORY_STEP_BYTES)
        less = min(layout.cpu_memory_bytes, float(steps * CPU_MEMORY_STEP_BYTES))
        return replace(layout, cpu_memory_bytes=less)

    def _taken(self, layout: ServingLayout) -> Footprint:
        """At the upper end of its range: a replica that starts only with luck is none."""
        return footprint(self.work, layout, self.machine, self.calibration).at_most()

    def _memory(self, layout: ServingLayout, taken: Footprint) -> Memory:
        """With room for the longest request, without which no engine starts."""
        return taken.with_cache(request_cache_bytes(self.work, layout, layout.max_model_tokens))

    def _smallest(self, sizes: list[ServingLayout]) -> Smallest:
        least = self.work.max_model_tokens or needed_tokens(self.work)
        sequences = self.fixed.max_num_seqs or 1
        layouts = [replace(size, max_num_seqs=sequences, max_model_tokens=least) for size in sizes]
        every = [Smallest(layout, self._memory(layout, self._taken(layout))) for layout in layouts]
        return min(every, key=lambda each: each.memory.needed_bytes / each.memory.usable_bytes)


def weight_format(work: ServingWork, quantization: str, device: Device) -> str | None:
    """Format of the weights on a device; None where it does not compute in the one asked for.

    ``Auto`` takes the published format where the device has a unit for it, else 16 bits; so do
    engines with weights published in 32. Of the two 16-bit formats it is the one that the device
    has: engines cast one to the other when they load.
    """
    published, peaks = work.model.native_format, device.peak_flops_per_second
    wide = sixteen_bit_format(published, peaks)
    if quantization == "None":
        return wide
    wanted = quantization
    if quantization == "Auto":
        wanted = wide if weight_bytes(published) >= 2 else published
    if wanted in PACKED or native_arithmetic(wanted, peaks):
        return wanted
    return wide if quantization == "Auto" else None


def bounded(shape: ReplicaShape, arrival_dispersion: float) -> ServingLayout:
    """The layout with no more sequences at once than its targets let it work on.

    The number in flight varies like the arrivals do; what comes on top waits for its turn, so
    that the tokens of the others stay in time.
    """
    spread = DEVIATIONS * math.sqrt(shape.in_flight * arrival_dispersion)
    wanted = max(LEAST_SEQUENCES, _next_power_of_two(shape.in_flight + spread))
    return replace(shape.layout, max_num_seqs=min(shape.layout.max_num_seqs, wanted))


def needed_tokens(work: ServingWork) -> int:
    """Context that all but one request in a thousand stay within, if lengths are log-normal."""
    return math.ceil(_p999(work.input_tokens) + _p999(work.output_tokens))


def _p999(tokens: Tokens) -> float:
    if tokens.p50 <= 0.0:
        return tokens.p95
    return tokens.p50 * math.pow(max(tokens.p95 / tokens.p50, 1.0), P999_OVER_P95)


def _coarse(sequences: int) -> int:
    """Down to a multiple of 8: the sizes of batches that engines capture graphs of."""
    return sequences if sequences < GRAPH_STEP else sequences // GRAPH_STEP * GRAPH_STEP


def _next_power_of_two(number: float) -> int:
    return 1 << math.ceil(math.log2(max(number, 1.0)))
