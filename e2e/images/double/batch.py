"""Continuous batching, as vLLM's V1 scheduler does it; no clock and no event loop.

Each iteration has a budget of tokens. Sequences that run get theirs first: one token in decode, a
chunk of the rest in prefill. When the cache has no block left, the youngest of them gives its
blocks back and waits again, first in the queue. Then waiting ones are admitted in the order of
their arrival, while seats, budget and blocks last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from e2e.images.double.costs import Costs
from e2e.images.double.sequence import Sequence


@dataclass(frozen=True)
class Limits:
    """What the engine's options fix."""

    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    block_size: int
    num_blocks: int

    def blocks_for(self, tokens: int) -> int:
        """Blocks that hold so many tokens."""
        return -(-tokens // self.block_size)


@dataclass(frozen=True)
class Iteration:
    """What one iteration computes: for each sequence so many tokens, in so many seconds."""

    chunks: dict[Sequence, int]
    seconds: float
    preempted: int

    @property
    def tokens(self) -> int:
        """All tokens that it computes."""
        return sum(self.chunks.values())


@dataclass(frozen=True)
class Emitted:
    """A token of a sequence, and the time since the one before it."""

    sequence: Sequence
    gap_seconds: float

    @property
    def is_first(self) -> bool:
        """Whether its answer begins with it."""
        return self.sequence.generated_tokens == 1


@dataclass
class Batch:
    """The running sequences and the queue."""

    limits: Limits
    costs: Costs
    running: list[Sequence] = field(default_factory=list)
    waiting: deque[Sequence] = field(default_factory=deque)

    @property
    def used_blocks(self) -> int:
        """Blocks of the cache that sequences hold."""
        return sum(sequence.blocks for sequence in self.running)

    @property
    def cache_usage(self) -> float:
        """The share of the cache that sequences hold."""
        return self.used_blocks / self.limits.num_blocks

    def add(self, sequence: Sequence) -> None:
        """Put a request at the end of the queue."""
        self.waiting.append(sequence)

    def drop(self, sequence: Sequence) -> None:
        """Take out a request that nobody waits for any more."""
        if sequence in self.running:
            self.running.remove(sequence)
        elif sequence in self.waiting:
            self.waiting.remove(sequence)

    def schedule(self, now: float) -> Iteration | None:
        """Choose what the next iteration computes; None when there is nothing to do."""
        chunks: dict[Sequence, int] = {}
        preempted = self._continue_running(chunks)
        if not preempted:  # who had to give up blocks comes before who never had any
            self._admit(chunks, now)
        return Iteration(chunks, self._seconds(chunks), preempted) if chunks else None

    def _continue_running(self, chunks: dict[Sequence, int]) -> int:
        preempted = 0
        for sequence in tuple(self.running):
            if sequence not in self.running:
                continue  # preempted for one before it
            chunk = min(sequence.missing_tokens, self._budget_left(chunks))
            if not chunk:
                continue
            while not self._allocate(sequence, chunk):
                preempted += 1
                if self._preempt_youngest(chunks) is sequence:
                    break
            else:
                chunks[sequence] = chunk
        return preempted

    def _preempt_youngest(self, chunks: dict[Sequence, int]) -> Sequence:
        youngest = self.running.pop()
        chunks.pop(youngest, None)
        youngest.forget()
        self.waiting.appendleft(youngest)
        return youngest

    def _admit(self, chunks: dict[Sequence, int], now: float) -> None:
        while self.waiting and len(self.running) < self.limits.max_num_seqs:
            sequence = self.waiting[0]
            chunk = min(sequence.missing_tokens, self._budget_left(chunks))
            if not chunk or not self._allocate(sequence, chunk):
                return
            self.waiting.popleft()
            self.running.append(sequence)
            if sequence.scheduled is None:
                sequence.scheduled = now
            chunks[sequence] = chunk

    def _budget_left(self, chunks: dict[Sequence, int]) -> int:
        return self.limits.max_num_batched_tokens - sum(chunks.values())

    def _allocate(self, sequence: Sequence, chunk: int) -> bool:
        """Give it the blocks for ``chunk`` tokens more, if there are any."""
        wanted = self.limits.blocks_for(sequence.computed_tokens + chunk)
        if self.used_blocks + max(0, wanted - sequence.blocks) > self.limits.num_blocks:
            return False
        sequence.blocks = max(wanted, sequence.blocks)
        return True

    def _seconds(self, chunks: dict[Sequence, int]) -> float:
        decodes = sum(1 for sequence in chunks if sequence.missing_tokens == 1)
        prefill_tokens = sum(chunks.values()) - decodes
        context_tokens = sum(sequence.computed_tokens for sequence in chunks)
        return self.costs.iteration_seconds(decodes, prefill_tokens, context_tokens)

    def complete(self, iteration: Iteration, now: float) -> list[Emitted]:
        """The iteration is over: the tokens that it brought; finished sequences leave."""
        emitted = list(self._emit(iteration, now))
        self.running = [sequence for sequence in self.running if not sequence.is_finished]
        return emitted

    def _emit(self, iteration: Iteration, now: float) -> Iterator[Emitted]:
        held = set(self.running)
        for sequence, chunk in iteration.chunks.items():
            if sequence not in held:
                continue  # dropped meanwhile
            sequence.computed_tokens += chunk
            if sequence.missing_tokens == 0:
                yield Emitted(sequence, sequence.emit(now))
