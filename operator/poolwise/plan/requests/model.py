"""From ``spec.model`` to a model that the formulas take."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from poolwise.api.model_spec import Custom as CustomSpec
from poolwise.api.model_spec import Model as ModelSpec
from poolwise.api.model_spec import Transformer as TransformerSpec
from poolwise.errors import InvalidInput
from poolwise.model import presets
from poolwise.model.shapes import Custom, Experts, LatentAttention, Model, Transformer
from poolwise.tables import Tables

WHERE = "spec.model"
SIMILARITY = 0.4
"""Of a misspelt name to be offered the nearest; difflib's ratio."""
SUGGESTED = 3
FLOPS_PER_ACTIVATION_BYTE = 1000.0
"""Of a forward pass: the median of the five models in the table that are known by their counts
(ResNet-50 to FLUX, 91 to 2,360; deviation of the logarithm 1.2)."""
TELLING = 3
"""Characters that a part of a name needs to tell anything."""


def read_model(spec: ModelSpec, tables: Tables) -> Model:
    """The model that a spec describes. Raises InvalidInput."""
    given = [part for part in (spec.preset, spec.transformer, spec.custom) if part is not None]
    if len(given) != 1:
        raise InvalidInput(
            WHERE, f"must have exactly one of preset, transformer and custom, has {len(given)}"
        )
    if spec.transformer is not None:
        return Model("transformer", _transformer(spec.transformer))
    if spec.custom is not None:
        return Model("custom", _custom(spec.custom))
    row = tables.model(spec.preset or "")
    if row is None:
        known = [name for model in tables.models for name in (model.name, *model.aliases)]
        raise InvalidInput(f"{WHERE}.preset", unknown(spec.preset or "", "a known model", known))
    return presets.model(row)


def beyond_context(model: Model) -> str:
    """Clause: what to do where a known model was made to read more than it does; empty where
    nothing is to be done."""
    if not model.generates:
        return ""
    return (
        f"; a variant with a longer context is described by {WHERE}.transformer,"
        " with the sizes in its config.json"
    )


def unknown(name: str, what: str, known: Iterable[str]) -> str:
    """A sentence for a name that no table has, with the nearest ones that some has: those that
    contain it or that it contains (people leave parts off, or add some), then misspelt ones."""
    wanted, by_fold = name.lower(), {spelling.lower(): spelling for spelling in known}
    longer = [each for each in by_fold if wanted in each] if len(wanted) >= TELLING else []
    shorter = [each for each in by_fold if len(each) >= TELLING and each in wanted]
    misspelt = difflib.get_close_matches(wanted, by_fold, n=SUGGESTED, cutoff=SIMILARITY)
    near = dict.fromkeys([*longer, *sorted(shorter, key=len, reverse=True), *misspelt])
    nearest = ", ".join(by_fold[match] for match in list(near)[:SUGGESTED])
    return f"{name!r} is not {what}" + (f"; nearest: {nearest}" if nearest else "")


def _transformer(spec: TransformerSpec) -> Transformer:
    where = f"{WHERE}.transformer"
    if spec.mla is None and spec.heads % spec.kv_heads:
        raise InvalidInput(
            f"{where}.kvHeads", f"must divide heads ({spec.heads}), is {spec.kv_heads}"
        )
    if spec.linear_attention_layers > spec.layers:
        raise InvalidInput(
            f"{where}.linearAttentionLayers",
            f"must be at most layers ({spec.layers}), is {spec.linear_attention_layers}",
        )
    return Transformer(
        layers=spec.layers,
        hidden=spec.hidden,
        ffn=spec.ffn,
        heads=spec.heads,
        kv_heads=spec.kv_heads,
        head_dim=spec.head_dim,
        vocab=spec.vocab,
        gated_mlp=spec.gated_mlp,
        tied_embeddings=spec.tied_embeddings,
        sliding_window=spec.sliding_window,
        linear_attention_layers=spec.linear_attention_layers,
        experts=_experts(spec),
        latent_attention=_latent_attention(spec),
    )


def _experts(spec: TransformerSpec) -> Experts | None:
    experts, where = spec.experts, f"{WHERE}.transformer.experts"
    if experts is None:
        return None
    if experts.top_k > experts.count:
        raise InvalidInput(
            f"{where}.topK", f"must be at most count ({experts.count}), is {experts.top_k}"
        )
    if experts.dense_layers > spec.layers:
        raise InvalidInput(
            f"{where}.denseLayers",
            f"must be at most layers ({spec.layers}), is {experts.dense_layers}",
        )
    if experts.dense_layers == spec.layers:
        return None  # no layer has any
    return Experts(
        count=experts.count,
        top_k=experts.top_k,
        shared=experts.shared,
        ffn=experts.ffn,
        dense_layers=experts.dense_layers,
    )


def _latent_attention(spec: TransformerSpec) -> LatentAttention | None:
    mla = spec.mla
    if mla is None:
        return None
    return LatentAttention(mla.query_rank, mla.kv_rank, mla.nope_dim, mla.rope_dim, mla.value_dim)


def _custom(spec: CustomSpec) -> Custom:
    if spec.active_parameters > spec.parameters:
        raise InvalidInput(
            f"{WHERE}.custom.activeParameters",
            f"must be at most parameters ({spec.parameters:g}), is {spec.active_parameters:g}",
        )
    told = spec.forward_flops_per_sample
    return Custom(
        parameters=spec.parameters,
        active_parameters=spec.active_parameters,
        forward_flops_per_sample=_guessed_flops(spec) if told is None else told,
        activation_bytes_per_sample=spec.activation_bytes_per_sample,
        is_described=told is not None,
    )


def _guessed_flops(spec: CustomSpec) -> float:
    """Of a forward pass, by what it keeps; each active parameter is used at least once."""
    used = 2.0 * spec.active_parameters
    return max(used, FLOPS_PER_ACTIVATION_BYTE * spec.activation_bytes_per_sample)
