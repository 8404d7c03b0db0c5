"""From a row of the shipped table to a model that the formulas take."""

from __future__ import annotations

from poolwise.model.mixtures import usual_experts
from poolwise.model.shapes import Answer, Custom, Experts, LatentAttention, Model, Transformer
from poolwise.tables.models import ModelRow

LEAST_DENSE = 0.9
"""Share of active parameters from which a model counts as dense."""
GENERIC_VOCAB = 128_256
MOST_EMBEDDED = 2 / 3
"""Embedding and head, of the parameters beside experts: 0.64 in gpt-oss-20b, the most of the
decoders in ``models.csv``."""


def model(row: ModelRow) -> Model:
    """The row's shape, or its counts where it has none."""
    published = row.counts_from == "published" and row.layers is not None
    return Model(
        name=row.name,
        shape=_custom(row) if row.layers is None else _transformer(row),
        max_context_tokens=row.max_context_tokens,
        native_format=row.native_format,
        published_parameters=row.parameters if published else None,
        published_active_parameters=row.active_parameters if published else None,
    )


def _custom(row: ModelRow) -> Custom:
    total = row.parameters or 0.0
    return Custom(
        parameters=total,
        active_parameters=row.active_parameters or total,
        forward_flops_per_sample=row.forward_flops_per_item or 0.0,
        activation_bytes_per_sample=row.activation_bytes_per_item or 0.0,
        repeated=_answer(row),
    )


def _answer(row: ModelRow) -> Answer | None:
    if row.serving_flops_per_item is None:
        return None
    return Answer(
        flops=row.serving_flops_per_item,
        passes=row.serving_passes_per_item or 1.0,
        cache_bytes=row.serving_cache_bytes_per_item or 0.0,
    )


def _transformer(row: ModelRow) -> Transformer:
    hidden, heads = row.hidden or 0, row.heads or 1
    return Transformer(
        layers=row.layers or 0,
        hidden=hidden,
        ffn=row.ffn or 0,
        heads=heads,
        kv_heads=row.kv_heads or heads,
        head_dim=row.head_dim or hidden // heads,
        vocab=row.vocab or 0,
        gated_mlp=bool(row.gated_mlp),
        tied_embeddings=bool(row.tied_embeddings),
        is_decoder=row.kind == "decoder",
        sliding_window=row.sliding_window_tokens,
        windowed_layers=row.windowed_layers,
        linear_attention_layers=row.linear_attention_layers or 0,
        indexed_tokens=row.indexed_tokens,
        experts=_experts(row),
        latent_attention=_latent_attention(row),
    )


def _experts(row: ModelRow) -> Experts | None:
    if not row.experts:
        return None
    return Experts(
        count=row.experts,
        top_k=row.experts_per_token or 1,
        shared=row.shared_experts or 0,
        ffn=row.expert_ffn or row.ffn or 0,
        dense_layers=row.dense_layers or 0,
        every=row.moe_every or 1,
    )


def _latent_attention(row: ModelRow) -> LatentAttention | None:
    if not row.kv_rank:
        return None
    return LatentAttention(
        query_rank=row.query_rank or 0,
        kv_rank=row.kv_rank,
        nope_dim=row.nope_dim or 0,
        rope_dim=row.rope_dim or 0,
        value_dim=row.value_dim or 0,
    )


def generic(name: str, parameters: float, active_parameters: float) -> Model:
    """A transformer of the usual proportions with these counts, where no shape is public.

    Layers and width follow the active count (``12.5*L*h**2`` with h = 128 L, as in the Llamas: 32
    by 4096 for 8 B, 80 by 8192 for 70 B); what is not active are experts, cut as is usual.
    """
    layers = max(1, round((active_parameters / (12.5 * 128**2)) ** (1 / 3)))
    hidden = 128 * layers
    experts, rest = None, parameters
    if active_parameters < LEAST_DENSE * parameters:
        experts = usual_experts(parameters, active_parameters, layers, hidden)
        idle = 1 - experts.top_k / experts.count
        rest -= (parameters - active_parameters) / idle
    words = MOST_EMBEDDED * rest / hidden
    return Model(
        name=name,
        shape=Transformer(
            layers=layers,
            hidden=hidden,
            ffn=round(3.5 * hidden),
            heads=layers,
            kv_heads=min(8, layers),
            head_dim=128,
            vocab=max(1, min(GENERIC_VOCAB, int(words))),
            tied_embeddings=words < 2 * GENERIC_VOCAB,
            experts=experts,
        ),
        published_parameters=parameters,
        published_active_parameters=active_parameters,
    )
