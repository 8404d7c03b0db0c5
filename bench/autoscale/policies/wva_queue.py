"""WVA's queueing-model analyzer (2026): replicas for the arrival rate by a model learned online.

Source: ``internal/engines/analyzers/queueingmodel/analyzer.go``. Rates and means over 5 min; every
replica's means tune (alpha, beta, gamma); the greatest rate that meets both targets, as means,
divides the arrivals: ⌈λ/λ*⌉. The published optimizer then compares the arrivals with the supply of
that very number, so that it could never act; its number is acted on here. Without parameters or
with a target below what the model can reach nothing is done. The number goes to an HPA as that of
the saturation law does. Arrivals, which WVA reads at the router, are what a replica finished and
what it holds more than before.
Tuned: ``scale`` of both targets, for they are compared with means; ``window_seconds`` of the HPA.
"""

from __future__ import annotations

import math

from bench.autoscale.policies import fleet
from bench.autoscale.policies.history import History
from bench.autoscale.policies.service import Service
from bench.autoscale.policies.wva_queueing import Queue, RequestSize
from bench.autoscale.policies.wva_saturation import HPA_WINDOW_SECONDS, behaviour
from bench.autoscale.policies.wva_tuner import Observed, Tuner
from bench.autoscale.policy import View

WINDOW_SECONDS = 300.0
QUEUE_REQUESTS = 100
SEQUENCES = 256
"""``DefaultMaxBatchSize``, since the deployment has no ``--max-num-seqs`` to read."""
MILLISECONDS = 1000.0


class WvaQueue:
    """One variant."""

    interval_seconds = 15.0

    def __init__(
        self, service: Service, scale: float = 1.0, window_seconds: float = HPA_WINDOW_SECONDS
    ) -> None:
        self._service = service
        self._scale = scale
        self._history = History(WINDOW_SECONDS)
        self._sequences = min(service.sequences, SEQUENCES)
        self._tuner = Tuner(self._sequences, service.profile)
        self._behaviour = behaviour(service, window_seconds)

    def desired(self, view: View) -> int:
        """What the HPA makes of the number of WVA."""
        self._history.add(view)
        current = len(fleet.wanted(view))
        busy = [each for name in self._history.names() if (each := self._observed(name))]
        for each in busy:
            self._tuner.learn(each)
        return self._behaviour.allowed(view.now_seconds, current, self._target(busy, current))

    def _target(self, busy: list[Observed], current: int) -> int:
        parameters = self._tuner.parameters
        if parameters is None or not busy:
            return current
        total = sum(each.requests_per_second for each in busy)
        queue = Queue(parameters, _mean_size(busy, total), self._sequences, QUEUE_REQUESTS)
        greatest = queue.greatest_rate(
            self._scale * self._service.ttft_target_seconds * MILLISECONDS,
            self._scale * self._service.tpot_target_seconds * MILLISECONDS,
        )
        if greatest is None or not greatest > 0.0:  # nor where the filter's state is no number
            return current
        return max(1, math.ceil(total / greatest))

    def _observed(self, name: str) -> Observed | None:
        rate = self._arrivals(name)
        means = [
            self._history.mean(lambda each: each.prompt_lengths_tokens, (name,), WINDOW_SECONDS),
            self._history.mean(lambda each: each.answer_lengths_tokens, (name,), WINDOW_SECONDS),
            self._history.mean(lambda each: each.ttft_seconds, (name,), WINDOW_SECONDS),
            self._history.mean(lambda each: each.inter_token_seconds, (name,), WINDOW_SECONDS),
        ]
        if rate is None or any(mean is None or mean <= 0.0 for mean in means):
            return None
        prompt, answer, ttft, token = (mean or 0.0 for mean in means)
        size = RequestSize(prompt, max(answer, 1.0))
        return Observed(rate, size, ttft * MILLISECONDS, token * MILLISECONDS)

    def _arrivals(self, name: str) -> float | None:
        told = self._history.within(name, WINDOW_SECONDS)
        if len(told) < 2:
            return None
        first, last = told[0], told[-1]
        held = (fleet.in_flight(last) or 0.0) - (fleet.in_flight(first) or 0.0)
        finished = (last.finished_requests or 0.0) - (first.finished_requests or 0.0)
        rate = (finished + held) / (last.at_seconds - first.at_seconds)
        return rate if rate > 0.0 else None


def _mean_size(busy: list[Observed], total: float) -> RequestSize:
    """Lengths weighted by arrivals."""
    prompt = sum(each.requests_per_second * each.size.input_tokens for each in busy)
    answer = sum(each.requests_per_second * each.size.output_tokens for each in busy)
    return RequestSize(prompt / total, answer / total)
