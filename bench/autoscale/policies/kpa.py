"""Knative's pod autoscaler on concurrency: a stable window of 60 s and a panic window of 6 s.

Source: ``knative/serving:pkg/autoscaler/scaling/autoscaler.go``. Concurrency is what a pod holds,
running and waiting, as queue-proxy would count it. Tuned: ``target``, 70 by default
(container-concurrency-target-default 100 at 70 %).
"""

from __future__ import annotations

import math
from collections import deque

from bench.autoscale.policies import fleet
from bench.autoscale.policies.service import Service
from bench.autoscale.policy import View

TARGET = 70.0
STABLE_SECONDS = 60.0
PANIC_SECONDS = 6.0
PANIC_THRESHOLD = 2.0
MAX_UP_RATE = 1000.0
MAX_DOWN_RATE = 2.0


class Kpa:
    """Sums over pods, averaged over both windows; in panic never down."""

    interval_seconds = 2.0

    def __init__(self, service: Service, target: float = TARGET) -> None:
        self._target = target
        self._seen: deque[tuple[float, float]] = deque()
        self._panic_since_seconds: float | None = None
        self._panic_most = 0

    def desired(self, view: View) -> int:
        """Pods for the stable mean; while in panic the most that was asked for since it began."""
        self._record(view)
        if not self._seen:
            return len(fleet.wanted(view))  # ErrNoData: no decision
        ready = max(1, len(fleet.ready(view)))
        stable = self._pods(STABLE_SECONDS, view.now_seconds)
        panic = self._pods(PANIC_SECONDS, view.now_seconds)
        self._update_panic(view.now_seconds, panic / ready >= PANIC_THRESHOLD)
        lower, upper = math.floor(ready / MAX_DOWN_RATE), math.ceil(MAX_UP_RATE * ready)
        stable, panic = (min(max(each, lower), upper) for each in (stable, panic))
        if self._panic_since_seconds is None:
            return stable
        self._panic_most = max(self._panic_most, stable, panic)
        return self._panic_most

    def _record(self, view: View) -> None:
        told = fleet.instant(view, fleet.in_flight)
        if told:
            self._seen.append((view.now_seconds, sum(told.values())))
        while self._seen and self._seen[0][0] <= view.now_seconds - STABLE_SECONDS:
            self._seen.popleft()

    def _pods(self, window_seconds: float, now_seconds: float) -> int:
        values = [total for at, total in self._seen if at > now_seconds - window_seconds]
        return math.ceil(sum(values) / max(len(values), 1) / self._target)

    def _update_panic(self, now_seconds: float, is_over: bool) -> None:
        """Over the threshold (re)starts panic; a full stable window under it ends it."""
        if is_over:
            self._panic_since_seconds = now_seconds
        elif (
            self._panic_since_seconds is not None
            and self._panic_since_seconds + STABLE_SECONDS < now_seconds
        ):
            self._panic_since_seconds = None
            self._panic_most = 0
