"""What one replica of a pool serves inside all targets, at a mix of requests and a slowness.

A replica all of whose times are f times as long serves at rate r what the model says of f * r, with
targets f times as tight; so slowness needs no second search (:mod:`poolwise.model.corrected`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from poolwise.model.serving.load import Replica, State, state
from poolwise.plan.scaling.mix import Mix
from poolwise.plan.scaling.service import LatencyTarget, Predictor
from poolwise.plan.scaling.tails import floor_seconds, holds, tail_seconds

BISECTIONS = 20
"""To a millionth of the largest load."""


@dataclass(frozen=True)
class Capability:
    """One replica at the most that it serves inside its targets."""

    served: Replica
    """As the model has it; its times are to be multiplied by the slowness."""
    slowness: float
    at: State
    """By the model's clock, at the highest load at which all targets hold."""
    limiting: str
    unreachable: tuple[tuple[LatencyTarget, float], ...]
    """Targets that even a lone request misses, with the least seconds that it takes."""

    @property
    def requests_per_second(self) -> float:
        """0 where a target is unreachable."""
        return self.at.requests_per_second / self.slowness

    @property
    def in_flight(self) -> float:
        """Requests at the highest load."""
        return self.at.in_flight

    @property
    def residence_seconds(self) -> float:
        """Mean time of an answer at the highest load, without the prompt."""
        return self.served.generated.mean * self.at.token_seconds * self.slowness

    @property
    def token_seconds(self) -> float:
        """Between two tokens at the highest load."""
        return self.at.token_seconds * self.slowness


@lru_cache(maxsize=512)
def capability(
    predictor: Predictor,
    mix: Mix,
    targets: tuple[LatencyTarget, ...],
    slowness: float,
    dispersion: float,
) -> Capability:
    """At the highest load; remembered, so mixes and slownesses should come rounded."""
    served = replace(predictor.replica(mix), arrival_dispersion=dispersion)
    asked = tuple(replace(each, seconds=each.seconds / slowness) for each in targets)
    unreachable = tuple(
        (target, floor * slowness)
        for target, tight in zip(targets, asked, strict=True)
        if (floor := floor_seconds(served, tight)) > tight.seconds
    )
    reachable = tuple(
        tight
        for target, tight in zip(targets, asked, strict=True)
        if all(target != each for each, _ in unreachable)
    )
    load = highest_load(served, reachable)
    at = state(served, max(load, served.largest_load * 2.0**-20))
    return Capability(served, slowness, at, limiting(served, at, reachable), unreachable)


def highest_load(served: Replica, targets: tuple[LatencyTarget, ...]) -> float:
    """At which all targets hold; 0 where none does."""
    most = served.largest_load
    if most <= 0.0:
        return 0.0
    if holds(served, state(served, most), targets):
        return most
    low, high = 0.0, most
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        if holds(served, state(served, middle), targets):
            low = middle
        else:
            high = middle
    return low


def limiting(served: Replica, at: State, targets: tuple[LatencyTarget, ...]) -> str:
    """The target that is nearest, or the slots."""
    if at.in_flight >= served.largest_load * (1.0 - 1e-6):
        return "KV cache" if served.cache_slots <= served.batch_slots else "Batch"
    nearest = max(
        targets, key=lambda each: tail_seconds(served, at, each) / each.seconds, default=None
    )
    return "Rate" if nearest is None else str(nearest)


def rounded_slowness(log_slowness: float) -> float:
    """To 2 %: capabilities are remembered by it."""
    return math.exp(round(log_slowness * 50.0) / 50.0)
