"""Names of engines and number formats in ``serve_measured``, as the model calls them."""

from __future__ import annotations

from bench.tables import Row

FORMATS = {
    "fp8_block": "fp8",
    "fp4": "nvfp4",
    "int8-wo": "int8",
    "int4-g32-wo": "int4",
    "uint4": "int4",
    "fp16 (bf16 matmul)": "fp16",
}


def engine_of(row: Row) -> str:
    """By the first word; TensorRT-LLM is Triton's backend."""
    name = row["engine"].lower()
    return next((each for each in ("vllm", "sglang") if name.startswith(each)), "triton")


def weight_format_of(row: Row, native: str) -> str:
    """Of the experts, which are most of a sparse model.

    gpt-oss is labelled by the format of its activations, and has mxfp4 weights in all of them.
    """
    label = (row["moe_precision"] or row["weight_precision"]).lower()
    if not label or native == "mxfp4":
        return native
    return FORMATS.get(label, label)


def cache_format_of(row: Row) -> str:
    """TensorRT-LLM quantises the cache with the weights where a source does not say."""
    if row["kv_precision"]:
        return row["kv_precision"]
    is_quantised = FORMATS.get(row["weight_precision"], row["weight_precision"]) in ("fp8", "nvfp4")
    return "fp8" if is_quantised and engine_of(row) == "triton" else "bf16"
