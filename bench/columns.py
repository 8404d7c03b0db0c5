"""Columns of the measured tables, as shared/data has them: one that a file lacks is empty."""

from __future__ import annotations

from collections.abc import Mapping

GIB = 2**30
"""Bytes, of columns that end so."""
TRAINING = (
    "row_id", "source", "source_ref", "source_date", "licence", "framework", "task", "model",
    "params_b", "active_b", "gpu", "n_gpus", "interconnect", "seq_len", "global_batch",
    "micro_batch", "grad_accum", "precision", "tp", "pp", "vp", "cp", "ep", "etp", "dp",
    "sharding", "act_ckpt", "layers_used", "step_time_s", "samples_per_s", "tokens_per_s",
    "tokens_per_s_per_gpu", "model_tflops_per_gpu", "mfu_reported_pct", "hfu_reported_pct",
    "peak_mem_gib", "minutes_to_train", "group", "notes",
)  # fmt: skip
SERVING = (
    "row_id", "source", "source_ref", "source_date", "licence", "engine", "engine_version",
    "model", "params_b", "active_b", "gpu", "n_gpus", "tp", "pp", "attn_dp", "moe_tp", "moe_ep",
    "mode", "weight_precision", "moe_precision", "kv_precision", "isl", "osl", "concurrency",
    "batch_per_dp", "qps_offered", "requests_per_s", "out_tok_s_total", "out_tok_s_per_gpu",
    "total_tok_s", "ttft_ms_mean", "ttft_ms_p50", "ttft_ms_p99", "tpot_ms_mean", "tpot_ms_p50",
    "tpot_ms_p99", "e2e_ms_mean", "e2e_ms_p99", "achieved_bw_gbs", "prefill_cfg", "decode_cfg",
    "group", "notes",
)  # fmt: skip
COLLECTIVES = (
    "row_id", "source", "source_ref", "source_date", "licence", "gpu", "device_string",
    "n_gpus", "n_nodes", "gpus_per_node", "interconnect", "collective", "library",
    "lib_version", "dtype", "mode", "size_bytes", "time_us", "algbw_gbs", "busbw_gbs", "notes",
    "group",
)  # fmt: skip
KERNELS = (
    "row_id", "source", "source_ref", "licence", "gpu", "device_string", "engine",
    "engine_version", "kernel_source", "op", "dtype", "kv_dtype", "m", "n", "k", "batch",
    "q_len", "kv_len", "heads", "kv_heads", "head_dim", "window", "num_tokens", "hidden",
    "inter", "topk", "experts", "moe_tp", "moe_ep", "routing", "latency_us", "group",
)  # fmt: skip
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "train_measured": TRAINING,
    "serve_measured": SERVING,
    "collectives_measured": COLLECTIVES,
    "kernels_measured": KERNELS,
}
"""By table."""
FIGURES = (
    "tokens_per_s_per_gpu", "samples_per_s", "peak_mem_gib", "tpot_ms_mean", "ttft_ms_mean",
    "out_tok_s_total", "ttft_ms_p99", "tpot_ms_p99", "time_us", "latency_us",
)  # fmt: skip
"""Columns of what is scored, of all tables."""
CASELESS: Mapping[str, tuple[str, ...]] = {
    "train_measured": ("framework", "task", "precision", "sharding", "act_ckpt", "source_date"),
    "serve_measured": (
        "engine", "engine_version", "mode", "weight_precision", "moe_precision", "kv_precision",
        "prefill_cfg", "decode_cfg",
    ),
    "collectives_measured": ("collective", "mode", "interconnect"),
    "kernels_measured": ("engine", "kernel_source", "op", "dtype", "kv_dtype", "routing"),
}  # fmt: skip
"""Those whose words a prediction goes by: read in small letters, however a file has them. Not the
links of a training run, whose ``Gb/s`` are no ``GB/s``."""
