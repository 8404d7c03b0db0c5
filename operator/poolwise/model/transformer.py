"""What a model computes, counted from its shape: parameters and FLOPs.

Parameters of one layer (h hidden, a heads, g key-value heads, d head size, f MLP width):
attention ``h*a*d + 2*h*g*d + a*d*h``; MLP ``2*h*f`` or gated ``3*h*f``; a mixture of experts has
E such MLPs of its own width, its shared ones, and a router ``h*E``. Latent attention:
``h*q_r + q_r*a*(d_n+d_r) + h*(kv_r+d_r) + kv_r*a*(d_n+d_v) + a*d_v*h`` (DeepSeek-V2,
arXiv 2405.04434). Biases and learned positions are left out: below 0.5 % beyond 1 B parameters.

FLOPs count a multiply-add as two. One token forward costs ``2*N`` for the N parameters that it
is multiplied with, and ``2*a*(d_qk + d_v)`` for each key it attends to in each layer
(Megatron, arXiv 2104.04473).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from poolwise.errors import InvalidInput
from poolwise.model.shapes import Custom, Model, Transformer


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameter counts by term, over all layers."""

    embedding: float = 0.0
    """Input look-up: read one row a token, never multiplied (unless it is tied to the head)."""
    attention: float = 0.0
    mlp: float = 0.0
    """Dense MLPs."""
    experts: float = 0.0
    """Routed experts, all of them."""
    shared_experts: float = 0.0
    router: float = 0.0
    norms: float = 0.0
    head: float = 0.0
    """Output projection; 0 where it shares the embedding's matrix."""
    other: float = 0.0
    """A custom model's, whose parts are unknown."""
    routed_fraction: float = 0.0
    """Share of the routed experts that one token uses: top-k over count."""
    tied_head: float = 0.0
    """Multiplied with each token but counted in ``embedding``."""

    @property
    def total(self) -> float:
        """Everything that is stored once."""
        return self.embedding + self.head + self.body

    @property
    def body(self) -> float:
        """All layers, without embedding and head."""
        dense = self.attention + self.mlp + self.shared_experts + self.router + self.norms
        return dense + self.experts + self.other

    @property
    def active(self) -> float:
        """What one token uses, embedding included (the published convention)."""
        return self.total - self.experts * (1 - self.routed_fraction)

    @property
    def multiplied(self) -> float:
        """What one token is multiplied with: active, with the head and without the look-up."""
        return self.active - self.embedding + self.tied_head


@lru_cache(maxsize=1024)
def parameters(model: Model) -> Parameters:
    """Counts of a model; published totals win where the model carries them."""
    if isinstance(model.shape, Custom):
        return _custom_parameters(model.shape)
    counted = shape_parameters(model.shape)
    if model.published_parameters is None:
        return counted
    active = model.published_active_parameters or model.published_parameters
    found = _fitted_to(counted, model.published_parameters, active)
    if found is None:
        counts = f"{model.published_parameters:.4g} parameters of which {active:.4g} are active"
        raise InvalidInput(model.name, f"{counts} leave none for its layers: give its shape")
    return found


def shape_parameters(shape: Transformer) -> Parameters:
    """Counts that follow from the shape alone (layers of linear attention count like others)."""
    experts = shape.experts
    embedding = float(shape.vocab * shape.hidden)
    sparse = sparse_layers(shape)
    one = mlp_parameters(shape, experts.ffn) if experts else 0.0
    return Parameters(
        embedding=embedding,
        attention=attention_parameters(shape) * shape.layers,
        mlp=mlp_parameters(shape, shape.ffn) * (shape.layers - sparse),
        experts=one * sparse * experts.count if experts else 0.0,
        shared_experts=one * sparse * experts.shared if experts else 0.0,
        router=float(shape.hidden * experts.count * sparse) if experts else 0.0,
        norms=2.0 * shape.hidden * shape.layers,
        head=0.0 if shape.tied_embeddings else embedding,
        routed_fraction=experts.top_k / experts.count if experts else 0.0,
        tied_head=embedding if shape.tied_embeddings else 0.0,
    )


def _custom_parameters(shape: Custom) -> Parameters:
    idle = shape.parameters - shape.active_parameters
    return Parameters(other=shape.active_parameters, experts=idle)


def _fitted_to(counted: Parameters, total: float, active: float) -> Parameters | None:
    """Counts scaled to a published total and active count.

    Routed experts X and the rest U follow from ``U + X = total`` and ``U + X*k/E = active``. None
    where U does not even hold the embeddings, so that no such model can be.
    """
    share = counted.routed_fraction
    routed = (total - active) / (1 - share) if counted.experts else 0.0
    kept = counted.embedding + counted.head
    scale = (total - routed - kept) / (counted.body - counted.experts)
    if routed < 0.0 or not 0.0 < scale < math.inf:
        return None
    return replace(
        counted,
        attention=counted.attention * scale,
        mlp=counted.mlp * scale,
        experts=routed,
        shared_experts=counted.shared_experts * scale,
        router=counted.router * scale,
        norms=counted.norms * scale,
    )


def attention_parameters(shape: Transformer) -> float:
    """Projections of one layer."""
    latent, hidden, heads = shape.latent_attention, shape.hidden, shape.heads
    if latent is None:
        return float(2 * hidden * shape.head_dim * (heads + shape.kv_heads))
    key_dim = latent.nope_dim + latent.rope_dim
    if latent.query_rank:
        queries = latent.query_rank * (hidden + heads * key_dim)
    else:
        queries = hidden * heads * key_dim
    compressed = hidden * (latent.kv_rank + latent.rope_dim)
    expanded = latent.kv_rank * heads * (latent.nope_dim + latent.value_dim)
    return float(queries + compressed + expanded + heads * latent.value_dim * hidden)


def mlp_parameters(shape: Transformer, width: int) -> float:
    """One MLP of the given width."""
    return float((3 if shape.gated_mlp else 2) * shape.hidden * width)


def sparse_layers(shape: Transformer) -> int:
    """Layers whose MLP is a mixture of experts."""
    if shape.experts is None:
        return 0
    return (shape.layers - shape.experts.dense_layers) // shape.experts.every


def attention_flops_per_key(shape: Transformer) -> float:
    """Scores and weighted values of one query against one key, one layer."""
    latent = shape.latent_attention
    if latent is None:
        return 4.0 * shape.heads * shape.head_dim
    return 2.0 * shape.heads * (latent.nope_dim + latent.rope_dim + latent.value_dim)


def decode_attention_flops_per_key(shape: Transformer) -> float:
    """The same while generating, where latent attention works on the compressed cache.

    ``2*a*(2*kv_r + d_r)``: the up-projections are absorbed into queries and output.
    """
    latent = shape.latent_attention
    if latent is None:
        return attention_flops_per_key(shape)
    return 2.0 * shape.heads * (2 * latent.kv_rank + latent.rope_dim)


def attended_keys(shape: Transformer, sequence_tokens: float) -> float:
    """Keys that one token attends to, summed over layers, on average over a sequence.

    Causal: ``s/2``; under a window w < s: ``w - w*w/(2*s)``; bidirectional: s.
    """
    full = sequence_tokens / 2 if shape.is_decoder else sequence_tokens
    windowed, whole = attending_layers(shape)
    window = min(shape.sliding_window or sequence_tokens, sequence_tokens)
    inside = window - window * window / (2 * sequence_tokens)
    return whole * full + windowed * min(inside, full)


def attending_layers(shape: Transformer) -> tuple[int, int]:
    """Layers with a cache: under the window, and without one."""
    attending = shape.layers - shape.linear_attention_layers
    if shape.sliding_window is None:
        return 0, attending
    windowed = attending if shape.windowed_layers is None else shape.windowed_layers
    return windowed, attending - windowed
