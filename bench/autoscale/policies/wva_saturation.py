"""WVA's saturation analyzer V1 (its default): one replica more or less by spare KV cache and queue.

Source: ``llm-d-workload-variant-autoscaler:internal/saturation/analyzer.go``. One-minute maxima per
replica; saturated at 80 % of KV cache or 5 waiting; up when the mean spare of the others falls
below 10 % or 3 requests; down when it would not after losing one; nothing while a replica starts.
The number goes to an HPA with the guide's behaviour (240 s both ways, 10 pods in 150 s).
Tuned: ``kv_threshold``, and ``window_seconds`` of the HPA (0: WVA's number at once).
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.autoscale.policies import fleet, hpa
from bench.autoscale.policies.history import History
from bench.autoscale.policies.service import Service
from bench.autoscale.policy import View

KV_THRESHOLD = 0.80
KV_SPARE_TRIGGER = 0.10
QUEUE_THRESHOLD = 5.0
QUEUE_SPARE_TRIGGER = 3.0
WINDOW_SECONDS = 60.0
HPA_WINDOW_SECONDS = 240.0
LEAST_NON_SATURATED = 2


def behaviour(service: Service, window_seconds: float) -> hpa.Behaviour:
    """The HPA that follows ``wva_desired_replicas``."""
    direction = hpa.Direction(window_seconds, (hpa.Rule(10.0, 150.0),))
    return hpa.Behaviour(service.bounds, direction, direction)


@dataclass(frozen=True, slots=True)
class Load:
    """One replica's worst minute."""

    kv_cache_usage: float
    waiting: float


class WvaSaturation:
    """One variant, so that cheapest and dearest are the same."""

    interval_seconds = 15.0

    def __init__(
        self,
        service: Service,
        kv_threshold: float = KV_THRESHOLD,
        window_seconds: float = HPA_WINDOW_SECONDS,
    ) -> None:
        self._kv_threshold = kv_threshold
        self._bounds = service.bounds
        self._history = History(WINDOW_SECONDS)
        self._behaviour = behaviour(service, window_seconds)
        self._asked: int | None = None

    def desired(self, view: View) -> int:
        """What the HPA makes of the number of WVA."""
        self._history.add(view)
        current = len(fleet.wanted(view))
        self._asked = self._bounds.clamped(self._target(view, current))
        return self._behaviour.allowed(view.now_seconds, current, self._asked)

    def _target(self, view: View, current: int) -> int:
        """``CalculateSaturationTargets``: in transition what was asked before, else ±1."""
        if self._asked is not None and self._asked != current:
            return self._asked
        if len(fleet.ready(view)) < current:
            return current
        return current + change(self._loads(view), self._kv_threshold)

    def _loads(self, view: View) -> list[Load]:
        told = [self._history.within(each.name, WINDOW_SECONDS) for each in fleet.ready(view)]
        return [
            Load(max(s.kv_cache_usage or 0.0 for s in each), max(s.waiting or 0.0 for s in each))
            for each in told
            if each
        ]


def change(loads: list[Load], kv_threshold: float) -> int:
    """+1, -1 or 0 for the replicas' loads."""
    free = [
        each
        for each in loads
        if each.kv_cache_usage < kv_threshold and each.waiting < QUEUE_THRESHOLD
    ]
    if not loads:
        return 0
    kv = sum(each.kv_cache_usage for each in free) / len(free) if free else kv_threshold
    queue = sum(each.waiting for each in free) / len(free) if free else QUEUE_THRESHOLD
    if not _has_spare(kv, queue, kv_threshold):
        return 1
    if len(free) < LEAST_NON_SATURATED:
        return 0
    factor = len(free) / (len(free) - 1)
    return -1 if _has_spare(kv * factor, queue * factor, kv_threshold) else 0


def _has_spare(kv_cache_usage: float, waiting: float, kv_threshold: float) -> bool:
    return (
        kv_threshold - kv_cache_usage >= KV_SPARE_TRIGGER
        and QUEUE_THRESHOLD - waiting >= QUEUE_SPARE_TRIGGER
    )
