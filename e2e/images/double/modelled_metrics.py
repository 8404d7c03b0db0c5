"""What a modelled engine tells: vLLM's names for what the simulator's replica counts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from e2e.images.double.metrics import ENGINE, one_two_five
from poolwise.sim.serving.metrics import Reading, Tally
from poolwise.sim.serving.replica import Replica


class ModelledMetrics(Collector):
    """Reads the replica whenever it is asked; ``caught_up`` brings it to now and tells when."""

    def __init__(
        self, name: str, replica: Replica, caught_up: Callable[[], float], longest_tokens: int
    ) -> None:
        self._labels = {"model_name": name, "engine": ENGINE}
        self._replica, self._caught_up = replica, caught_up
        self._lengths = one_two_five(longest_tokens)

    def collect(self) -> Iterator[Metric]:
        """All of them."""
        now, replica = self._caught_up(), self._replica
        told = replica.metrics.read()
        yield self._gauge("num_requests_running", replica.running)
        yield self._gauge("num_requests_waiting", replica.waiting)
        yield self._gauge("kv_cache_usage_perc", replica.kv_cache_usage(now))
        yield self._counter("num_preemptions", told.preemptions)
        yield self._counter("prompt_tokens", told.prompt_tokens)
        yield self._counter("prompt_tokens_cached", told.cached_prompt_tokens)
        yield self._counter("generation_tokens", replica.generated_by(now))
        yield self._counter("request_success", told.finished, finished_reason="stop")
        yield from self._histograms(told)

    def _histograms(self, told: Reading) -> Iterator[Metric]:
        yield self._histogram("time_to_first_token_seconds", told.ttft)
        yield self._histogram("inter_token_latency_seconds", told.gaps)
        yield self._histogram("request_time_per_output_token_seconds", told.tpot)
        yield self._histogram("e2e_request_latency_seconds", told.e2e)
        most = len(self._lengths)
        yield self._histogram("request_prompt_tokens", told.prompt_lengths, most)
        yield self._histogram("request_generation_tokens", told.answer_lengths, most)

    def _gauge(self, name: str, value: float) -> Metric:
        family = GaugeMetricFamily(f"vllm:{name}", name, labels=list(self._labels))
        family.add_metric(list(self._labels.values()), value)
        return family

    def _counter(self, name: str, value: float, **more: str) -> Metric:
        labels = {**self._labels, **more}
        family = CounterMetricFamily(f"vllm:{name}", name, labels=list(labels))
        family.add_metric(list(labels.values()), value)
        return family

    def _histogram(self, name: str, tally: Tally, most: int | None = None) -> Metric:
        """``most`` buckets below infinity: vLLM's lengths end at the longest context."""
        counts = list(itertools.accumulate(tally.counts))
        bounds = tally.bounds[:most]
        buckets = [
            (floatToGoString(bound), counts[place]) for place, bound in enumerate(bounds)
        ] + [("+Inf", counts[-1])]
        family = HistogramMetricFamily(f"vllm:{name}", name, labels=list(self._labels))
        family.add_metric(list(self._labels.values()), buckets, tally.total)
        return family
