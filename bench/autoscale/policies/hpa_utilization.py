"""HPA on GPU utilisation, 80 %, as many clusters have it; known to be bad for serving.

``DCGM_FI_DEV_GPU_UTIL`` is the share of time in which any kernel ran, so an engine with one
request reads like a full one. A scrape of vLLM does not have it; the share of the last minute's
scrapes with a batch says the same. Tuned: ``target``.
"""

from __future__ import annotations

from bench.autoscale.policies import fleet, hpa
from bench.autoscale.policies.history import History
from bench.autoscale.policies.service import Service
from bench.autoscale.policy import View

TARGET = 0.8
WINDOW_SECONDS = 60.0


class HpaUtilization:
    """A Pods metric, ``avg_over_time(DCGM_FI_DEV_GPU_UTIL[1m])``, with the default behaviour."""

    interval_seconds = hpa.INTERVAL_SECONDS

    def __init__(self, service: Service, target: float = TARGET) -> None:
        self._target = target
        self._history = History(WINDOW_SECONDS)
        self._behaviour = hpa.Behaviour(service.bounds)

    def desired(self, view: View) -> int:
        """Replicas that bring the mean to the target."""
        self._history.add(view)
        pods = fleet.wanted(view)
        busy = {each.name: self._busy(each.name) for each in pods}
        told = {name: share for name, share in busy.items() if share is not None}
        proposed = hpa.pods_replicas(told, pods, self._target)
        return self._behaviour.allowed(view.now_seconds, len(pods), proposed)

    def _busy(self, name: str) -> float | None:
        told = [each.running for each in self._history.within(name, WINDOW_SECONDS)]
        known = [running for running in told if running is not None]
        return sum(running > 0.0 for running in known) / len(known) if known else None
