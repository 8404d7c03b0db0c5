"""What is asked of a machine: one training run, one service, and how each is laid over devices.

The values are parsed once at the edge (:mod:`poolwise.plan.requests`); formulas take nothing else.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property

from poolwise.model.shapes import Model

PERCENTILE_DECIMALS = 6
"""As many as the API takes."""


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


class Execution(enum.StrEnum):
    """How a framework runs the layers."""

    FUSED = "Fused"
    """Compiled, or by kernels of several operations: Megatron-LM, ``torch.compile``."""
    EAGER = "Eager"
    """Operator by operator, with logits in fp32: transformers' own trainer, unless told."""


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
    execution: Execution = Execution.FUSED
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


class Metric(enum.StrEnum):
    """Latencies a target can name."""

    TTFT = "TTFT"
    """From arrival to the first token."""
    ITL = "ITL"
    """Every gap between two tokens."""
    TPOT = "TPOT"
    """The mean gap of one request."""
    E2E = "E2E"
    """From arrival to the last token."""

    @cached_property
    def is_from_arrival(self) -> bool:
        """Whether who waits longer for a replica has it later. Searches ask thousands of times."""
        return self is Metric.TTFT or self is Metric.E2E


def percentile_name(percent: float) -> str:
    """As in ``p99.9``, with every digit that a target may have: rounded to six, 99.999999 would be
    told as p100, which nothing can keep.

    >>> percentile_name(99.0), percentile_name(99.999999)
    ('99', '99.999999')
    """
    return f"{percent:.{PERCENTILE_DECIMALS}f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class Target:
    """A tail that must hold: ``percentile`` of 100 requests (of 100 gaps for ITL) stay below
    ``seconds``."""

    metric: Metric
    percentile: float
    """In percent, between 0 and 100, both excluded."""
    seconds: float

    def __str__(self) -> str:
        """As in ``TTFT p99``."""
        return f"{self.metric} p{percentile_name(self.percentile)}"

    @property
    def allowed_share(self) -> float:
        """That may be later."""
        return 1.0 - self.percentile / 100.0


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
    """All must hold; none: only the rate counts."""
    reported: tuple[Target, ...] = ()
    """What is told of where only the rate counts: it bounds nothing."""
    arrival_dispersion: float = 1.5
    """Variance over mean of the arrivals in a few seconds: 1 is Poisson, 0 a metronome. Five public
    request traces have 0.8, 1.4, 1.6, 2.4 and 59 over 5-10 s (Azure 2023, Mooncake, ServeGen)."""
    engine: str = "vllm"
    """vllm | sglang | tgi | triton | custom"""
    software_year: float | None = None
    """When the engine was released, e.g. 2025.5; None: as new as what the constants know."""
    memory_fraction: float | None = None
    """Of each accelerator, what the engine is told to take; None: as much as it takes untold."""


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
