"""One training run: batch, precision, length, and how it is laid over accelerators."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from poolwise.api.base import ApiModel
from poolwise.api.markers import Rule
from poolwise.api.names import AbsolutePath, DnsName
from poolwise.api.quantity import Duration, Quantity


class TrainingParallelism(ApiModel):
    """What is given is kept, the rest is chosen."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.expert) || !has(self.data) || self.data % self.expert == 0",
            "expert must divide data",
            "'must divide data (' + string(self.data) + '), is ' + string(self.expert)",
            ".expert",
        ),
    )

    data: int | None = Field(None, ge=1, le=65_536)
    """Data-parallel ranks. Example: `4`."""
    tensor: int | None = Field(None, ge=1, le=1024)
    """Accelerators that share each layer. Example: `8`."""
    pipeline: int | None = Field(None, ge=1, le=1024)
    """Stages of consecutive layers. Example: `2`."""
    expert: int | None = Field(None, ge=1, le=4096)
    """Data-parallel ranks that share the experts; divides `data`. Example: `4`."""
    context: int | None = Field(None, ge=1, le=1024)
    """Accelerators that share each sequence. Example: `1`."""
    zero_stage: int | None = Field(None, ge=0, le=3)
    """What data-parallel ranks shard: 0 nothing, 1 optimizer, 2 gradients too, 3 weights too.
    Example: `1`."""


class Training(ApiModel):
    """What one run computes."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "[has(self.tokens), has(self.samples), has(self.steps)]"
            ".filter(given, given).size() == 1",
            "must have exactly one of tokens, samples and steps",
            "'must have exactly one of tokens, samples and steps, has '"
            " + string([has(self.tokens), has(self.samples), has(self.steps)]"
            ".filter(given, given).size())",
        ),
        Rule(
            "!has(self.tokens) || has(self.sequenceLength)",
            "tokens needs sequenceLength; without it, give samples or steps",
            field_path=".sequenceLength",
        ),
        Rule(
            "!has(self.microBatchSize) || self.microBatchSize <= self.globalBatchSize",
            "microBatchSize must be at most globalBatchSize",
            "'must be at most globalBatchSize (' + string(self.globalBatchSize) + '), is '"
            " + string(self.microBatchSize)",
            ".microBatchSize",
        ),
        Rule(
            "!has(self.parallelism) || !has(self.parallelism.data)"
            " || self.parallelism.data <= self.globalBatchSize",
            "parallelism.data must be at most globalBatchSize",
            "'must be at most globalBatchSize (' + string(self.globalBatchSize) + '), is '"
            " + string(self.parallelism.data)",
            ".parallelism.data",
        ),
    )

    global_batch_size: int = Field(ge=1, le=16_777_216)
    """Samples per optimizer step, over all accelerators. Example: `1024`."""
    micro_batch_size: int | None = Field(None, ge=1, le=1_048_576)
    """Samples per data-parallel rank at a time; chosen when absent. Example: `1`."""
    sequence_length: int | None = Field(None, ge=1, le=16_777_216)
    """Tokens per sample; required for decoder models. Example: `8192`."""
    precision: Literal["bf16", "fp16", "fp32", "fp8"] = "bf16"
    """Format of the arithmetic. Example: `bf16`."""
    optimizer: Literal["AdamW", "Adam8bit", "Adafactor", "Sgd"] = "AdamW"
    """Optimizer, for the state that it keeps. Example: `AdamW`."""
    method: Literal["Full", "Lora", "Qlora"] = "Full"
    """Which parameters are trained. Example: `Lora`."""
    lora_rank: int = Field(16, ge=1, le=4096)
    """Rank of the adapters when `method` is Lora or Qlora. Example: `16`."""
    recompute: Literal["Auto", "None", "Selective", "Full"] = "Auto"
    """Activations computed again in the backward pass to save memory. Example: `Selective`."""
    tokens: Annotated[float, Quantity("1", "1P", "20G")] | None = None
    """Length of the run in tokens. Example: `20G`."""
    samples: Annotated[float, Quantity("1", "1P", "90M")] | None = None
    """Length of the run in samples. Example: `90M`."""
    steps: Annotated[float, Quantity("1", "1T", "10k")] | None = None
    """Length of the run in optimizer steps. Example: `10k`."""
    parallelism: TrainingParallelism = Field(default_factory=TrainingParallelism)
    """Parallel sizes to keep; data x tensor x pipeline x context is the number of accelerators.
    Example: `{tensor: 8, pipeline: 2}`."""


class Data(ApiModel):
    """What one sample costs before it reaches an accelerator."""

    bytes_per_sample: Annotated[float, Quantity("0", "1T", "32Ki")] = 0.0
    """Bytes read from storage for one sample. Example: `32Ki`."""
    cpu_time_per_sample: Annotated[float, Duration("0s", "1h", "5ms")] = 0.0
    """Time of one CPU core to decode and augment one sample. Example: `5ms`."""


class Checkpoint(ApiModel):
    """Where and how often the run saves its state."""

    claim_name: Annotated[DnsName, Field(min_length=1)]
    """PersistentVolumeClaim of the same namespace. Example: `ckpt`."""
    path: AbsolutePath = "/checkpoints"
    """Where it is mounted; in the container as POOLWISE_CHECKPOINT_DIR. Example: `/checkpoints`."""
    interval: Annotated[float, Duration("1s", "720h", "30m")] = Field(1800.0)
    """Time between two checkpoints. Example: `30m`."""
