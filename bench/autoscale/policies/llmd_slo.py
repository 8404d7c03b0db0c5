"""llm-d's slo-aware loop: KEDA on P90 latency over its SLO, with a band and a credit for starts.

Source: ``llm-d:guides/workload-autoscaling/README.slo-aware.md`` and
``slo-aware/benchmark-templates/plot_run.py:formula``. Its rules prefer the router's predicted
latency and fall back on the actual one; a scrape of the engines has only the actual one, so a
breach is seen when first tokens arrive, not when they are due. TTFT and TPOT come from vLLM's
histograms, whose bounds near a target are coarser than the router's.
Tuned: ``up`` (θ_up; θ_dn keeps its share of it).
"""

from __future__ import annotations

import math
from collections import deque

from bench.autoscale.policies import fleet, hpa
from bench.autoscale.policies.history import History
from bench.autoscale.policies.service import Service
from bench.autoscale.policy import View

UP = 0.55
DOWN = 0.40
CLAMP = 2.0
QUANTILE = 0.9
RATE_SECONDS = 60.0
SMOOTHING_SECONDS = 45.0
UP_DIRECTION = hpa.Direction(30.0, (hpa.Rule(100.0, 60.0, is_percent=True), hpa.Rule(4.0, 60.0)))
DOWN_DIRECTION = hpa.Direction(180.0, (hpa.Rule(1.0, 120.0),))


class LlmdSlo:
    """Recording rules, formula and HPA in one; each is evaluated every 15 s."""

    interval_seconds = 15.0

    def __init__(self, service: Service, up: float = UP) -> None:
        self._service = service
        self._up = up
        self._down = up * DOWN / UP
        self._history = History(RATE_SECONDS)
        self._raw: deque[tuple[float, float]] = deque()
        self._behaviour = hpa.Behaviour(service.bounds, UP_DIRECTION, DOWN_DIRECTION)

    def desired(self, view: View) -> int:
        """What the formula asks for and the HPA allows."""
        self._history.add(view)
        current, ready = len(fleet.wanted(view)), len(fleet.ready(view))
        asked = formula(self._saturation(view.now_seconds), current, ready, self._up, self._down)
        return self._behaviour.allowed(view.now_seconds, current, asked)

    def _saturation(self, now_seconds: float) -> float:
        """``avg_over_time(clamp_max(raw, 2)[45s])``."""
        self._raw.append((now_seconds, min(self._raw_saturation(), CLAMP)))
        while self._raw[0][0] <= now_seconds - SMOOTHING_SECONDS:
            self._raw.popleft()
        return sum(raw for _, raw in self._raw) / len(self._raw)

    def _raw_saturation(self) -> float:
        ttft = self._history.quantile(QUANTILE, lambda each: each.ttft_seconds, RATE_SECONDS)
        tpot = self._history.quantile(QUANTILE, lambda each: each.tpot_seconds, RATE_SECONDS)
        ratios = (
            ttft / self._service.ttft_target_seconds,
            tpot / self._service.tpot_target_seconds,
        )
        return max((ratio for ratio in ratios if not math.isnan(ratio)), default=0.0)


def formula(saturation: float, replicas: int, ready: int, up: float, down: float) -> int:
    """The ScaledObject's law: credited above ``up``, uncredited below ``down``, else no change.

    Nothing keeps the credited branch from asking for less than there is.
    """
    if saturation > up:
        credit = ready / replicas if 0 < ready < replicas else 1.0
        return replicas + math.ceil(replicas * (saturation * credit / up - 1.0))
    if saturation < down:
        return replicas - math.floor(replicas * (1.0 - saturation / down))
    return replicas
