"""Decoders of transformers, with random weights, of the widths that the shipped tables give."""

from __future__ import annotations

from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, GPTNeoXConfig, LlamaConfig, Qwen3MoeConfig

from bench.device.workloads import Workload, shape_of
from poolwise.model.shapes import Transformer
from poolwise.model.work import Method

DEVICE = "cuda"
LORA_RANK = 16
"""As the model takes it where nothing is said."""


def has_fp32_weights(workload: Workload) -> bool:
    """Whether any are, so that products have to be cast: adapters always."""
    return workload.method is Method.LORA or not workload.is_compiled


def decoder(workload: Workload) -> Any:
    """On the accelerator, with adapters where only they are trained."""
    is_whole = workload.method is Method.FULL
    dtype = torch.float32 if is_whole and not workload.is_compiled else torch.bfloat16
    with torch.device(DEVICE):
        built = AutoModelForCausalLM.from_config(
            _configuration(shape_of(workload), workload.sequence_tokens),
            dtype=dtype,
            attn_implementation="sdpa",
        )
        if not is_whole:
            lora = LoraConfig(r=LORA_RANK, target_modules="all-linear", task_type="CAUSAL_LM")
            built = get_peft_model(built, lora)
    built.train()
    return built


def _configuration(shape: Transformer, sequence_tokens: int) -> Any:
    """Names differ by architecture, what they count does not."""
    common = {
        "vocab_size": shape.vocab,
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "max_position_embeddings": sequence_tokens,
        "tie_word_embeddings": shape.tied_embeddings,
        "use_cache": False,
    }
    if not shape.gated_mlp:
        return GPTNeoXConfig(
            **common, intermediate_size=shape.ffn, use_parallel_residual=False, rotary_pct=1.0
        )
    grouped = {"num_key_value_heads": shape.kv_heads, "head_dim": shape.head_dim}
    if shape.experts is None:
        return LlamaConfig(**common, **grouped, intermediate_size=shape.ffn)
    return Qwen3MoeConfig(
        **common,
        **grouped,
        intermediate_size=shape.ffn,
        moe_intermediate_size=shape.experts.ffn,
        num_experts=shape.experts.count,
        num_experts_per_tok=shape.experts.top_k,
        norm_topk_prob=True,
    )
