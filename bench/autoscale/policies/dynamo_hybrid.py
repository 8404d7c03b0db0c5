"""Dynamo with both loops: the throughput loop sets the floor under what the load loop asks for.

Source: ``dynamo:components/src/dynamo/planner/core/{state_machine,load_scaling}.py``.
Tuned: ``scale`` of both targets; ``predictor``.
"""

from __future__ import annotations

from bench.autoscale.policies import fleet
from bench.autoscale.policies.dynamo_load import INTERVAL_SECONDS, LoadLoop
from bench.autoscale.policies.dynamo_throughput import ThroughputLoop
from bench.autoscale.policies.service import Service
from bench.autoscale.policy import View


class DynamoHybrid:
    """The floor moves only with a decision of the load loop, so not while a replica starts."""

    interval_seconds = INTERVAL_SECONDS

    def __init__(self, service: Service, scale: float = 1.0, predictor: str = "kalman") -> None:
        self._load = LoadLoop(service, scale, "sla")
        self._throughput = ThroughputLoop(service, scale, predictor, self._load)
        self._floor = 1

    def desired(self, view: View) -> int:
        """The load loop's number, not below the floor of the interval before."""
        self._load.observe(view)
        asked = self._load.wanted(view, self._throughput.hit_rate)
        floor = self._floor
        self._floor = self._throughput.wanted(view) or self._floor
        return len(fleet.wanted(view)) if asked is None else max(asked, floor)
