"""What a model is: the shape of a transformer, or nothing but counts.

The values are parsed once at the edge (:mod:`poolwise.plan.requests`); formulas take nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Experts:
    """Mixture of experts."""

    count: int
    top_k: int
    shared: int
    ffn: int
    """Width of one expert."""
    dense_layers: int
    """Leading layers with an ordinary MLP of the model's ``ffn``."""
    every: int = 1
    """One MoE layer in so many."""


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention: keys and values live compressed to ``kv_rank + rope_dim``."""

    query_rank: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True)
class Transformer:
    """Shape of a transformer; the counts follow from it (:mod:`poolwise.model.transformer`)."""

    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    gated_mlp: bool = True
    tied_embeddings: bool = False
    is_decoder: bool = True
    sliding_window: int | None = None
    windowed_layers: int | None = None
    """Layers under the window; None: all of them, when there is a window."""
    linear_attention_layers: int = 0
    """Layers without a key-value cache."""
    indexed_tokens: int | None = None
    """Keys that an index picks for each token; None: attention to all of them."""
    experts: Experts | None = None
    latent_attention: LatentAttention | None = None

    @property
    def reads_images(self) -> bool:
        """Whether its tokens are patches of a picture, which is always cut into as many."""
        return not self.is_decoder and not self.vocab

    def divides_heads(self, tensor: int) -> bool:
        """Whether each of so many ranks gets as many heads as the others: of keys and values
        several may have the same."""
        keys = self.kv_heads % tensor == 0 or tensor % self.kv_heads == 0
        return self.heads % tensor == 0 and keys


@dataclass(frozen=True, slots=True)
class Answer:
    """What one served item takes where that is more than a forward pass of training.

    A picture is all of its denoising steps, a transcript all of its tokens.
    """

    flops: float
    passes: float
    """Times that the weights are read, one after the other."""
    cache_bytes: float = 0.0
    """Read from caches over all passes, as attention of a decoder to its encoder does."""


@dataclass(frozen=True, slots=True)
class Custom:
    """A model known only by its counts (vision, speech, recommendation, a user's own)."""

    parameters: float
    active_parameters: float
    forward_flops_per_sample: float
    activation_bytes_per_sample: float
    repeated: Answer | None = None
    """None: serving an item is one forward pass."""
    is_described: bool = True
    """Whether the FLOPs were told; else they are a guess."""

    @property
    def answer(self) -> Answer:
        """Work of one served item."""
        return self.repeated or Answer(self.forward_flops_per_sample, 1.0)


@dataclass(frozen=True, slots=True)
class Model:
    """A model with its name; exactly one description of its shape."""

    name: str
    shape: Transformer | Custom
    max_context_tokens: int | None = None
    native_format: str = "bf16"
    """Format in which the weights are published."""
    published_parameters: float | None = None
    """Total count where the shape alone does not give it (hybrids, multimodal models)."""
    published_active_parameters: float | None = None

    @property
    def generates(self) -> bool:
        """Whether it answers token by token."""
        return isinstance(self.shape, Transformer) and self.shape.is_decoder
