"""The model that is trained or served: a row of the shipped table, a shape, or bare counts."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from poolwise.api.base import ApiModel
from poolwise.api.markers import Rule, divides, exactly_one
from poolwise.api.names import Title
from poolwise.api.quantity import Quantity


class Experts(ApiModel):
    """Mixture of experts."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.topK <= self.count",
            "must be at most count (%d), is %d",
            ("self.count", "self.topK"),
            ".topK",
        ),
    )

    count: int = Field(ge=2, le=4096)
    """Routed experts of one layer. Example: `64`."""
    top_k: int = Field(ge=1, le=4096)
    """Routed experts that each token visits. Example: `8`."""
    shared: int = Field(0, ge=0, le=4096)
    """Experts that every token visits besides. Example: `1`."""
    ffn: int = Field(ge=1, le=1_048_576)
    """Width of one expert. Example: `2048`."""
    dense_layers: int = Field(0, ge=0, le=10_000)
    """Leading layers with an ordinary MLP of width `ffn` of the model. Example: `3`."""


class LatentAttention(ApiModel):
    """Multi-head latent attention (DeepSeek): keys and values are cached compressed."""

    query_rank: int = Field(ge=0, le=65_536)
    """Rank of the compressed queries; 0 when they are not compressed. Example: `1536`."""
    kv_rank: int = Field(ge=1, le=65_536)
    """Rank of the compressed keys and values. Example: `512`."""
    nope_dim: int = Field(ge=1, le=65_536)
    """Width per head without position. Example: `128`."""
    rope_dim: int = Field(ge=1, le=65_536)
    """Width per head with rotary position. Example: `64`."""
    value_dim: int = Field(ge=1, le=65_536)
    """Width per head of the values. Example: `128`."""


def _heads(fields: dict[str, Any]) -> int:
    return int(fields["heads"])


def _head_dim(fields: dict[str, Any]) -> int:
    return int(fields["hidden"]) // int(fields["heads"])


class Transformer(ApiModel):
    """The shape of a transformer, as its `config.json` gives it."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"has(self.mla) || has(self.headDim) || {divides('self.heads', 'self.hidden')}",
            "must be divisible by heads (%d) unless headDim is given, is %d",
            ("self.heads", "self.hidden"),
            ".hidden",
        ),
        Rule(
            f"has(self.mla) || !has(self.kvHeads) || {divides('self.kvHeads', 'self.heads')}",
            "must divide heads (%d), is %d",
            ("self.heads", "self.kvHeads"),
            ".kvHeads",
        ),
        Rule(
            "!has(self.experts) || self.experts.denseLayers <= self.layers",
            "must be at most layers (%d), is %d",
            ("self.layers", "self.experts.denseLayers"),
            ".experts.denseLayers",
        ),
        Rule(
            "self.linearAttentionLayers <= self.layers",
            "must be at most layers (%d), is %d",
            ("self.layers", "self.linearAttentionLayers"),
            ".linearAttentionLayers",
        ),
    )

    layers: int = Field(ge=1, le=10_000)
    """Transformer blocks. Example: `80`."""
    hidden: int = Field(ge=1, le=1_048_576)
    """Width of the residual stream. Example: `8192`."""
    ffn: int = Field(ge=1, le=4_194_304)
    """Inner width of the MLP. Example: `28672`."""
    heads: int = Field(ge=1, le=65_536)
    """Query heads. Example: `64`."""
    kv_heads: int = Field(default_factory=_heads, ge=1, le=65_536)
    """Key-value heads; as many as `heads` when absent. Example: `8`."""
    head_dim: int = Field(default_factory=_head_dim, ge=1, le=65_536)
    """Width of one head; `hidden` / `heads` when absent. Example: `128`."""
    vocab: int = Field(ge=1, le=16_777_216)
    """Entries of the vocabulary. Example: `128256`."""
    gated_mlp: bool = True
    """Whether the MLP has a gate (SwiGLU), so three matrices instead of two. Example: `true`."""
    tied_embeddings: bool = False
    """Whether input and output embedding are one matrix. Example: `false`."""
    sliding_window: int | None = Field(None, ge=1, le=16_777_216)
    """Tokens that attention looks back; all when absent. Example: `4096`."""
    experts: Experts | None = None
    """Mixture of experts. Example: `{count: 64, topK: 8, ffn: 2048}`."""
    mla: LatentAttention | None = None
    """Multi-head latent attention.
    Example: `{queryRank: 1536, kvRank: 512, nopeDim: 128, ropeDim: 64, valueDim: 128}`."""
    linear_attention_layers: int = Field(0, ge=0, le=10_000)
    """Layers without a key-value cache. Example: `24`."""


def _parameters(fields: dict[str, Any]) -> float:
    return float(fields["parameters"])


class Custom(ApiModel):
    """A model that is known by its counts only: vision, speech, recommendation, your own."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.activeParameters) || !isQuantity(string(self.parameters))"
            " || !isQuantity(string(self.activeParameters))"
            " || quantity(string(self.activeParameters))"
            ".compareTo(quantity(string(self.parameters))) <= 0",
            "must be at most parameters (%s), is %s",
            ("string(self.parameters)", "string(self.activeParameters)"),
            ".activeParameters",
        ),
    )

    parameters: Annotated[float, Quantity("1", "100T", "25M")]
    """Parameters in all. Example: `25M`."""
    active_parameters: Annotated[float, Quantity("1", "100T", "25M")] = Field(
        default_factory=_parameters
    )
    """Parameters that one sample passes; all when absent. Example: `25M`."""
    forward_flops_per_sample: Annotated[float, Quantity("1", "1E", "4100M")] | None = None
    """Floating-point operations of the forward pass of one sample. When absent, a run goes by
    datasheets until runs of it were measured; services need it. Example: `4100M`."""
    activation_bytes_per_sample: Annotated[float, Quantity("0", "1P", "90M")]
    """Bytes that the forward pass of one sample keeps for the backward. Example: `90M`."""


class Model(ApiModel):
    """Exactly one of `preset`, `transformer` and `custom`."""

    rules: ClassVar[tuple[Rule, ...]] = (exactly_one("preset", "transformer", "custom"),)

    preset: Annotated[Title, Field(min_length=1)] | None = None
    """A name or alias of the shipped table, in any case. Example: `llama-3.1-70b`."""
    transformer: Transformer | None = None
    """A transformer's shape.
    Example: `{layers: 32, hidden: 4096, ffn: 14336, heads: 32, kvHeads: 8, vocab: 128256}`."""
    custom: Custom | None = None
    """Bare counts. Example: `{parameters: 25M, forwardFlopsPerSample: 4100M,
    activationBytesPerSample: 90M}`."""


_URI = "^(pvc://[a-z0-9][-a-z0-9.]*(/[^\\\\s]+)?|(hf|oci)://[A-Za-z0-9][-A-Za-z0-9._/:@]*)$"


class ServedModel(Model):
    """The model, where its weights are, and how they are stored."""

    uri: (
        Annotated[
            str,
            Field(max_length=1024),
            Rule(
                f"self == '' || (self.matches('{_URI}') && !self.matches('/[.][.](/|$)'))",
                "must be pvc://CLAIM/PATH, hf://ORGANIZATION/MODEL or oci://REGISTRY/REPOSITORY:TAG,"
                " without '..'",
            ),
        ]
        | None
    ) = None
    """Where the weights are: a claim of this namespace, Hugging Face, or an OCI registry.
    Example: `pvc://models/llama-3.1-8b`."""
    quantization: Literal["Auto", "None", "fp8", "int8", "int4", "nvfp4"] = "Auto"
    """Format of the weights. Auto takes a smaller one only where the accelerator computes in it
    and the model is published in it. Example: `fp8`."""
    max_model_length: int | None = Field(None, ge=1, le=16_777_216)
    """Longest context in tokens, prompt and answer; the model's own when absent.
    Example: `8192`."""
