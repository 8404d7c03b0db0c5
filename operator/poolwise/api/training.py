"""One training run: batch, precision, length, and how it is laid over accelerators."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from poolwise.api.base import ApiModel
from poolwise.api.markers import Rule, divides, exactly_one
from poolwise.api.names import AbsolutePath, DnsName
from poolwise.api.parallelism import TrainingParallelism
from poolwise.api.quantity import Duration, Quantity


class Training(ApiModel):
    """What one run computes."""

    rules: ClassVar[tuple[Rule, ...]] = (
        exactly_one("tokens", "samples", "steps"),
        Rule(
            "!has(self.tokens) || has(self.sequenceLength)",
            "tokens needs sequenceLength; without it, give samples or steps",
            field=".sequenceLength",
        ),
        Rule(
            "!has(self.microBatchSize)"
            f" || {divides('self.microBatchSize', 'self.globalBatchSize')}",
            "must divide globalBatchSize (%d), is %d",
            ("self.globalBatchSize", "self.microBatchSize"),
            ".microBatchSize",
        ),
        Rule(
            "!has(self.parallelism) || !has(self.parallelism.data)"
            f" || {divides('self.parallelism.data', 'self.globalBatchSize')}",
            "must divide globalBatchSize (%d), is %d",
            ("self.globalBatchSize", "self.parallelism.data"),
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
    execution: Literal["Fused", "Eager"] = "Fused"
    """How the framework runs the layers: Fused, compiled or by fused kernels, as Megatron-LM, NeMo,
    torchtitan and `torch.compile` do; Eager, operator by operator with logits in fp32, as the
    trainer of transformers does unless told otherwise. Example: `Eager`."""
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
