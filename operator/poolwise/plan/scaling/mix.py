"""What requests look like: lengths of prompts and answers, and how much of a prompt is computed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from poolwise.model.serving.queueing import Lengths, log_normal_skew
from poolwise.plan.scaling.gaps import Gaps, distance

NEAR = 0.03
"""Two mixes whose means differ by less are taken as one: capacities are remembered by mix."""
NEAR_SPREAD = 0.15
"""The same of 1 + scv, which is a matter of few long requests."""
NEAR_SKEW = 0.3
"""The same of the skew, a matter of fewer yet."""
NEAR_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Mix:
    """Distribution of lengths."""

    prompt_tokens: Lengths
    answer_tokens: Lengths
    """The first token included."""
    computed_share: float = 1.0
    """Of a prompt's tokens: those that the prefix cache does not have."""
    context_tokens: float | None = None
    """Of a running sequence, where caches tell; None: as the lengths make it."""
    gaps: Gaps = ()
    """Between the tokens of answers."""

    def is_near(self, other: Mix) -> bool:
        """Whether capacities are as good as the same."""
        return (
            _are_near(self.prompt_tokens, other.prompt_tokens)
            and _are_near(self.answer_tokens, other.answer_tokens)
            and abs(self.computed_share - other.computed_share) < NEAR_SHARE
            and abs(math.log((self.context_tokens or 1.0) / (other.context_tokens or 1.0))) < NEAR
            and distance(self.gaps, other.gaps) < NEAR_SHARE
        )


def _are_near(one: Lengths, other: Lengths) -> bool:
    return (
        abs(math.log(max(one.mean, 1.0) / max(other.mean, 1.0))) < NEAR
        and abs(math.log((1.0 + one.scv) / (1.0 + other.scv))) < NEAR_SPREAD
        and abs(math.log((1.0 + _skew(one)) / (1.0 + _skew(other)))) < NEAR_SKEW
    )


def _skew(lengths: Lengths) -> float:
    return max(log_normal_skew(lengths.scv) if lengths.skew is None else lengths.skew, 0.0)
