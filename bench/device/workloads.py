"""What is trained: models that one accelerator holds, whole and by adapters, in the usual ways.

The widths come from the shipped tables. Mixtures of experts are cut to a few layers, as published
proxies are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from poolwise.errors import InvalidInput
from poolwise.model import presets
from poolwise.model.shapes import Transformer
from poolwise.model.work import Method
from poolwise.tables import load


@dataclass(frozen=True, slots=True)
class Workload:
    """One training job on one accelerator, in mixed 16-bit precision with AdamW."""

    model: str
    """By the name of the shipped tables."""
    sequence_tokens: int
    micro_batch_size: int
    micro_batches: int = 1
    """Added up before the optimizer steps."""
    method: Method = Method.FULL
    is_recomputed: bool = False
    """Whether each layer's activations are computed again in the backward pass."""
    is_compiled: bool = True
    """As pretraining frameworks do: layers and loss compiled, weights in bf16 beside a master copy.
    Else as transformers' own trainer does: operator by operator, weights in fp32 that are cast for
    every use, and logits that are kept in fp32."""
    layers: int | None = None
    """The first so many of the model; None: all."""


def _both(model: str, sequence_tokens: int, size: int, **more: Any) -> tuple[Workload, Workload]:
    """Compiled, and not."""
    compiled = Workload(model, sequence_tokens, size, **more)
    return compiled, replace(compiled, is_compiled=False)


ADAPTERS = {"method": Method.LORA}
RECOMPUTED = {"is_recomputed": True}
WORKLOADS = (
    *_both("Llama-3.2-1B", 4096, 2),
    *_both("Llama-3.1-8B", 2048, 4, **ADAPTERS, **RECOMPUTED),
    *_both("gpt-1.7b", 2048, 4),
    *_both("Llama-3.2-3B", 4096, 2, **RECOMPUTED),
    *_both("Llama-3.1-8B", 2048, 2, **ADAPTERS),
    *_both("Qwen2.5-0.5B", 2048, 8),
    *_both("Qwen2.5-14B", 2048, 2, **ADAPTERS, **RECOMPUTED),
    *_both("GPT-2-124M", 1024, 32),
    *_both("Qwen2.5-1.5B", 2048, 4, micro_batches=4),
    *_both("Llama-3.2-1B", 4096, 2, **RECOMPUTED),
    Workload("Qwen3-30B-A3B", 4096, 2, layers=3),
    *_both("Llama-3.2-1B", 16384, 1, **RECOMPUTED),
    Workload("Mixtral-8x7B", 4096, 1, layers=2),
    *_both("Mistral-7B-v0.3", 8192, 1, **ADAPTERS, **RECOMPUTED),
    *_both("Llama-3.2-3B", 2048, 4, **ADAPTERS),
    *_both("Qwen3-0.6B", 4096, 4),
    *_both("GPT-2-XL", 1024, 8),
    *_both("Llama-3.2-1B", 1024, 2),
)
"""In the order in which they are measured, the telling ones first: the time may run out."""


def shape_of(workload: Workload) -> Transformer:
    """Of the decoder to build, cut to its layers.

    Raises :class:`InvalidInput` for a name that no decoder of the shipped tables has.
    """
    row = load().model(workload.model)
    shape = row and presets.model(row).shape
    if not isinstance(shape, Transformer) or shape.latent_attention or shape.sliding_window:
        raise InvalidInput("workloads", f"{workload.model} is no decoder that is built here")
    return replace(shape, layers=workload.layers or shape.layers)
