"""Names of engines and number formats in ``serve_measured``, as the model calls them."""

from __future__ import annotations

from bench.formats import number_format
from bench.tables import Row

UNTOLD = ("", "auto", "default", "model", "none", "same")
"""Cells of a format that leave it as published, and that of a cache to the engine."""


def engine_of(row: Row) -> str:
    """By the first word; TensorRT-LLM is Triton's backend."""
    name = row["engine"]
    return next((each for each in ("vllm", "sglang") if name.startswith(each)), "triton")


def weight_format_of(row: Row, native: str) -> str:
    """Of the experts, which are most of a sparse model.

    gpt-oss is labelled by the format of its activations, and has mxfp4 weights in all of them.
    """
    labels = (row["moe_precision"], row["weight_precision"])
    label = next((each for each in labels if each not in UNTOLD), "")
    return native if not label or native == "mxfp4" else number_format(label)


def cache_format_of(row: Row) -> str:
    """TensorRT-LLM quantises the cache with the weights where a source does not say."""
    if row["kv_precision"] not in UNTOLD:
        return number_format(row["kv_precision"])
    is_quantised = number_format(row["weight_precision"]) in ("fp8", "nvfp4")
    return "fp8" if is_quantised and engine_of(row) == "triton" else "bf16"
