"""Kubernetes' HorizontalPodAutoscaler v2: what it recommends, and how its behaviour holds it back.

Source: ``pkg/controller/podautoscaler/{replica_calculator,horizontal}.go``; KEP-853 (behaviour).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.autoscale.policies.service import Bounds
from bench.autoscale.policy import ReplicaView

INTERVAL_SECONDS = 15.0
TOLERANCE = 0.1


def pods_replicas(values: Mapping[str, float], pods: Sequence[ReplicaView], target: float) -> int:
    """Replicas for a Pods metric whose mean over pods shall be ``target``.

    A pod without the metric counts as exactly on target when the rest say down and as 0 when they
    say up; where that turns the direction, nothing is done.
    """
    current = len(pods)
    if not values:
        return current  # FailedGetPodsMetric: no recommendation at all
    ratio = sum(values.values()) / len(values) / target
    missing = current - len(values)
    if missing <= 0:
        return current if _is_within(ratio) else math.ceil(ratio * len(values))
    counted = 1.0 if ratio < 1.0 else 0.0
    with_missing = (ratio * len(values) + counted * missing) / current
    if _is_within(with_missing) or (ratio - 1.0) * (with_missing - 1.0) < 0.0:
        return current
    proposed = math.ceil(with_missing * current)
    is_backwards = proposed > current if with_missing < 1.0 else proposed < current
    return current if is_backwards else proposed


def external_replicas(total: float, current: int, target_per_pod: float) -> int:
    """Replicas for an External metric's AverageValue: ⌈total ÷ target⌉ beyond the tolerance."""
    if current and _is_within(total / (target_per_pod * current)):
        return current
    return math.ceil(total / target_per_pod)


def _is_within(ratio: float) -> bool:
    return abs(ratio - 1.0) <= TOLERANCE


@dataclass(frozen=True, slots=True)
class Rule:
    """At most so many pods, or so many percent of them, per period."""

    value: float
    period_seconds: float
    is_percent: bool = False


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction's stabilisation window and rules; the rule that allows most decides."""

    window_seconds: float
    rules: tuple[Rule, ...]


UP_DEFAULT = Direction(0.0, (Rule(100.0, 15.0, is_percent=True), Rule(4.0, 15.0)))
DOWN_DEFAULT = Direction(300.0, (Rule(100.0, 15.0, is_percent=True),))


class Behaviour:
    """``spec.behavior``: remembers recommendations and changes; asked once a tick.

    Up: the least recommendation of its window. Down: the greatest of its window. Then the rules.
    """

    def __init__(
        self, bounds: Bounds, up: Direction = UP_DEFAULT, down: Direction = DOWN_DEFAULT
    ) -> None:
        self._bounds = bounds
        self._up = up
        self._down = down
        self._recommended: list[tuple[float, int]] = []
        self._changes: list[tuple[float, int]] = []

    def allowed(self, now_seconds: float, current: int, recommended: int) -> int:
        """What of the recommendation is allowed now; it is taken as done."""
        stable = self._bounds.clamped(self._stabilised(now_seconds, current, recommended))
        if stable > current:
            stable = min(stable, self._most(now_seconds, current))
        elif stable < current:
            stable = max(stable, self._least(now_seconds, current))
        if stable != current:
            self._changes.append((now_seconds, stable - current))
        return stable

    def _stabilised(self, now_seconds: float, current: int, recommended: int) -> int:
        if not self._recommended:  # recordInitialRecommendation
            self._recommended.append((now_seconds, current))
        self._recommended.append((now_seconds, recommended))
        longest = max(self._up.window_seconds, self._down.window_seconds)
        self._recommended = [each for each in self._recommended if each[0] >= now_seconds - longest]
        upper = min(self._of_window(now_seconds, self._up, recommended))
        lower = max(self._of_window(now_seconds, self._down, recommended))
        return min(max(current, upper), lower)

    def _of_window(self, now_seconds: float, direction: Direction, recommended: int) -> list[int]:
        since_seconds = now_seconds - direction.window_seconds
        return [recommended, *(wanted for at, wanted in self._recommended if at > since_seconds)]

    def _most(self, now_seconds: float, current: int) -> int:
        return max(
            math.ceil(start * (1.0 + rule.value / 100.0))
            if rule.is_percent
            else start + int(rule.value)
            for rule, start in self._starts(now_seconds, current, self._up)
        )

    def _least(self, now_seconds: float, current: int) -> int:
        return min(
            int(start * (1.0 - rule.value / 100.0)) if rule.is_percent else start - int(rule.value)
            for rule, start in self._starts(now_seconds, current, self._down)
        )

    def _starts(
        self, now_seconds: float, current: int, direction: Direction
    ) -> list[tuple[Rule, int]]:
        """Each rule with the replicas at the start of its period."""
        return [
            (rule, current - self._changed(now_seconds - rule.period_seconds))
            for rule in direction.rules
        ]

    def _changed(self, since_seconds: float) -> int:
        return sum(change for at, change in self._changes if at > since_seconds)
