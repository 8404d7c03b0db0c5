"""Status of a workload: conditions, the plan with its story, and what was measured.

The form of what :mod:`poolwise.plan` tells is open (numbers are added as the model learns), so
these objects describe the fields that people and printer columns rely on and keep all others.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from poolwise.api.base import ApiModel, Column, Figures, OpenModel, Sentence, Word
from poolwise.api.conditions import Conditions
from poolwise.api.scaling_status import ScalingStatus

POOL = Column("Pool", ".status.plan.pool")
ACCELERATOR = Column("Accelerator", ".status.plan.summary.accelerators")
SHAPE = Column("Shape", ".status.plan.summary.shape")
BOTTLENECK = Column("Bottleneck", ".status.plan.bottleneck")
COST_PER_HOUR = Column("Cost per hour", ".status.plan.costPerHour", "number", is_wide=True)
TOTAL_COST = Column("Predicted cost", ".status.plan.totalCost", "number", is_wide=True)
COST_SO_FAR = Column("Cost so far", ".status.observed.accrued.cost", "number", is_wide=True)

Bottleneck = Literal[
    "Compute", "MemoryBandwidth", "MemoryCapacity", "Interconnect", "Input", "Host", "Latency"
]


class Term(ApiModel):
    """One line of the ledger of time."""

    term: Word
    """What the time goes to. Example: `Compute`."""
    seconds: float
    """Seconds of one step, or of one request. Example: `92.0`."""


class Summary(ApiModel):
    """The plan in words, for `kubectl get`."""

    accelerators: Word = ""
    """Count and product. Example: `64xH100-SXM5-80GB`."""
    shape: Word = ""
    """Parallel sizes above 1. Example: `dp4 tp8 pp2`."""


class CandidateStatus(OpenModel):
    """One pool at its best shape, feasible or not."""

    pool: Word
    """AcceleratorPool. Example: `l40s-eth`."""
    accelerator: Word | None = None
    """Its accelerator, CPU, or absent while unknown. Example: `L40S`."""
    feasible: bool
    """Whether the workload could run there now. Example: `false`."""
    chosen: bool | None = None
    """Whether it was taken. Example: `true`."""
    reason: Sentence = ""
    """What decides, with the number.
    Example: `needs 91.2 GiB per accelerator at the smallest shape, L40S has 44.0 usable`."""


class ShadowPrice(OpenModel):
    """What the use of a pool costs everybody else who waits."""

    pool: Word
    """AcceleratorPool. Example: `h100-ib`."""
    per_accelerator_hour: float | None = None
    """In money. Example: `38.0`."""


class PlanStatus(OpenModel):
    """Where the workload runs and why; `poolwise explain` tells it as prose."""

    placed: bool | None = None
    """Whether capacity is held for it. Example: `true`."""
    pool: Word | None = None
    """AcceleratorPool that was chosen. Example: `h100-ib`."""
    accelerator: Word | None = None
    """Its accelerator, or CPU. Example: `H100-SXM5-80GB`."""
    count: int | None = Field(None, ge=0)
    """Accelerators of the job, or of one replica. Example: `64`."""
    replicas: int | None = Field(None, ge=0)
    """Replicas of the service. Example: `3`."""
    summary: Summary | None = None
    """The plan in words, for `kubectl get`. Example: `{accelerators: 64xH100-SXM5-80GB}`."""
    shape: Annotated[dict[str, object], Field(max_length=64)] | None = None
    """Parallel sizes, micro-batch, formats. Example: `{data: 4, tensor: 8, pipeline: 2}`."""
    bottleneck: Bottleneck | None = None
    """Resource of which 10 % more would gain most. Example: `Compute`."""
    gains: Figures | None = None
    """Relative gain in throughput from 10 % more of each resource. Example: `{Compute: 0.071}`."""
    ledger: Annotated[tuple[Term, ...], Field(max_length=64)] = ()
    """Where the time goes; sums to `stepSeconds`, of a service to `meanRequestSeconds`.
    Example: `[{term: Compute, seconds: 92.0}]`."""
    memory: Figures | None = None
    """Bytes of the fullest accelerator by use. Example: `{weightsBytes: 18000000000}`."""
    predicted: Annotated[dict[str, object], Field(max_length=64)] | None = None
    """Times, rates and their ranges. Example: `{stepSeconds: 125.0}`."""
    arithmetic_intensity: float | None = None
    """FLOP per byte of memory traffic of the workload. Example: `412.0`."""
    ridge_point: float | None = None
    """FLOP per byte where compute and bandwidth of the accelerator balance. Example: `295.0`."""
    cost_per_hour: float | None = None
    """Cost of all that it holds, on `further` pools too, in the operator's currency.
    Example: `440.0`."""
    total_cost: float | None = None
    """Predicted cost of the run: of what is ahead of it, and of nodes while they start
    (`startupSeconds`, which `totalSeconds` leaves out). Example: `36400.0`."""
    steps_ahead: int | None = Field(None, ge=0)
    """Of a run that was stopped: the steps that its last checkpoint lacks, which cost and time are
    of. Example: `3660`."""
    prices: Annotated[tuple[ShadowPrice, ...], Field(max_length=64)] = ()
    """What an hour of the scarce ones among its pools costs everybody else, until it runs.
    Example: `[{pool: h100-ib, perAcceleratorHour: 38.0}]`."""
    expected_start_time: Word | None = None
    """While it waits: when it may start, absent where nobody can tell.
    Example: `"2026-11-24T12:40:00Z"`."""
    reason: Sentence = ""
    """Why here, or what it waits for. Example: `6 % slower than h200-ib for 20 % less`."""
    candidates: Annotated[tuple[CandidateStatus, ...], Field(max_length=512)] = ()
    """Every pool with the reason that decided for or against it.
    Example: `[{pool: l40s-eth, feasible: false, reason: 16 free}]`."""


class GivenUpStatus(OpenModel):
    """Attempts to start in one pool whose pods did not all start in time."""

    pool: Word
    """AcceleratorPool. Example: `h100-spot`."""
    time: Word
    """When the last one was given up. Example: `"2026-11-22T12:40:00Z"`."""
    placed_time: Word | None = None
    """Since when its pods could have started. Example: `"2026-11-22T12:10:00Z"`."""
    started_pods: int | None = Field(None, ge=0)
    """Pods of it that started. Example: `3`."""
    pods: int | None = Field(None, ge=0)
    """Pods that it had. Example: `8`."""
    timeout_seconds: int | None = Field(None, ge=0)
    """Time that they had; 0 where the pool was deleted first. Example: `1800`."""
    attempts: int | None = Field(None, ge=0)
    """How often in a row; the pool is left alone twice as long after each. Example: `2`."""
    nodes_missing: bool | None = None
    """Whether it waited for nodes that did not come. Example: `true`."""


class StartStatus(OpenModel):
    """What a restarted operator has to know of attempts to start."""

    started_time: Word | None = None
    """When all pods had started; from then on the placement is never given up for being slow.
    Example: `"2026-11-22T12:40:00Z"`."""
    given_up: Annotated[tuple[GivenUpStatus, ...], Field(max_length=512)] = ()
    """Where it did not start. Example: `[{pool: h100-spot, time: "2026-11-22T12:40:00Z"}]`."""


class Accrued(OpenModel):
    """What it has cost and used up to a moment, and what it uses per hour since then."""

    until: Word | None = None
    """The sums are those of this moment. Example: `"2026-11-24T12:00:00Z"`."""
    cost: float | None = None
    """Money. Example: `1320.5`."""
    kilowatt_hours: float | None = None
    """Energy of the accelerators, from the predicted power. Example: `123.4`."""


class TrainingMeasured(OpenModel):
    """What rank 0 told of the run."""

    steps: int | None = Field(None, ge=0)
    """Done. Example: `1200`."""
    of_steps: int | None = Field(None, ge=0)
    """Of the whole run. Example: `4883`."""
    step_seconds: float | None = None
    """Of a step, without checkpoints. Example: `131.0`."""
    samples: int | None = Field(None, ge=0)
    """Windows that this is the median of. Example: `16`."""
    last_checkpoint_time: Word | None = None
    """When it was written. Example: `"2026-11-24T12:00:00Z"`."""


class ObservedStatus(OpenModel):
    """What was measured, its ratio to the prediction, and what it has cost."""

    ratio: float | None = None
    """Measured over predicted time of a step, or of a token of a service. Example: `1.04`."""
    training: TrainingMeasured | None = None
    """What rank 0 told. Example: `{steps: 1200}`."""
    accrued: Accrued | None = None
    """Cost and energy so far. Example: `{cost: 1320.5, until: "2026-11-24T12:00:00Z"}`."""


class WorkloadStatus(ApiModel):
    """What became of a workload; written by Poolwise only."""

    observed_generation: int | None = Field(None, ge=0)
    """`metadata.generation` that this status is about. Example: `3`."""
    conditions: Conditions = ()
    """What is so and why. Example: `[]`."""
    plan: PlanStatus | None = None
    """Where it runs and why. Example: `{pool: h100-ib, bottleneck: Compute}`."""
    start: StartStatus | None = None
    """What became of attempts to start. Example: `{startedTime: "2026-11-22T12:40:00Z"}`."""
    observed: ObservedStatus | None = None
    """What was measured. Example: `{ratio: 1.04}`."""


class TrainingJobStatus(WorkloadStatus):
    """Status of a TrainingJob."""


class InferenceServiceStatus(WorkloadStatus):
    """Status of an InferenceService."""

    replicas: int | None = Field(None, ge=0)
    """Replicas that exist, for the scale subresource. Example: `3`."""
    ready_replicas: int | None = Field(None, ge=0)
    """Replicas that answer. Example: `3`."""
    scaling: ScalingStatus | None = None
    """How many replicas the load asks for, and why. Example: `{desiredReplicas: 4}`."""
    selector: Annotated[str, Field(max_length=1024)] | None = None
    """Label selector of the pods, for autoscalers. Example: `app.kubernetes.io/name=chat`."""
