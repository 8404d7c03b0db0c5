"""Looks in a row that told nothing, and the one sentence about them.

A reason may name a number that is another one at each look: an age, a count, how many bytes came.
A status that repeated it would be written with every look, for as long as a replica is broken.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

REST_SECONDS = 60.0
"""Between two reasons that are told of the same failure."""
_NUMBER = re.compile(r"(?<![\w-])[-+]?\d[\w.+]*")
"""One that stands alone: those in the names of pods are no numbers."""


@dataclass(frozen=True, slots=True)
class Failing:
    """None yet, as it is made."""

    looks: int = 0
    """In a row."""
    reason: str = ""
    """As it is told: of the first of them, until another one has been due for a minute."""
    told_seconds: float = -math.inf

    def after(self, reason: str, now_seconds: float) -> Failing:
        """With one look more that failed."""
        is_same = _kind(reason) == _kind(self.reason)
        if is_same or now_seconds - self.told_seconds < REST_SECONDS:
            return Failing(self.looks + 1, self.reason, self.told_seconds)
        return Failing(self.looks + 1, reason, now_seconds)


def _kind(reason: str) -> str:
    return _NUMBER.sub("#", reason)
