"""What one step of an engine takes: curves over the step's size, and a price for each key read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Curve:
    """Seconds by a count, straight between knots and beyond the last two."""

    counts: tuple[float, ...]
    """Ascending, two at least."""
    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.counts) < 2 or len(self.counts) != len(self.seconds):
            raise ValueError("a curve needs as many seconds as counts, and two at least")
        if any(low >= high for low, high in zip(self.counts, self.counts[1:], strict=False)):
            raise ValueError(f"the counts of a curve ascend, got {self.counts}")

    @staticmethod
    def line(fixed_seconds: float, seconds_per_one: float) -> Curve:
        """``fixed + n * each``."""
        return Curve((0.0, 1.0), (fixed_seconds, fixed_seconds + seconds_per_one))

    def up_to(self, most: int) -> list[float]:
        """Seconds of 0, 1, ..., ``most``."""
        counts = np.arange(most + 1, dtype=float)
        inside = np.interp(counts, self.counts, self.seconds)
        (x0, x1), (y0, y1) = self.counts[-2:], self.seconds[-2:]
        beyond = y1 + (counts - x1) * (y1 - y0) / (x1 - x0)
        found: list[float] = np.where(counts > x1, beyond, inside).tolist()
        return found


@dataclass(frozen=True, slots=True)
class IterationCosts:
    """One step: ``tokens(rows) + sequences(answers) + keys * key + prompt keys * prompt key``.

    The curves hold the maximum of compute and memory, the communication and the fixed part, so a
    step of pure decoding is affine in the cached keys that it reads.
    """

    tokens: Curve
    """By the tokens in the step, of prompts and of answers: products, links, launches, host."""
    sequences: Curve
    """By the sequences that get a token: the head and sampling."""
    key_seconds: float
    """One cached token of one decoding sequence, all layers."""
    prompt_key_seconds: float
    """One token of a prompt attending to one token before it, all layers."""
    request_seconds: float = 0.0
    """Of a request outside the engine's steps: server, tokeniser, network."""

    def scaled(self, factor: float) -> IterationCosts:
        """An engine that takes so many times as long for every step."""
        return IterationCosts(
            Curve(self.tokens.counts, tuple(factor * each for each in self.tokens.seconds)),
            Curve(self.sequences.counts, tuple(factor * each for each in self.sequences.seconds)),
            factor * self.key_seconds,
            factor * self.prompt_key_seconds,
            self.request_seconds,
        )


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """What an engine may hold at once."""

    max_num_seqs: int
    max_batched_tokens: int
    """Of one step, answers' tokens first."""
    kv_blocks: int
    block_tokens: int = 16
    watermark_share: float = 0.01
    """Of the blocks, left free by admissions so that what runs can grow."""

    @property
    def kv_tokens(self) -> int:
        """What the cache holds."""
        return self.kv_blocks * self.block_tokens

    @property
    def watermark_blocks(self) -> int:
        """Left free by admissions."""
        return int(self.kv_blocks * self.watermark_share)


class StepTable:
    """Costs as lists over whole numbers, for steps inside the limits."""

    __slots__ = ("decode", "key_seconds", "prompt_key_seconds", "request_seconds", "sequences",
                 "tokens")  # fmt: skip

    def __init__(self, costs: IterationCosts, limits: EngineLimits) -> None:
        most_sequences = limits.max_num_seqs
        self.tokens = costs.tokens.up_to(max(limits.max_batched_tokens, most_sequences))
        self.sequences = costs.sequences.up_to(2 * most_sequences)
        self.decode = [
            tokens + sequences
            for tokens, sequences in zip(self.tokens, self.sequences, strict=False)
        ]
        """A step of so many decoding sequences, without their keys."""
        self.key_seconds = costs.key_seconds
        self.prompt_key_seconds = costs.prompt_key_seconds
        self.request_seconds = costs.request_seconds
