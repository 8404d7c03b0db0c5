"""One request inside the engine, and when what happened to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class Sequence:
    """``computed_tokens`` of its prompt and answer are in the KV cache.

    Times are in seconds of the engine's clock.
    """

    prompt_tokens: int
    max_tokens: int
    arrived: float
    generated_tokens: int = 0
    computed_tokens: int = 0
    blocks: int = 0
    preemptions: int = 0
    scheduled: float | None = None
    first_token: float | None = None
    last_token: float | None = None

    @property
    def total_tokens(self) -> int:
        """Prompt and answer so far."""
        return self.prompt_tokens + self.generated_tokens

    @property
    def missing_tokens(self) -> int:
        """What has to be computed before the next token: 1 in decode, more in prefill."""
        return self.total_tokens - self.computed_tokens

    @property
    def is_finished(self) -> bool:
        """Whether the answer is as long as it was asked to be."""
        return self.generated_tokens >= self.max_tokens

    def emit(self, now: float) -> float:
        """Add one token; return the time since the one before, or since the request arrived."""
        before = self.arrived if self.last_token is None else self.last_token
        if self.first_token is None:
            self.first_token = now
        self.last_token = now
        self.generated_tokens += 1
        return now - before

    def forget(self) -> None:
        """Give up its place in the cache: all of it has to be computed again."""
        self.computed_tokens = 0
        self.blocks = 0
        self.preemptions += 1
