"""Dynamo's throughput loop: every 180 s the replicas for the traffic it predicts.

Source: ``dynamo:components/src/dynamo/planner/core/throughput_scaling.py``: ⌈requests/s ÷ engine's
rate⌉, the rate of the largest batch within both targets by the regression, which begins with the
sweep before the deployment and goes on with what the engines tell. Traffic is what finished in the
interval, with the mean lengths and the share of prompts found in the cache. All means.
Tuned: ``scale`` of both targets; ``predictor``.
"""

from __future__ import annotations

import math

from bench.autoscale.policies import fleet
from bench.autoscale.policies.dynamo_load import INTERVAL_SECONDS, LoadLoop
from bench.autoscale.policies.dynamo_predictors import PREDICTORS, Predictor
from bench.autoscale.policies.dynamo_regression import greatest_rate
from bench.autoscale.policies.history import History
from bench.autoscale.policies.service import Service
from bench.autoscale.policy import View

THROUGHPUT_INTERVAL_SECONDS = 180.0


class ThroughputLoop:
    """Predicts and divides."""

    def __init__(self, service: Service, scale: float, predictor: str, load: LoadLoop) -> None:
        self._service = service
        self._scale = scale
        self._load = load
        self._history = History(THROUGHPUT_INTERVAL_SECONDS)
        self._due_seconds: float | None = None
        self._predictors: list[Predictor] = [PREDICTORS[predictor]() for _ in range(4)]
        self.hit_rate = 0.0
        """The predicted share of prompt tokens found in the cache."""

    def wanted(self, view: View) -> int | None:
        """Replicas at the end of an interval, else None; None too while the model is not ready."""
        self._history.add(view)
        if self._due_seconds is None:
            self._due_seconds = view.now_seconds + THROUGHPUT_INTERVAL_SECONDS
        if view.now_seconds < self._due_seconds:
            return None
        self._due_seconds = view.now_seconds + THROUGHPUT_INTERVAL_SECONDS
        for predictor, value in zip(self._predictors, self._traffic(), strict=True):
            predictor.add(value)
        return self._replicas()

    def _replicas(self) -> int | None:
        requests, prompt, answer, hit_rate = (each.next() for each in self._predictors)
        self.hit_rate = min(max(hit_rate, 0.0), 1.0)
        service = self._service
        rate = greatest_rate(
            self._load.own,
            prompt,
            answer,
            (service.batched_tokens, service.sequences, service.kv_tokens),
            (self._scale * service.ttft_target_seconds, self._scale * service.tpot_target_seconds),
            self.hit_rate,
        )
        demand = requests / THROUGHPUT_INTERVAL_SECONDS
        return max(1, math.ceil(demand / rate)) if rate > 0.0 else None

    def _traffic(self) -> tuple[float, float, float, float]:
        """Requests, their mean prompt and answer, and the share of prompts that was cached."""
        history, seconds = self._history, THROUGHPUT_INTERVAL_SECONDS
        names = history.names()
        prompt = history.mean(lambda each: each.prompt_lengths_tokens, names, seconds)
        answer = history.mean(lambda each: each.answer_lengths_tokens, names, seconds)
        tokens = history.total_increase(lambda each: each.prompt_tokens, seconds)
        cached = history.total_increase(lambda each: each.cached_prompt_tokens, seconds)
        return (
            history.total_increase(lambda each: each.finished_requests, seconds),
            prompt or 0.0,
            answer or 0.0,
            cached / tokens if tokens > 0.0 else 0.0,
        )


class DynamoThroughput:
    """The throughput loop alone; the load loop only feeds the regression."""

    interval_seconds = INTERVAL_SECONDS

    def __init__(self, service: Service, scale: float = 1.0, predictor: str = "kalman") -> None:
        self._load = LoadLoop(service, scale, "sla")
        self._throughput = ThroughputLoop(service, scale, predictor, self._load)

    def desired(self, view: View) -> int:
        """The loop's number when it has one, else as it is."""
        self._load.observe(view)
        asked = self._throughput.wanted(view)
        return len(fleet.wanted(view)) if asked is None else asked
