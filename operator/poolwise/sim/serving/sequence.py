"""One request inside an engine."""

from __future__ import annotations

import math


class Sequence:
    """Its prompt is computed in chunks, then it decodes until its last step."""

    __slots__ = ("cached_tokens", "computed_tokens", "ends_at_step", "left_tokens", "number",
                 "phase", "prompt_tokens", "token_seconds", "was_stopped")  # fmt: skip

    def __init__(self, number: int, prompt_tokens: int, cached_tokens: int, tokens: int) -> None:
        self.number = number
        self.prompt_tokens = prompt_tokens
        """To be computed before its next token: after a stop, its answer so far as well."""
        self.cached_tokens = cached_tokens
        self.computed_tokens = cached_tokens
        self.left_tokens = tokens
        """Of the answer, when its prompt is through."""
        self.ends_at_step = -1
        """While it decodes."""
        self.phase = 0
        """In the cache (:mod:`poolwise.sim.serving.cache`)."""
        self.was_stopped = False
        """While it decoded."""
        self.token_seconds = math.nan
        """When it had its last token before that."""

    def stop(self, tokens: int, left_tokens: int, now_seconds: float) -> None:
        """Its blocks are gone: ``tokens`` that were stored and the last one are computed again."""
        self.prompt_tokens, self.left_tokens = tokens + 1, left_tokens
        self.was_stopped, self.token_seconds, self.ends_at_step = True, now_seconds, -1
