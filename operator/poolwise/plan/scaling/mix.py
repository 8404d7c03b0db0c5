"""What requests look like: lengths of prompts and answers, and how much of a prompt is computed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from poolwise.model.serving.queueing import Lengths

STEPS_PER_E = 24
"""Means and spreads are rounded to e**(1/24), 4 %: capacities are remembered by mix."""


@dataclass(frozen=True, slots=True)
class Mix:
    """Distribution of lengths; equal mixes have equal capacity."""

    prompt_tokens: Lengths
    answer_tokens: Lengths
    """The first token included."""
    computed_share: float = 1.0
    """Of a prompt's tokens: those that the prefix cache does not have."""

    def rounded(self) -> Mix:
        """Nearby mixes become one."""
        return Mix(
            _rounded(self.prompt_tokens),
            _rounded(self.answer_tokens),
            round(self.computed_share, 2),
        )


def _rounded(lengths: Lengths) -> Lengths:
    return Lengths(_step(lengths.mean), _step(1.0 + lengths.scv) - 1.0)


def _step(value: float) -> float:
    if value <= 0.0:
        return 0.0
    return math.exp(round(math.log(value) * STEPS_PER_E) / STEPS_PER_E)
