"""Blocks of a key-value cache, counted for all sequences together.

A sequence of c tokens holds ``ceil(c / 16)`` blocks. All decoding sequences grow by one token in
each iteration, so a sequence's remainder modulo 16, less the number of the iteration, stays as it
is: sixteen counts of those *phases* tell the exact number of blocks at any iteration.
"""

from __future__ import annotations


class Cache:
    """Of one replica; prompts hold all their blocks from admission on."""

    __slots__ = ("_block_tokens", "_phases", "_prompt_blocks", "_steps", "blocks",
                 "context_tokens", "room_tokens", "sequences")  # fmt: skip

    def __init__(self, blocks: int, block_tokens: int) -> None:
        self.blocks = blocks
        self._block_tokens = block_tokens
        self._phases = [0] * block_tokens
        self._steps = 0
        self.sequences = 0
        """That decode."""
        self.context_tokens = 0
        """Of all of them."""
        self._prompt_blocks = 0
        """Of those whose prompt is not through."""
        self.room_tokens = blocks * block_tokens
        """Beside the blocks of prompts."""

    def needed(self, tokens: int) -> int:
        """Blocks of one sequence."""
        return -(-tokens // self._block_tokens)

    def reserve(self, blocks: int) -> None:
        """A prompt is admitted; a negative number when it is through or stopped."""
        self._prompt_blocks += blocks
        self.room_tokens -= blocks * self._block_tokens

    def join(self, tokens: int) -> int:
        """A sequence begins to decode; returns its phase, which it must give back with it."""
        phase = (tokens - self._steps) % self._block_tokens
        self._phases[phase] += 1
        self.sequences += 1
        self.context_tokens += tokens
        return phase

    def leave(self, tokens: int, phase: int) -> None:
        """It is done, or stopped, at its present length."""
        self._phases[phase] -= 1
        self.sequences -= 1
        self.context_tokens -= tokens

    def grow(self, steps: int) -> None:
        """Every decoding sequence by so many tokens."""
        self._steps += steps
        self.context_tokens += steps * self.sequences

    def used_after(self, steps: int) -> int:
        """Blocks in use after so many more iterations of the same sequences."""
        size, now = self._block_tokens, self._steps + steps
        slack = 0
        for phase, count in enumerate(self._phases):
            if count:
                slack += count * (-(phase + now) % size)
        held = self.context_tokens + steps * self.sequences + slack
        return held // size + self._prompt_blocks

    def fits(self, steps: int, more_blocks: int = 0) -> bool:
        """Whether the blocks suffice for so many iterations, and ``more_blocks`` beside.

        Mostly they would even if each sequence had a whole block more than its tokens need.
        """
        size = self._block_tokens
        held = self.context_tokens + (steps + size - 1) * self.sequences
        if held <= self.room_tokens - more_blocks * size:
            return True
        return self.used_after(steps) + more_blocks <= self.blocks

    def steps_that_fit(self, most: int) -> int:
        """Iterations until the blocks are used up, ``most`` at most; by bisection."""
        if self.fits(most):
            return most
        low, high = 0, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.fits(middle) else (low, middle)
        return low
