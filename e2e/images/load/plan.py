"""Which requests to send, and when: pure, and the same for the same seed."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

Z95 = 1.6448536269514722
"""The 95th percentile of the standard normal distribution."""


@dataclass(frozen=True)
class Lengths:
    """Token counts of a log-normal distribution; all alike when median and 95th are the same."""

    median: float
    p95: float

    @classmethod
    def parse(cls, text: str) -> Lengths:
        """``128``, or ``1015,4085`` for median and 95th percentile."""
        parts = text.split(",")
        try:
            numbers = [float(part) for part in parts]
        except ValueError:
            numbers = []
        if len(numbers) not in (1, 2) or numbers[0] < 1 or numbers[-1] < numbers[0]:
            raise ValueError(f"{text}: must be TOKENS or MEDIAN,P95, at least 1 and rising")
        return cls(numbers[0], numbers[-1])

    def draw(self, source: random.Random) -> int:
        """One length."""
        sigma = math.log(self.p95 / self.median) / Z95
        return max(1, round(self.median * math.exp(sigma * source.gauss(0, 1))))


@dataclass(frozen=True)
class Planned:
    """One request: when to send it, and how long it and its answer are."""

    at_seconds: float
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class Plan:
    """A load."""

    rate_per_second: float
    duration_seconds: float
    inputs: Lengths
    outputs: Lengths
    seed: int

    def requests(self) -> Iterator[Planned]:
        """In the order of their times."""
        source = random.Random(self.seed)
        at_seconds = source.expovariate(self.rate_per_second)
        while at_seconds < self.duration_seconds:
            yield Planned(at_seconds, self.inputs.draw(source), self.outputs.draw(source))
            at_seconds += source.expovariate(self.rate_per_second)
