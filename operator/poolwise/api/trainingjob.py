"""TrainingJob: one training run."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from poolwise.api.accelerators import TrainingAccelerators
from poolwise.api.base import AGE, READY_REASON, ApiModel, Column, Resource
from poolwise.api.markers import Rule
from poolwise.api.model_spec import Model
from poolwise.api.names import DnsName
from poolwise.api.parallelism import TRAINING_RULES
from poolwise.api.placement import TrainingObjective
from poolwise.api.quantity import Duration
from poolwise.api.status import (
    ACCELERATOR,
    BOTTLENECK,
    COST_SO_FAR,
    POOL,
    SHAPE,
    TOTAL_COST,
    TrainingJobStatus,
)
from poolwise.api.training import Checkpoint, Data, Training
from poolwise.api.workload import WorkloadSpec

SECONDS_LIMIT = 2_147_483_647

_ALWAYS_THERE = ("model", "training", "accelerators", "runtime", "mode", "backoffLimit")
"""Fields that describe the run itself, which its pods were made from: required, or defaulted."""
_FROZEN = (*_ALWAYS_THERE, "data", "checkpoint", "run", "runtimeRef", "queueName")
"""With those that may be absent."""

_HAS_PODS = (
    "has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c,"
    " c.type in ['Placed', 'Complete', 'Failed'] && c.status == 'True')"
)
"""CEL: they exist, or have ended. A run that has ended is not begun again, whatever its spec says;
that it is suspended afterwards changes nothing of it."""


def _is_same(name: str) -> str:
    """CEL of whether a field of the spec stays as it is."""
    new, old = f"self.spec.{name}", f"oldSelf.spec.{name}"
    if name in _ALWAYS_THERE:
        return f"{new} == {old}"
    return f"(has({new}) ? has({old}) && {new} == {old} : !has({old}))"


_RESERVED_VARIABLES = (
    "^(POOLWISE_[A-Z0-9_]*|PET_(NNODES|NPROC_PER_NODE|NODE_RANK|RDZV_ENDPOINT)|MASTER_(ADDR|PORT)"
    "|WORLD_SIZE|RANK)$"
)
"""What the plan sets in every container; another value would break the rendezvous."""


class RuntimeRef(ApiModel):
    """A runtime of Kubeflow Trainer: the template that the pods are made from."""

    name: Annotated[DnsName, Field(min_length=1)]
    """Name of the runtime. Example: `torch-distributed`."""
    kind: Literal["ClusterTrainingRuntime", "TrainingRuntime"] = "ClusterTrainingRuntime"
    """Kind of the runtime; a TrainingRuntime is one of the same namespace.
    Example: `ClusterTrainingRuntime`."""


class TrainingJobSpec(WorkloadSpec):
    """What is to be trained, on how much, and how it runs."""

    rules: ClassVar[tuple[Rule, ...]] = (
        *TRAINING_RULES,
        Rule(
            "!has(self.model.transformer) || has(self.training.sequenceLength)",
            "is required when model.transformer is given",
            field=".training.sequenceLength",
        ),
        Rule(
            "!has(self.checkpoint) || !has(self.run.volumeMounts)"
            " || !self.run.volumeMounts.exists(mount, mount.mountPath == self.checkpoint.path)",
            "must not be a mountPath of run.volumeMounts",
            field=".checkpoint.path",
        ),
        Rule(
            "!has(self.run.env)"
            f" || !self.run.env.exists(variable, variable.name.matches('{_RESERVED_VARIABLES}'))",
            "must not set %s, which the plan sets",
            (
                "self.run.env.filter(variable,"
                f" variable.name.matches('{_RESERVED_VARIABLES}'))[0].name",
            ),
            ".run.env",
        ),
        Rule(
            "!has(self.runtimeRef) || self.runtime in ['Auto', 'TrainJob']",
            "must be Auto or TrainJob when runtimeRef is given",
            field=".runtime",
        ),
        Rule(
            "self.runtime != 'TrainJob' || has(self.runtimeRef)",
            "is required when runtime is TrainJob",
            field=".runtimeRef",
        ),
        *(
            Rule(
                f"!has(self.runtimeRef) || !has(self.{path})",
                "must not be given with runtimeRef: a TrainJob has no such field",
                field=f".{path}",
            )
            for path in ("ttlSecondsAfterFinished", "run.envFrom", "run.ports")
        ),
    )

    model: Model
    """The model that is trained. Example: `{preset: llama-3.1-70b}`."""
    training: Training
    """Batch, precision and length of the run.
    Example: `{globalBatchSize: 1024, sequenceLength: 8192, tokens: 20G}`."""
    data: Data = Field(default_factory=Data)
    """What one sample costs before it reaches an accelerator; nothing when absent.
    Example: `{bytesPerSample: 32Ki, cpuTimePerSample: 5ms}`."""
    checkpoint: Checkpoint | None = None
    """Where and how often the run saves its state. Example: `{claimName: ckpt, interval: 30m}`."""
    accelerators: TrainingAccelerators
    """How many accelerators of which kinds. Example: `{count: 64}`."""
    objective: TrainingObjective = Field(default_factory=TrainingObjective)
    """What the choice among feasible places minimises. Example: `{goal: Cost}`."""
    runtime: Literal["Auto", "Job", "JobSet", "TrainJob"] = "Auto"
    """Kind of object that runs the pods; Auto takes a TrainJob where `runtimeRef` is given, a
    JobSet for several pods where the cluster has JobSet, else a Job. Example: `Auto`."""
    runtime_ref: RuntimeRef | None = None
    """Runtime of Kubeflow Trainer that the run is started by, as a TrainJob.
    Example: `{name: torch-distributed}`."""
    queue_name: DnsName = ""
    """Kueue LocalQueue of the same namespace. Example: `research`."""
    suspend: bool = False
    """Whether the run is stopped and its accelerators are given back. Example: `false`."""
    backoff_limit: int = Field(3, ge=0, le=1000)
    """Restarts after failures before the run counts as failed. Example: `3`."""
    active_deadline_seconds: int | None = Field(None, ge=1, le=SECONDS_LIMIT)
    """Seconds after which a running job is stopped and counts as failed. Example: `259200`."""
    ttl_seconds_after_finished: int | None = Field(None, ge=0, le=SECONDS_LIMIT)
    """Seconds after which a finished job's pods are deleted. Example: `86400`."""
    start_timeout: Annotated[float, Duration("1s", "168h", "30m")] = Field(1800.0)
    """Time that all pods may take to start. Example: `30m`."""


class TrainingJob(Resource):
    """One training run: what it computes is said here, where and how it runs is in its status."""

    short_name: ClassVar[str] = "tj"
    rules: ClassVar[tuple[Rule, ...]] = tuple(
        Rule(
            f"!({_HAS_PODS}) || {_is_same(name)}",
            "cannot change once pods exist: delete and create again, or set suspend first"
            " if it has not ended",
            field=f".spec.{name}",
        )
        for name in _FROZEN
    )
    columns: ClassVar[tuple[Column, ...]] = (
        *(POOL, ACCELERATOR, SHAPE, BOTTLENECK, READY_REASON, AGE, TOTAL_COST, COST_SO_FAR),
    )

    spec: TrainingJobSpec
    """What is to be trained, on how much, and how it runs."""
    status: TrainingJobStatus | None = None
    """What became of it; written by Poolwise only."""
