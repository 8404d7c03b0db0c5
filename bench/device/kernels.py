"""Matrix products and attention, one at a time, with a cold cache."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch.nn import functional
from triton.testing import do_bench

from bench.device.results import Timed

WARM_UP_MILLISECONDS, REPEAT_MILLISECONDS = 5, 30
WIDTHS = ((6144, 4096), (4096, 14336), (10240, 8192), (5120, 25600))
"""Outputs and inputs of products in Llama-3.1-8B, Llama-3.1-70B and Qwen3-32B."""
HEADS = ((32, 8, 128), (64, 8, 128), (16, 16, 64))
"""Of queries, of keys and values, and their width."""
PROMPTS = ((1, 512), (1, 4096), (4, 2048), (1, 16384))
CACHES = ((1, 1024), (8, 4096), (64, 1024), (64, 4096), (1, 65536))
"""Batch and length."""


def timed() -> list[Timed]:
    """Every kernel below; one that the device lacks is left out."""
    found = []
    for columns, kernel in itertools.chain(_products(), _attentions()):
        try:
            milliseconds = do_bench(
                kernel,
                warmup=WARM_UP_MILLISECONDS,
                rep=REPEAT_MILLISECONDS,
                return_mode="median",
            )
        except RuntimeError as refused:
            print(f"    {columns}: {str(refused).splitlines()[0]}")
            continue
        found.append(Timed(columns, milliseconds / 1e3))
    return found


def _products() -> Iterator[tuple[dict[str, object], Callable[[], Any]]]:
    for (outputs, inputs), rows in itertools.product(WIDTHS, (1, 16, 128, 512, 2048, 8192)):
        left, right = _random(rows, inputs), _random(outputs, inputs)
        sizes = {"op": "gemm", "m": rows, "n": outputs, "k": inputs}
        yield {**sizes, "dtype": "bfloat16"}, partial(functional.linear, left, right)
        if rows >= 16:  # fewer rows are no multiple of what the instruction takes
            yield {**sizes, "dtype": "fp8"}, _scaled(left, right)


def _scaled(left: Any, right: Any) -> Callable[[], Any]:
    """One scale for each operand."""
    one = torch.ones((), device=left.device)
    a, b = (each.to(torch.float8_e4m3fn) for each in (left, right))
    return lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def _attentions() -> Iterator[tuple[dict[str, object], Callable[[], Any]]]:
    for heads in HEADS:
        for batch, length in PROMPTS:
            yield _attention("attention_prefill", batch, length, length, heads)
        for batch, length in CACHES:
            yield _attention("attention_decode", batch, 1, length, heads)


def _attention(
    name: str, batch: int, queries: int, keys: int, widths: tuple[int, int, int]
) -> tuple[dict[str, object], Callable[[], Any]]:
    heads, kv_heads, width = widths
    query = _random(batch, heads, queries, width)
    key, value = (_random(batch, kv_heads, keys, width) for _ in range(2))
    columns = {
        "op": name,
        "dtype": "bfloat16",
        "kv_dtype": "bfloat16",
        "batch": batch,
        "q_len": queries,
        "kv_len": keys,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": width,
    }
    return columns, lambda: functional.scaled_dot_product_attention(
        query, key, value, is_causal=queries > 1, enable_gqa=heads != kv_heads
    )


def _random(*size: int) -> Any:
    return torch.randn(size, device="cuda", dtype=torch.bfloat16)
