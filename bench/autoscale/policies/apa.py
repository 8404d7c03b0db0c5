"""AIBrix's APA on ``kv_cache_usage_perc`` (samples/autoscaling/apa.yaml: 0.5), every 10 s.

Source: ``aibrix:pkg/controller/podautoscaler`` (algorithm/apa.go, ``applyPendingReplicaGuard``,
``stabilizeRecommendation``). The value is the mean over 180 s of the pods' mean. Its cooldown takes
the most aggressive past recommendation, the opposite of HPA's. Tuned: ``target``.
"""

from __future__ import annotations

import math
from collections import deque

from bench.autoscale.policies import fleet
from bench.autoscale.policies.service import Service
from bench.autoscale.policy import View

TARGET = 0.5
STABLE_SECONDS = 180.0
TOLERANCE = 0.1
MAX_RATE = 2.0
DOWN_COOLDOWN_SECONDS = 300.0


class Apa:
    """⌈n·m/T⌉ outside ±10 %, at most twice and at least half the pods."""

    interval_seconds = 10.0

    def __init__(self, service: Service, target: float = TARGET) -> None:
        self._target = target
        self._values: deque[tuple[float, float]] = deque()
        self._recommended: deque[tuple[float, int]] = deque()

    def desired(self, view: View) -> int:
        """The recommendation, after the guard for starting pods and the cooldown."""
        current = len(fleet.wanted(view))
        value = self._value(view)
        if value is None or current == 0:
            return current  # "failed to collect metrics": no decision
        proposed = replicas(current, value, self._target)
        guarded = pending_guard(current, len(fleet.ready(view)), proposed, value / self._target)
        return self._cooled(view.now_seconds, current, guarded)

    def _value(self, view: View) -> float | None:
        told = fleet.instant(view, fleet.kv_cache_usage)
        if not told:
            return None
        self._values.append((view.now_seconds, sum(told.values()) / len(told)))
        while self._values[0][0] <= view.now_seconds - STABLE_SECONDS:
            self._values.popleft()
        return sum(value for _, value in self._values) / len(self._values)

    def _cooled(self, now_seconds: float, current: int, proposed: int) -> int:
        """Up at once; down to the least of the last 300 s."""
        self._recommended.append((now_seconds, proposed))
        while self._recommended[0][0] <= now_seconds - DOWN_COOLDOWN_SECONDS:
            self._recommended.popleft()
        if proposed >= current:
            return proposed
        return min(wanted for _, wanted in self._recommended)


def replicas(current: int, value: float, target: float) -> int:
    """``computeTargetReplicas``."""
    ratio = value / target
    if ratio > 1.0 + TOLERANCE:
        return min(math.ceil(current * ratio), math.ceil(MAX_RATE * current))
    if ratio < 1.0 - TOLERANCE:
        return max(math.ceil(current * ratio), math.floor(current / MAX_RATE))
    return current


def pending_guard(current: int, ready: int, proposed: int, ratio: float) -> int:
    """Starting pods count as idle on the way up and as on target on the way down."""
    if ready >= current or proposed == current:
        return proposed
    if proposed > current:
        adjusted = math.ceil(ratio * ready)
        return min(max(adjusted, current), proposed)
    adjusted = math.ceil(ratio * ready + (current - ready))
    return max(min(adjusted, current), proposed)
