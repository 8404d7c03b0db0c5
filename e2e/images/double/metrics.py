"""The metrics of vLLM 0.29's V1 engine: its names, labels, buckets, and when each is observed.

Left out are those of what the double does not have: speculative decoding, LoRA, multi-modal input,
KV transfer, tool calls, sleep mode and estimated FLOPs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

from e2e.images.double.batch import Batch, Emitted, Iteration
from e2e.images.double.sequence import Sequence as Request

ENGINE = "0"
FINISHED_REASONS = ("stop", "length", "abort", "error", "repetition")

REQUEST_LATENCY_SECONDS = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
TIME_TO_FIRST_TOKEN_SECONDS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5),
    *(10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
INTER_TOKEN_SECONDS = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5),
    *(10.0, 20.0, 40.0, 80.0),
)
ITERATION_TOKENS = tuple(float(tokens) for tokens in (1, *(2**power for power in range(3, 15))))

Metric = TypeVar("Metric", bound=MetricWrapperBase)


def one_two_five(limit: int) -> tuple[float, ...]:
    """``1, 2, 5, 10, ...`` up to ``limit``."""
    steps = (step * 10**power for power in range(len(str(limit))) for step in (1, 2, 5))
    return tuple(float(step) for step in steps if step <= limit)


class Metrics:
    """One engine's metrics, in a registry of their own."""

    def __init__(self, model_name: str, batch: Batch, *, show_old_names: bool = False) -> None:
        self.registry = CollectorRegistry()
        self._labels = {"model_name": model_name, "engine": ENGINE}
        self._batch = batch
        self._state(show_old_names)
        self._counters()
        self._latencies()
        self._sizes(batch.limits.max_model_len)
        self._cache_config()

    def _state(self, show_old_names: bool) -> None:
        gauge = self._gauge
        self._running = gauge("num_requests_running", "Number of requests in execution batches.")
        self._waiting = gauge("num_requests_waiting", "Number of requests waiting.")
        by_reason = self._make(Gauge, "num_requests_waiting_by_reason", "As above.", ["reason"])
        self._capacity = by_reason.labels(**self._labels, reason="capacity")
        by_reason.labels(**self._labels, reason="deferred")
        self._usage = [gauge("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.")]
        if show_old_names:  # until 0.9
            self._usage.append(gauge("gpu_cache_usage_perc", "As kv_cache_usage_perc."))

    def _counters(self) -> None:
        counter = self._counter
        self._preemptions = counter("num_preemptions", "Cumulative number of preemptions.")
        self._prompt_tokens = counter("prompt_tokens", "Number of prefill tokens processed.")
        counter("prompt_tokens_cached", "Number of cached prompt tokens.")
        by_source = self._make(Counter, "prompt_tokens_by_source", "As above.", ["source"])
        self._computed_tokens = by_source.labels(**self._labels, source="local_compute")
        for source in ("local_cache_hit", "external_kv_transfer"):
            by_source.labels(**self._labels, source=source)
        self._generated = counter("generation_tokens", "Number of generation tokens processed.")
        self._queries = counter("prefix_cache_queries", "Number of queried tokens.")
        counter("prefix_cache_hits", "Number of cached tokens.")
        success = self._make(Counter, "request_success", "Finished requests.", ["finished_reason"])
        self._finished = {
            reason: success.labels(**self._labels, finished_reason=reason)
            for reason in FINISHED_REASONS
        }

    def _latencies(self) -> None:
        histogram, request = self._histogram, REQUEST_LATENCY_SECONDS
        self._first = histogram("time_to_first_token_seconds", TIME_TO_FIRST_TOKEN_SECONDS)
        self._gap = histogram("inter_token_latency_seconds", INTER_TOKEN_SECONDS)
        per_token = "request_time_per_output_token_seconds"
        self._per_token = histogram(per_token, INTER_TOKEN_SECONDS)
        self._whole = histogram("e2e_request_latency_seconds", request)
        self._queue = histogram("request_queue_time_seconds", request)
        self._inference = histogram("request_inference_time_seconds", request)
        self._prefill = histogram("request_prefill_time_seconds", request)
        self._decode = histogram("request_decode_time_seconds", request)

    def _sizes(self, max_model_len: int) -> None:
        tokens = one_two_five(max_model_len)
        self._request_prompt = self._histogram("request_prompt_tokens", tokens)
        self._request_computed = self._histogram("request_prefill_kv_computed_tokens", tokens)
        self._request_generated = self._histogram("request_generation_tokens", tokens)
        self._request_longest = self._histogram("request_max_num_generation_tokens", tokens)
        self._request_limit = self._histogram("request_params_max_tokens", tokens)
        self._request_answers = self._histogram("request_params_n", (1, 2, 5, 10, 20))
        self._iteration = self._histogram("iteration_tokens_total", ITERATION_TOKENS)

    def _cache_config(self) -> None:
        limits = self._batch.limits
        config = {"block_size": limits.block_size, "num_gpu_blocks": limits.num_blocks}
        labels = {"engine": ENGINE, **{name: str(value) for name, value in config.items()}}
        info = Gauge(
            "vllm:cache_config_info",
            "Information of the LLMEngine CacheConfig",
            list(labels),
            registry=self.registry,
        )
        info.labels(**labels).set(1)

    def _make(
        self, kind: type[Metric], name: str, text: str, more_labels: Iterable[str] = ()
    ) -> Metric:
        return kind(f"vllm:{name}", text, [*self._labels, *more_labels], registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return self._make(Gauge, name, text).labels(**self._labels)

    def _counter(self, name: str, text: str) -> Counter:
        return self._make(Counter, name, text).labels(**self._labels)

    def _histogram(self, name: str, buckets: Sequence[float]) -> Histogram:
        text = f"Histogram of {name.replace('_', ' ')}."
        names = list(self._labels)
        made = Histogram(f"vllm:{name}", text, names, buckets=buckets, registry=self.registry)
        return made.labels(**self._labels)

    def look(self) -> None:
        """Set the gauges to what the batch is now."""
        self._running.set(len(self._batch.running))
        self._waiting.set(len(self._batch.waiting))
        self._capacity.set(len(self._batch.waiting))
        for gauge in self._usage:
            gauge.set(self._batch.cache_usage)

    def iterated(self, iteration: Iteration, emitted: Sequence[Emitted]) -> None:
        """Count one iteration and its tokens."""
        self._iteration.observe(iteration.tokens)
        self._preemptions.inc(iteration.preempted)
        self._generated.inc(len(emitted))
        for token in emitted:
            if token.is_first:
                self._answer_began(token)
            else:
                self._gap.observe(token.gap_seconds)
        self.look()

    def _answer_began(self, token: Emitted) -> None:
        self._first.observe(token.gap_seconds)
        self._prompt_tokens.inc(token.sequence.prompt_tokens)
        self._computed_tokens.inc(token.sequence.prompt_tokens)
        self._queries.inc(token.sequence.prompt_tokens)

    def finished(self, request: Request, reason: str, now: float) -> None:
        """Count a request that left the engine for ``reason``."""
        self._finished[reason].inc()
        self._request_prompt.observe(request.prompt_tokens)
        self._request_generated.observe(request.generated_tokens)
        self._request_longest.observe(request.generated_tokens)
        self._request_limit.observe(request.max_tokens)
        self._request_answers.observe(1)
        self._whole.observe(now - request.arrived)
        if request.first_token is not None:
            self._phases(request)

    def _phases(self, request: Request) -> None:
        assert request.scheduled is not None
        assert request.first_token is not None
        assert request.last_token is not None
        decode_seconds = request.last_token - request.first_token
        self._request_computed.observe(request.prompt_tokens)
        self._queue.observe(request.scheduled - request.arrived)
        self._prefill.observe(request.first_token - request.scheduled)
        self._decode.observe(decode_seconds)
        self._inference.observe(request.last_token - request.scheduled)
        if request.generated_tokens > 1:
            self._per_token.observe(decode_seconds / (request.generated_tokens - 1))
