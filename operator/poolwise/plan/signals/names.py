"""Which metric of which engine tells what: one row per engine, newest names first.

Engines rename metrics between releases, and a renamed one must not read as zero: each canonical
field has all names it ever had, and the first that is told counts. Sources: the engines' own lists
(vLLM docs/usage/metrics, SGLang srt/metrics/collector.py, TGI docs/reference/metrics, Triton
docs/user_guide/metrics, TensorRT-LLM backend docs/metrics). What a gateway's endpoint picker tells
is in :mod:`poolwise.plan.gateway.latencies`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from poolwise.plan.signals.models import OneModel

MILLI = 1e-3


class Fold(enum.Enum):
    """How the series of one metric become the number of one replica."""

    SUM = "sum"
    MOST = "most"
    """The fullest of the engines that share a replica."""


@dataclass(frozen=True, slots=True)
class Source:
    """One metric, or those of its series that bear some labels."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    unit: float = 1.0
    """What one of it is in the canonical unit."""
    fold: Fold = Fold.SUM


@dataclass(frozen=True, slots=True)
class Adapter:
    """What one engine tells."""

    prefixes: tuple[str, ...]
    """Before every name below; releases and wrappers (Ray) differ in it."""
    fields: Mapping[str, tuple[Source, ...]]
    """By field of :class:`Sample`, the newest name first."""
    labels: frozenset[str]
    """Of the series that tell running requests: any other label there is of whoever scraped it."""
    one_model: OneModel | None = None
    """Which of the models counts where the server tells each apart; None: all are the replica's."""


def named(*names: str, unit: float = 1.0, fold: Fold = Fold.SUM) -> tuple[Source, ...]:
    return tuple(Source(name, unit=unit, fold=fold) for name in names)


def labelled(name: str, label: str, value: str, fold: Fold = Fold.SUM) -> Source:
    return Source(name, MappingProxyType({label: value}), fold=fold)


_OF_RAY = frozenset({"Component", "NodeAddress", "ReplicaId", "SessionName", "Version", "WorkerId"})

VLLM = Adapter(
    ("vllm:", "ray_vllm_", "ray_vllm:", "vllm_"),
    {
        "running": named("num_requests_running"),
        "waiting": named("num_requests_waiting"),
        "kv_cache_usage": named("kv_cache_usage_perc", "gpu_cache_usage_perc", fold=Fold.MOST),
        "finished_requests": named("request_success_total", "request_success"),
        "preemptions": named("num_preemptions_total", "num_preemptions"),
        "prompt_tokens": named("prompt_tokens_total"),
        "begun_prompt_tokens": named("prompt_tokens_total"),
        "cached_prompt_tokens": named(
            "prompt_tokens_cached_total", "prefix_cache_hits_total", "gpu_prefix_cache_hits_total"
        ),
        "generated_tokens": named("generation_tokens_total"),
        "ttft_seconds": named("time_to_first_token_seconds"),
        "inter_token_seconds": named(
            "inter_token_latency_seconds", "time_per_output_token_seconds"
        ),
        "tpot_seconds": named("request_time_per_output_token_seconds"),
        "e2e_seconds": named("e2e_request_latency_seconds"),
        "prompt_lengths_tokens": named("request_prompt_tokens"),
        "answer_lengths_tokens": named("request_generation_tokens"),
    },
    frozenset({"engine", "model_name"}) | _OF_RAY,
)

SGLANG = Adapter(
    ("sglang:", "sglang_"),
    {
        "running": named("num_running_reqs", "num_running_requests"),
        "waiting": named("num_queue_reqs", "num_queue_requests"),
        "kv_cache_usage": named("token_usage", fold=Fold.MOST),
        "finished_requests": named("num_requests_total"),
        "preemptions": named("num_retracted_requests_total", "num_retracted_reqs_total"),
        "prompt_tokens": named("prompt_tokens_total"),
        "cached_prompt_tokens": named("cached_tokens_total"),
        "generated_tokens": named("generation_tokens_total"),
        "ttft_seconds": named("time_to_first_token_seconds"),
        "inter_token_seconds": named(
            "inter_token_latency_seconds", "time_per_output_token_seconds"
        ),
        "e2e_seconds": named("e2e_request_latency_seconds"),
        "prompt_lengths_tokens": named("prompt_tokens_histogram"),
        "answer_lengths_tokens": named("generation_tokens_histogram"),
    },
    frozenset(
        {
            "model_name",
            "engine_type",
            "tp_rank",
            "pp_rank",
            "dp_rank",
            "moe_ep_rank",
            "priority",
            "pid",
        }
    ),
)

TGI = Adapter(
    ("tgi_",),
    {
        "running": named("batch_current_size"),
        "waiting": named("queue_size"),
        "finished_requests": named("request_success", "request_success_total"),
        "tpot_seconds": named("request_mean_time_per_token_duration"),
        "e2e_seconds": named("request_duration"),
        "prompt_lengths_tokens": named("request_input_length"),
        "answer_lengths_tokens": named("request_generated_tokens"),
    },
    frozenset(),
)
"""It tells neither the time to the first token nor the use of its KV cache."""

_OF_BLOCKS = "nv_trt_llm_kv_cache_block_metrics"
_OF_REQUESTS = "nv_trt_llm_request_metrics"

TRITON = Adapter(
    ("",),
    {
        "running": (
            labelled(_OF_REQUESTS, "request_type", "active"),
            *named("trtllm_num_requests_running"),
        ),
        "waiting": (
            labelled(_OF_REQUESTS, "request_type", "waiting"),
            *named("trtllm_num_requests_waiting", "nv_inference_pending_request_count"),
        ),
        "kv_cache_usage": (
            labelled(_OF_BLOCKS, "kv_cache_block_type", "fraction", Fold.MOST),
            *named("trtllm_kv_cache_utilization", fold=Fold.MOST),
        ),
        "finished_requests": named("nv_inference_request_success", "trtllm_request_success_total"),
        "ttft_seconds": (
            *named("trtllm_time_to_first_token_seconds"),
            *named("nv_inference_first_response_histogram_ms", unit=MILLI),
        ),
        "tpot_seconds": named("trtllm_time_per_output_token_seconds"),
        "e2e_seconds": named("trtllm_e2e_request_latency_seconds"),
    },
    frozenset(
        {"model", "version", "gpu_uuid", "request_type", "kv_cache_block_type"}
        | {"model_name", "engine_type"}
    ),
    OneModel(
        "model",
        generating=(_OF_REQUESTS,),
        durations=(
            "nv_inference_request_duration_us",
            "nv_inference_first_response_histogram_ms_sum",
        ),
        requests="nv_inference_request_success",
    ),
)
"""Triton itself and its TensorRT-LLM backend, and trtllm-serve. Of an ensemble the model that
generates counts, which waits for no tokenising; of other models those of :class:`OneModel`."""

ADAPTERS: Mapping[str, tuple[Adapter, ...]] = {
    "vllm": (VLLM,),
    "sglang": (SGLANG,),
    "tgi": (TGI,),
    "triton": (VLLM, TRITON),
    "custom": (VLLM, SGLANG, TGI, TRITON),
}
"""By ``spec.engine.type``: an engine may speak as another (Triton's vLLM backend does). What the
first tells counts, and what it does not tell is taken from the next: Triton counts requests around
any backend, and knows nothing of batches and caches."""
