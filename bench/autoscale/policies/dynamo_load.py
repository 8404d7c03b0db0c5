"""Dynamo's load loop for aggregated engines: every 5 s one replica more, one less, or none.

Source: ``dynamo:components/src/dynamo/planner/core/load_scaling.py``. In SLA mode the regression
estimates every engine's next TTFT and ITL: up when all are over their target, down when all would
be safe with the load of N on N-1 at 80 % of it (``load_scaling_down_sensitivity``) and in the
cache. The two easy modes compare (cache + queued prefill) with the cache's size: "throughput",
Dynamo's default, > 1 on any and < 0.6 on all; "latency" 0.4 and 0.1. Nothing while a replica
starts or one does not tell. The regression begins with the sweep before the deployment.
Tuned: ``scale`` of both targets in SLA mode; both easy modes are tried too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bench.autoscale.policies import fleet
from bench.autoscale.policies.dynamo_passes import EngineState, Passes
from bench.autoscale.policies.dynamo_regression import Regression
from bench.autoscale.policies.service import Service
from bench.autoscale.policy import View
from poolwise.plan.signals.sample import Sample

INTERVAL_SECONDS = 5.0
SENSITIVITY = 0.8
EASY = {"throughput": (1.0, 0.6), "latency": (0.4, 0.1)}
"""Shares of the cache above which any engine, and below which every engine, moves the fleet."""


@dataclass(frozen=True, slots=True)
class Engines:
    """The engines, what is known of them, and what is asked of them."""

    own: Regression
    states: list[EngineState]
    service: Service
    scale: float
    hit_rate: float

    @property
    def replicas(self) -> int:
        """How many there are."""
        return len(self.states)

    @property
    def _growth(self) -> float:
        return self.replicas / (self.replicas - 1)

    def prefill_change(self) -> int:
        """+1 when every TTFT is over its target, -1 when the queues of N fit on N-1."""
        target = self.scale * self.service.ttft_target_seconds
        if all(
            self._ttft(s.queued_prefill_tokens, s.decode_kv_tokens) > target for s in self.states
        ):
            return 1
        if self.replicas > 1 and all(self._fits_prefill(each, target) for each in self.states):
            return -1
        return 0

    def _ttft(self, queued_tokens: float, decode_kv_tokens: float) -> float:
        batched = self.service.batched_tokens
        return self.own.ttft_seconds(queued_tokens, batched, decode_kv_tokens, self.hit_rate)

    def _fits_prefill(self, state: EngineState, target: float) -> bool:
        """What the queue adds stays under 80 % of what its own prefill leaves of the target."""
        decode = int(state.decode_kv_tokens * self._growth)
        alone = self._ttft(0.0, decode)
        queued = self._ttft(int(state.queued_prefill_tokens * self._growth), decode) - alone
        budget = (target - alone) * SENSITIVITY
        return budget > 0.0 and queued < budget

    def decode_change(self) -> int:
        """+1 when every ITL is over its target, -1 when the caches of N fit on N-1."""
        target = self.scale * self.service.tpot_target_seconds
        if all(self.own.itl_seconds(each.decode_kv_tokens) > target for each in self.states):
            return 1
        if self.replicas > 1 and all(self._fits_decode(each, target) for each in self.states):
            return -1
        return 0

    def _fits_decode(self, state: EngineState, target: float) -> bool:
        held = int((state.decode_kv_tokens + state.queued_prefill_tokens) * self._growth)
        if held >= self.service.kv_tokens:
            return False
        return self.own.itl_seconds(held) < target * SENSITIVITY

    def sla_change(self) -> int:
        """Up when either says so, down when both do."""
        changes = self.prefill_change(), self.decode_change()
        return 1 if 1 in changes else max(changes)

    def easy_change(self, mode: str) -> int:
        """By shares of the cache."""
        up, down = EASY[mode]
        shares = [
            (each.decode_kv_tokens + each.queued_prefill_tokens) / self.service.kv_tokens
            for each in self.states
        ]
        if any(share > up for share in shares):
            return 1
        return -1 if self.replicas > 1 and all(share < down for share in shares) else 0


class LoadLoop:
    """The loop without its floor."""

    def __init__(self, service: Service, scale: float, mode: str) -> None:
        self._service = service
        self._scale = scale
        self._mode = mode
        self.own = Regression()
        self._passes = Passes(service.kv_tokens)
        self._moved_at_seconds = -math.inf
        for each in service.profile:
            self.own.add(each)

    def observe(self, view: View) -> None:
        """Feed the regression."""
        for replica in fleet.ready(view):
            if replica.name in view.samples:
                self._passes.observe(self.own, view.samples[replica.name])

    def wanted(self, view: View, hit_rate: float = 0.0) -> int | None:
        """Replicas, or None where it only observes."""
        ready = fleet.ready(view)
        told = [view.samples[each.name] for each in ready if each.name in view.samples]
        is_changing = len(ready) != len(fleet.wanted(view))
        if is_changing or not told or len(told) != len(ready) or self._is_old(told):
            return None
        states = [self._passes.state(self.own, each) for each in told]
        engines = Engines(self.own, states, self._service, self._scale, hit_rate)
        change = self._change(engines)
        if change:
            self._moved_at_seconds = view.now_seconds
        return None if change is None else max(1, len(ready) + change)

    def _is_old(self, told: list[Sample]) -> bool:
        """Dynamo's engines stream; a scrape from before the last move must not move it again."""
        return min(each.at_seconds for each in told) <= self._moved_at_seconds

    def _change(self, engines: Engines) -> int | None:
        if self._mode in EASY:
            return engines.easy_change(self._mode)
        return engines.sla_change() if self.own.is_ready() else None


class DynamoLoad:
    """The load loop alone."""

    interval_seconds = INTERVAL_SECONDS

    def __init__(self, service: Service, scale: float = 1.0, mode: str = "sla") -> None:
        self._loop = LoadLoop(service, scale, mode)

    def desired(self, view: View) -> int:
        """One more, one less, or as it is."""
        self._loop.observe(view)
        asked = self._loop.wanted(view)
        return len(fleet.wanted(view)) if asked is None else asked
