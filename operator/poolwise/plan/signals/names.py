"""Which metric of which engine tells what: one row per engine, newest names first.

Engines rename metrics between releases, and a renamed one must not read as zero: each canonical
field has all names it ever had, and the first that is told counts. Sources: the engines' own lists
(vLLM docs/usage/metrics, SGLang srt/metrics/collector.py, TGI docs/reference/metrics, Triton
docs/user_guide/metrics, TensorRT-LLM backend docs/metrics, Gateway API Inference Extension).
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


def _is(*names: str, unit: float = 1.0, fold: Fold = Fold.SUM) -> tuple[Source, ...]:
    return tuple(Source(name, unit=unit, fold=fold) for name in names)


def _labelled(name: str, label: str, value: str, fold: Fold = Fold.SUM) -> Source:
    return Source(name, MappingProxyType({label: value}), fold=fold)


_OF_RAY = frozenset({"Component", "NodeAddress", "ReplicaId", "SessionName", "Version", "WorkerId"})

VLLM = Adapter(
    ("vllm:", "ray_vllm_", "ray_vllm:", "vllm_"),
    {
        "running": _is("num_requests_running"),
        "waiting": _is("num_requests_waiting"),
        "kv_cache_usage": _is("kv_cache_usage_perc", "gpu_cache_usage_perc", fold=Fold.MOST),
        "finished_requests": _is("request_success_total", "request_success"),
        "preemptions": _is("num_preemptions_total", "num_preemptions"),
        "prompt_tokens": _is("prompt_tokens_total"),
        "cached_prompt_tokens": _is(
            "prompt_tokens_cached_total", "prefix_cache_hits_total", "gpu_prefix_cache_hits_total"
        ),
        "generated_tokens": _is("generation_tokens_total"),
        "ttft_seconds": _is("time_to_first_token_seconds"),
        "inter_token_seconds": _is("inter_token_latency_seconds", "time_per_output_token_seconds"),
        "tpot_seconds": _is("request_time_per_output_token_seconds"),
        "e2e_seconds": _is("e2e_request_latency_seconds"),
        "prompt_lengths_tokens": _is("request_prompt_tokens"),
        "answer_lengths_tokens": _is("request_generation_tokens"),
    },
    frozenset({"engine", "model_name"}) | _OF_RAY,
)

SGLANG = Adapter(
    ("sglang:", "sglang_"),
    {
        "running": _is("num_running_reqs", "num_running_requests"),
        "waiting": _is("num_queue_reqs", "num_queue_requests"),
        "kv_cache_usage": _is("token_usage", fold=Fold.MOST),
        "finished_requests": _is("num_requests_total"),
        "preemptions": _is("num_retracted_requests_total", "num_retracted_reqs_total"),
        "prompt_tokens": _is("prompt_tokens_total"),
        "cached_prompt_tokens": _is("cached_tokens_total"),
        "generated_tokens": _is("generation_tokens_total"),
        "ttft_seconds": _is("time_to_first_token_seconds"),
        "inter_token_seconds": _is("inter_token_latency_seconds", "time_per_output_token_seconds"),
        "e2e_seconds": _is("e2e_request_latency_seconds"),
        "prompt_lengths_tokens": _is("prompt_tokens_histogram"),
        "answer_lengths_tokens": _is("generation_tokens_histogram"),
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
        "running": _is("batch_current_size"),
        "waiting": _is("queue_size"),
        "finished_requests": _is("request_success", "request_success_total"),
        "tpot_seconds": _is("request_mean_time_per_token_duration"),
        "e2e_seconds": _is("request_duration"),
        "prompt_lengths_tokens": _is("request_input_length"),
        "answer_lengths_tokens": _is("request_generated_tokens"),
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
            _labelled(_OF_REQUESTS, "request_type", "active"),
            *_is("trtllm_num_requests_running"),
        ),
        "waiting": (
            _labelled(_OF_REQUESTS, "request_type", "waiting"),
            *_is("trtllm_num_requests_waiting", "nv_inference_pending_request_count"),
        ),
        "kv_cache_usage": (
            _labelled(_OF_BLOCKS, "kv_cache_block_type", "fraction", Fold.MOST),
            *_is("trtllm_kv_cache_utilization", fold=Fold.MOST),
        ),
        "finished_requests": _is("nv_inference_request_success", "trtllm_request_success_total"),
        "ttft_seconds": (
            *_is("trtllm_time_to_first_token_seconds"),
            *_is("nv_inference_first_response_histogram_ms", unit=MILLI),
        ),
        "tpot_seconds": _is("trtllm_time_per_output_token_seconds"),
        "e2e_seconds": _is("trtllm_e2e_request_latency_seconds"),
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

GATEWAY = Adapter(
    ("llm_d_epp_", "inference_extension_", "inference_objective_", "inference_pool_"),
    {
        "running": _is("request_running", "running_requests"),
        "waiting": _is("flow_control_queue_size", "average_queue_size"),
        "kv_cache_usage": _is("average_kv_cache_utilization", fold=Fold.MOST),
        "finished_requests": _is("request_total"),
        "ttft_seconds": _is("request_ttft_seconds"),
        "inter_token_seconds": _is("request_streaming_itl_seconds"),
        "tpot_seconds": _is(
            "request_streaming_tpot_seconds", "normalized_time_per_output_token_seconds"
        ),
        "e2e_seconds": _is("request_duration_seconds"),
        "prompt_lengths_tokens": _is("request_input_tokens", "input_tokens"),
        "answer_lengths_tokens": _is("request_output_tokens", "output_tokens"),
    },
    frozenset(
        {"name", "model_name", "target_model_name", "fairness_id", "priority", "inference_pool"}
    ),
)
"""The endpoint picker of an inference gateway: of a whole pool of replicas."""

ADAPTERS: Mapping[str, tuple[Adapter, ...]] = {
    "vllm": (VLLM,),
    "sglang": (SGLANG,),
    "tgi": (TGI,),
    "triton": (VLLM, TRITON),
    "custom": (VLLM, SGLANG, TGI, TRITON),
    "gateway": (GATEWAY,),
}
"""By ``spec.engine.type``: an engine may speak as another (Triton's vLLM backend does). What the
first tells counts, and what it does not tell is taken from the next: Triton counts requests around
any backend, and knows nothing of batches and caches."""
