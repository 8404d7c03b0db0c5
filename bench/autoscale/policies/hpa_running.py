"""HPA on the requests in each pod: ``num_requests_running + num_requests_waiting``, mean 16.

The waiting ones are counted because a law on the batch alone is blind beyond a full batch.
Tuned: ``target``, requests in flight per pod.
"""

from __future__ import annotations

from bench.autoscale.policies import fleet, hpa
from bench.autoscale.policies.service import Service
from bench.autoscale.policy import View

TARGET = 16.0


class HpaRunning:
    """A Pods metric with the default behaviour."""

    interval_seconds = hpa.INTERVAL_SECONDS

    def __init__(self, service: Service, target: float = TARGET) -> None:
        self._target = target
        self._behaviour = hpa.Behaviour(service.bounds)

    def desired(self, view: View) -> int:
        """Replicas that bring the mean to the target."""
        pods = fleet.wanted(view)
        proposed = hpa.pods_replicas(fleet.instant(view, fleet.in_flight), pods, self._target)
        return self._behaviour.allowed(view.now_seconds, len(pods), proposed)
