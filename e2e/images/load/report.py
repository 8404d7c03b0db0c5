"""What the users felt, as percentiles."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

PERCENTILES = (50, 90, 95, 99)


@dataclass
class Felt:
    """One request as its sender saw it; times in seconds since it was sent."""

    input_tokens: int
    token_seconds: list[float] = field(default_factory=list)
    end_seconds: float = 0.0
    error: str = ""

    @property
    def gaps_seconds(self) -> list[float]:
        """Between a token and the next."""
        pairs = zip(self.token_seconds, self.token_seconds[1:], strict=False)
        return [later - earlier for earlier, later in pairs]


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The smallest value that at least ``percent`` of them do not exceed; None of none."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def summarize(felt: Sequence[Felt], seconds: float) -> dict[str, Any]:
    """The report of a load that took ``seconds``."""
    answered = [each for each in felt if not each.error]
    return {
        "requests": len(felt),
        "answered": len(answered),
        "errors": dict(Counter(each.error for each in felt if each.error)),
        "seconds": round(seconds, 3),
        "inputTokens": sum(each.input_tokens for each in answered),
        "outputTokens": sum(len(each.token_seconds) for each in answered),
        "ttftSeconds": _percentiles([each.token_seconds[0] for each in answered]),
        "itlSeconds": _percentiles([gap for each in answered for gap in each.gaps_seconds]),
        "e2eSeconds": _percentiles([each.end_seconds for each in answered]),
    }


def _percentiles(values: Sequence[float]) -> dict[str, float | None]:
    return {f"p{percent}": _rounded(percentile(values, percent)) for percent in PERCENTILES}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
