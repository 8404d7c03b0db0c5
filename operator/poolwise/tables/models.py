"""Models: one row per architecture, from ``models.csv``, as published, in plain units.

A row either has a shape (``layers`` and what follows) or only its counts per item. Where
``counts_from`` is ``published``, the shape leaves out part of the model (Mamba mixers, low-rank
projections), and the published parameter counts are the ones to use.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Self

from pydantic import Field, model_validator

from poolwise.tables.reading import Figure, Row, Table, read_rows, unique_index

FILE = "models.csv"


class ModelRow(Row):
    """One model. Counts are plain numbers, never billions."""

    hf_id: str | None = None
    kind: Literal["decoder", "encoder", "cnn", "encdec", "diffusion"]
    parameters: Figure
    """As published."""
    active_parameters: Figure
    counts_from: Literal["shape", "published"]
    layers: int | None = Field(None, gt=0)
    hidden: int | None = Field(None, gt=0)
    ffn: int | None = Field(None, gt=0)
    heads: int | None = Field(None, gt=0)
    kv_heads: int | None = Field(None, gt=0)
    head_dim: int | None = Field(None, gt=0)
    vocab: int | None = Field(None, ge=0)
    """0 for encoders of images."""
    gated_mlp: bool | None = None
    tied_embeddings: bool | None = None
    experts: int | None = Field(None, gt=0)
    experts_per_token: int | None = Field(None, gt=0)
    shared_experts: int | None = Field(None, ge=0)
    expert_ffn: int | None = Field(None, gt=0)
    dense_layers: int | None = Field(None, ge=0)
    moe_every: int | None = Field(None, gt=0)
    sliding_window_tokens: int | None = Field(None, gt=0)
    windowed_layers: int | None = Field(None, gt=0)
    linear_attention_layers: int | None = Field(None, gt=0)
    indexed_tokens: int | None = Field(None, gt=0)
    """Keys that a learned index picks for each token (DeepSeek sparse attention)."""
    query_rank: int | None = Field(None, ge=0)
    kv_rank: int | None = Field(None, gt=0)
    nope_dim: int | None = Field(None, gt=0)
    rope_dim: int | None = Field(None, gt=0)
    value_dim: int | None = Field(None, gt=0)
    max_context_tokens: int | None = Field(None, gt=0)
    """For encoders of images: the patches of one item."""
    native_format: str
    """Format in which the weights are published."""
    forward_flops_per_item: Figure | None = None
    activation_bytes_per_item: Figure | None = None
    """Kept for the backward pass without recomputation."""
    serving_flops_per_item: Figure | None = None
    """Of one answer where it takes more than the one pass that a training sample is."""
    serving_passes_per_item: Figure | None = None
    """Times that all weights are read for it, one after the other."""
    serving_cache_bytes_per_item: Figure | None = None
    """Read over all passes from caches in 16 bits."""
    source: str
    note: str | None = None

    @model_validator(mode="after")
    def _is_described(self) -> Self:
        shape = (self.hidden, self.ffn, self.heads, self.kv_heads, self.head_dim, self.vocab)
        if self.layers is not None and None in shape:
            raise ValueError("has layers, but not the whole shape")
        if self.layers is None and self.forward_flops_per_item is None:
            raise ValueError("has neither layers nor forward_flops_per_item")
        if (self.serving_flops_per_item is None) != (self.serving_passes_per_item is None):
            raise ValueError("has one of serving_flops_per_item and serving_passes_per_item")
        return self

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every name the row answers to, with and without the organisation."""
        written = (*self.aliases, *((self.hf_id,) if self.hf_id else ()))
        bare = (spelling.rpartition("/")[2] for spelling in written)
        return (self.name, *written, *bare)


class Models(Table[ModelRow]):
    """All models, by name, alias and Hugging Face id."""

    def __init__(self, rows: Iterable[ModelRow]) -> None:
        super().__init__(FILE, rows)
        self._by_name = unique_index(FILE, self.rows, lambda row: row.spellings)

    def find(self, name: str) -> ModelRow | None:
        """The row of that name; another organisation's copy of a model is that model."""
        return super().find(name) or super().find(name.rpartition("/")[2])


def load() -> Models:
    """Read the shipped table."""
    return Models(read_rows(FILE, ModelRow))
