"""What engines answer, as their releases write it."""

from collections.abc import Mapping


def family(name: str, counts: Mapping[str, float], total: float, labels: str = "") -> str:
    """A histogram; counts by ``le``, cumulative."""
    between = f",{labels}" if labels else ""
    buckets = [f'{name}_bucket{{le="{le}"{between}}} {count}' for le, count in counts.items()]
    own = f"{{{labels}}}" if labels else ""
    tail = [f"{name}_count{own} {counts['+Inf']}", f"{name}_sum{own} {total}"]
    return "\n".join([f"# TYPE {name} histogram", *buckets, *tail]) + "\n"


def native(
    spans: str = "[0:2]",
    deltas: str = "[3,1]",
    total: str = "6.5",
    zero_count: str = "1",
    schema: str = "0",
) -> str:
    """vLLM's times of the first token as a native histogram, on one line."""
    return (
        f'vllm:time_to_first_token_seconds{{engine="0"}} {{count:10,sum:{total},schema:{schema},'
        f"zero_threshold:0.001,zero_count:{zero_count},positive_spans:{spans},"
        f"positive_deltas:{deltas}}}\n"
    )


MODEL = 'engine="0",model_name="llama"'

VLLM_NEW = f"""# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{{MODEL}}} 3.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{{MODEL}}} 2.0
vllm:num_requests_waiting_by_reason{{{MODEL},reason="capacity"}} 2.0
vllm:kv_cache_usage_perc{{{MODEL}}} 0.25
vllm:prompt_tokens_total{{{MODEL}}} 1000.0
vllm:prompt_tokens_cached_total{{{MODEL}}} 100.0
vllm:generation_tokens_total{{{MODEL}}} 500.0
vllm:request_success_total{{{MODEL},finished_reason="stop"}} 8.0
vllm:request_success_total{{{MODEL},finished_reason="length"}} 2.0
vllm:request_success_created{{{MODEL},finished_reason="length"}} 1.7e9
vllm:num_preemptions_total{{{MODEL}}} 1.0
""" + "".join(
    family(f"vllm:{name}", {"0.5": 4, "1": 9, "+Inf": 10}, 6.5, MODEL)
    for name in (
        "time_to_first_token_seconds",
        "inter_token_latency_seconds",
        "request_time_per_output_token_seconds",
        "e2e_request_latency_seconds",
        "request_prompt_tokens",
        "request_generation_tokens",
    )
)

VLLM_OLD = """vllm:num_requests_running{model_name="llama"} 3.0
vllm:num_requests_waiting{model_name="llama"} 2.0
vllm:gpu_cache_usage_perc{model_name="llama"} 0.25
vllm:gpu_prefix_cache_hits_total{model_name="llama"} 100.0
""" + family("vllm:time_per_output_token_seconds", {"0.05": 4, "+Inf": 10}, 0.5)

SGLANG = """# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="llama"} 3.0
sglang:num_queue_reqs{model_name="llama"} 2.0
sglang:token_usage{model_name="llama"} 0.25
sglang:prompt_tokens_total{model_name="llama"} 1000.0
sglang:cached_tokens_total{model_name="llama"} 100.0
sglang:num_requests_total{model_name="llama"} 10.0
""" + family("sglang:time_to_first_token_seconds", {"0.5": 4, "+Inf": 10}, 6.5)

TGI = """# TYPE tgi_batch_current_size gauge
tgi_batch_current_size 3
tgi_queue_size 2
# TYPE tgi_request_success counter
tgi_request_success 10
""" + family("tgi_request_mean_time_per_token_duration", {"0.05": 4, "+Inf": 10}, 0.5)

TRITON = """nv_trt_llm_request_metrics{model="m",request_type="active",version="1"} 3
nv_trt_llm_request_metrics{model="m",request_type="waiting",version="1"} 2
nv_trt_llm_request_metrics{model="m",request_type="max",version="1"} 64
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="m",version="1"} 0.25
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="m",version="1"} 6239
nv_inference_request_success{model="m",version="1"} 10
""" + family("nv_inference_first_response_histogram_ms", {"500": 4, "+Inf": 10}, 6500)

TRTLLM_SERVE = """trtllm_num_requests_running{model_name="m"} 3
trtllm_num_requests_waiting{model_name="m"} 2
trtllm_kv_cache_utilization{model_name="m"} 0.25
"""
