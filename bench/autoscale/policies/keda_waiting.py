"""KEDA on ``vllm:num_requests_waiting``, 5 for each pod: production-stack's default trigger.

Their query is the bare metric, which KEDA refuses as soon as there are two pods; summed, as their
users run it. AverageValue, so that an empty queue asks for the minimum. Polling every 15 s, HPA's
default behaviour between 1 and N. Tuned: ``threshold``.
Source: ``production-stack:helm/values.yaml``.
"""

from __future__ import annotations

from bench.autoscale.policies import fleet, hpa
from bench.autoscale.policies.service import Service
from bench.autoscale.policy import View

THRESHOLD = 5.0


class KedaWaiting:
    """An External metric with an AverageValue; an absent metric reads as 0 (ignoreNullValues)."""

    interval_seconds = hpa.INTERVAL_SECONDS

    def __init__(self, service: Service, threshold: float = THRESHOLD) -> None:
        self._threshold = threshold
        self._behaviour = hpa.Behaviour(service.bounds)

    def desired(self, view: View) -> int:
        """⌈waiting ÷ threshold⌉."""
        current = len(fleet.wanted(view))
        total = sum(fleet.instant(view, fleet.waiting).values())
        proposed = hpa.external_replicas(total, current, self._threshold)
        return self._behaviour.allowed(view.now_seconds, current, proposed)
