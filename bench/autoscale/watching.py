"""Replays that cannot be chosen any more end early, so that tuning is worth its time.

A policy is watched through what it is shown. What its replicas count above the first bucket bound
that is not below a target was late for sure, and what has been paid is paid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bench.autoscale.policy import Policy, View
from bench.autoscale.scene import Scene
from poolwise.plan.signals.sample import Histogram, Sample


class Late(Exception):
    """More requests are late than may be; carries when that was certain, in seconds."""


class Dear(Exception):
    """It costs more than what is already known to do."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Answers that came too late, of all replicas since they started."""

    ttft: float = 0.0
    tpot: float = 0.0


class Watched:
    """The policy itself, until its replay is not worth going on with."""

    def __init__(
        self, policy: Policy, scene: Scene, late_share: float, replica_hours: float = math.inf
    ) -> None:
        self.interval_seconds = policy.interval_seconds
        self._policy, self._scene = policy, scene
        scored = scene.trace.requests.arrival_seconds >= scene.warm_up_seconds
        self._allowed = late_share * float(scored.sum())
        self._affordable_seconds = replica_hours * 3600.0
        self._paid_seconds = 0.0
        self._last_seconds = scene.warm_up_seconds
        self._late: dict[str, Counts] = {}
        self._before: Counts | None = None

    def desired(self, view: View) -> int:
        """Raises :class:`Late` or :class:`Dear`, or answers as the policy does."""
        if view.now_seconds > self._scene.warm_up_seconds:
            self._pay(view)
            self._count(view)
        return self._policy.desired(view)

    def _pay(self, view: View) -> None:
        until_seconds = min(view.now_seconds, self._scene.trace.seconds)
        passed = max(until_seconds - self._last_seconds, 0.0)
        self._paid_seconds += passed * len(view.replicas)
        self._last_seconds = max(until_seconds, self._last_seconds)
        if self._paid_seconds > self._affordable_seconds:
            raise Dear(view.now_seconds)

    def _count(self, view: View) -> None:
        targets = self._scene.targets
        for name, sample in view.samples.items():
            self._late[name] = Counts(
                _above(sample.ttft_seconds, targets.ttft_seconds),
                _above(sample.tpot_seconds, targets.tpot_seconds),
            )
        ttft = sum(each.ttft for each in self._late.values())
        tpot = sum(each.tpot for each in self._late.values())
        if self._before is None:
            self._before = Counts(ttft, tpot)
            # what is under way came in the warm-up and is not scored
            self._allowed += sum(_held(each) for each in view.samples.values())
        if max(ttft - self._before.ttft, tpot - self._before.tpot) > self._allowed:
            raise Late(view.now_seconds)


def _above(histogram: Histogram | None, target: float) -> float:
    if histogram is None:
        return 0.0
    bounds = zip(histogram.upper_bounds, histogram.counts, strict=True)
    return histogram.count - next(count for bound, count in bounds if bound >= target)


def _held(sample: Sample) -> float:
    return 1.2 * ((sample.running or 0.0) + (sample.waiting or 0.0))  # gauges carry noise
