"""What is asked of a machine: the model's shape, one training run, one service, and their layouts.

The values are parsed once at the edge (:mod:`poolwise.plan.parse`); formulas take nothing else.
"""

from __future__ import annotations

import enum
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


class Optimizer(enum.StrEnum):
    """Optimizers by the state they keep."""

    ADAMW = "AdamW"
    ADAM_8BIT = "Adam8bit"
    ADAFACTOR = "Adafactor"
    SGD = "Sgd"


class Method(enum.StrEnum):
    """Which parameters are trained."""

    FULL = "Full"
    LORA = "Lora"
    QLORA = "Qlora"


class Recompute(enum.StrEnum):
    """Activations computed again in the backward pass."""

    NONE = "None"
    SELECTIVE = "Selective"
    FULL = "Full"


@dataclass(frozen=True, slots=True)
class TrainingWork:
    """One training run, whatever it runs on."""

    model: Model
    global_batch_samples: int
    sequence_tokens: int | None
    """None where samples have no tokens."""
    precision: str
    """bf16 | fp16 | fp32 | fp8"""
    optimizer: Optimizer = Optimizer.ADAMW
    method: Method = Method.FULL
    lora_rank: int = 16
    steps: float | None = None
    """Optimizer steps of the whole run."""
    bytes_per_sample: float = 0.0
    """Read from storage for each sample."""
    cpu_seconds_per_sample: float = 0.0
    """Decode and augmentation on one core."""
    checkpoint_interval_seconds: float | None = None
    software_year: float | None = None
    """When the framework was released, e.g. 2025.5; None: as new as what the constants know."""


@dataclass(frozen=True, slots=True)
class TrainingLayout:
    """How a run is laid over ``data * tensor * pipeline * context`` accelerators."""

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    """Divides ``data``; experts live across that many data-parallel ranks."""
    context: int = 1
    zero_stage: int = 1
    """0 replicates everything, 1 shards the optimizer, 2 gradients too, 3 weights too (FSDP)."""
    micro_batch_size: int = 1
    """Samples per data-parallel rank and micro-step."""
    recompute: Recompute = Recompute.NONE
    interleave: int = 1
    """Pipeline stages of each device (virtual stages); 1 is plain 1F1B."""

    @property
    def count(self) -> int:
        """Accelerators in use."""
        return self.data * self.tensor * self.pipeline * self.context

    def micro_batches(self, global_batch_samples: int) -> float:
        """Micro-steps per optimizer step of one data-parallel rank."""
        return global_batch_samples / (self.data * self.micro_batch_size)


class Metric(enum.StrEnum):
    """Latencies a target can name."""

    TTFT = "TTFT"
    ITL = "ITL"
    E2E = "E2E"


@dataclass(frozen=True, slots=True)
class Target:
    """A tail that must hold: the ``percentile``-th of ``metric`` stays below ``seconds``."""

    metric: Metric
    percentile: float
    """In percent, between 0 and 100, both excluded."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Tokens:
    """A distribution of lengths by its median and 95th percentile."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class ServingWork:
    """One service, whatever it runs on."""

    model: Model
    requests_per_second: float | None
    """Peak over all replicas; items for models that are not decoders. None: not known yet."""
    input_tokens: Tokens
    output_tokens: Tokens
    prefix_hit_fraction: float
    max_model_tokens: int | None
    targets: tuple[Target, ...]
    arrival_dispersion: float = 1.5
    """Variance over mean of the arrivals in a few seconds: 1 is Poisson, 0 a metronome. Five public
    request traces have 0.8, 1.4, 1.6, 2.4 and 59 over 5-10 s (Azure 2023, Mooncake, ServeGen)."""
    engine: str = "vllm"
    """vllm | sglang | tgi | triton | custom"""
    software_year: float | None = None
    """When the engine was released, e.g. 2025.5; None: as new as what the constants know."""


@dataclass(frozen=True, slots=True)
class ServingLayout:
    """How one replica is laid over ``tensor * pipeline`` accelerators, or over CPU cores."""

    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    weight_format: str = "bf16"
    """bf16 | fp16 | fp8 | int8 | int4 | nvfp4"""
    max_num_seqs: int = 256
    max_model_tokens: int = 8192
    max_batched_tokens: int = 2048
    """Prompt and generated tokens of one step together: the chunk of a chunked prefill."""
    kv_format: str = "bf16"
    """bf16 | fp16 | fp8"""
    cpu_cores: float = 0.0
    """CPU replicas only."""
    cpu_memory_bytes: float = 0.0
    data: int = 1
    """Groups of ``tensor`` devices that each attend to their own requests (attention DP) and share
    one set of experts."""

    @property
    def count(self) -> int:
        """Accelerators of one replica; 0 on CPU."""
        return 0 if self.cpu_cores else self.tensor * self.pipeline * self.data
