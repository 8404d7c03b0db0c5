"""Status of a workload: conditions, the plan with its story, and what was measured.

The form of what :mod:`poolwise.plan` tells is open (numbers are added as the model learns), so
these objects describe the fields that people and printer columns rely on and keep all others.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from poolwise.api.base import ApiModel, Column
from poolwise.api.conditions import Conditions

POOL = Column("Pool", ".status.plan.pool")
ACCELERATOR = Column("Accelerator", ".status.plan.summary.accelerators")
SHAPE = Column("Shape", ".status.plan.summary.shape")
BOTTLENECK = Column("Bottleneck", ".status.plan.bottleneck")
COST_PER_HOUR = Column("Cost per hour", ".status.plan.costPerHour", "number", is_wide=True)
TOTAL_COST = Column("Predicted cost", ".status.plan.totalCost", "number", is_wide=True)
COST_SO_FAR = Column("Cost so far", ".status.observed.accrued.cost", "number", is_wide=True)

Sentence = Annotated[str, Field(max_length=4096)]
Word = Annotated[str, Field(max_length=253)]
Figures = Annotated[dict[Annotated[str, Field(max_length=63)], float], Field(max_length=64)]
Bottleneck = Literal[
    "Compute", "MemoryBandwidth", "MemoryCapacity", "Interconnect", "Input", "Host", "Latency"
]


class OpenModel(ApiModel):
    """An object that may carry more than is described here."""

    model_config = ConfigDict(extra="allow")


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
    """Cost of all that it holds, in the operator's currency. Example: `440.0`."""
    total_cost: float | None = None
    """Predicted cost of the run: of what is ahead of it. Example: `36400.0`."""
    steps_ahead: int | None = Field(None, ge=0)
    """Of a run that was stopped: the steps that its last checkpoint lacks, which cost and time are
    of. Example: `3660`."""
    prices: Annotated[tuple[ShadowPrice, ...], Field(max_length=64)] = ()
    """What an hour of the scarce ones among its pools costs everybody else.
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
    """Time that they had. Example: `1800`."""
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


class ScalingDecision(OpenModel):
    """One change of the number of replicas."""

    time: Word
    """When it was decided. Example: `"2026-11-24T12:00:00Z"`."""
    from_: int = Field(alias="from", ge=0)
    """Replicas before. Example: `2`."""
    to: int = Field(ge=0)
    """Replicas from then on. Example: `4`."""
    reason: Sentence = ""
    """What decided. Example: `TTFT p99 would be 3.1 s with 3 replicas in 60 s`."""


class ScalingPool(OpenModel):
    """Replicas on one of several pools."""

    pool: Word
    """Its name. Example: `h100-ib`."""
    replicas: int = Field(ge=0)
    """There. Example: `2`."""
    weight: float | None = None
    """What one bears, of one of the first pool. Example: `0.6`."""
    reason: Sentence = ""
    """Why there. Example: `beyond the room of h100-ib`."""


class ScalingSignal(OpenModel):
    """What was measured of one target."""

    metric: Word
    """TTFT, ITL or E2E. Example: `TTFT`."""
    percentile: float
    """Of the target. Example: `99`."""
    target_seconds: float | None = None
    """Longest that is allowed. Example: `2`."""
    low_seconds: float | None = None
    """The percentile is at least this: the lower bound of its bucket. Example: `0.5`."""
    high_seconds: float | None = None
    """And at most this. Example: `0.75`."""
    samples: float | None = None
    """Requests (gaps for ITL) that it is of. Example: `1840`."""


class PredictedReplicas(OpenModel):
    """A tail at one number of replicas."""

    replicas: int = Field(ge=0)
    """So many replicas. Example: `3`."""
    seconds: float | None = None
    """The percentile; absent where they cannot keep up. Example: `0.82`."""


class PredictedTail(OpenModel):
    """One target's percentile at several numbers of replicas."""

    metric: Word
    """TTFT, ITL or E2E. Example: `TTFT`."""
    percentile: float
    """Of the target. Example: `99`."""
    tails: Annotated[tuple[PredictedReplicas, ...], Field(max_length=16)] = ()
    """One fewer, as many, and one more. Example: `[{replicas: 3, seconds: 0.82}]`."""


class ScalingStatus(OpenModel):
    """How many replicas the load asks for, and why."""

    time: Word | None = None
    """When this was told; it stands while nothing changes that matters.
    Example: `"2026-11-24T12:00:00Z"`."""
    mode: Word | None = None
    """As `spec.scaling.mode`. Example: `Direct`."""
    desired_replicas: int | None = Field(None, ge=0)
    """Replicas that the load asks for. Example: `4`."""
    reason: Sentence = ""
    """Why so many. Example: `TTFT p99 would be 3.1 s with 3 replicas in 60 s`."""
    pools: Annotated[tuple[ScalingPool, ...], Field(max_length=8)] = ()
    """Where they run, if on several pools. Example: `[{pool: h100-ib, replicas: 2}]`."""
    limiting: Word | None = None
    """What stops a replica from serving more. Example: `TTFT p99`."""
    requests_per_second_per_replica: float | None = None
    """What one replica serves inside all targets. Example: `1.4`."""
    forecast: Figures | None = None
    """Requests per second when a replica asked for now would be ready; `high` is planned for.
    Example: `{low: 3.1, mid: 3.8, high: 4.7}`."""
    signals: Annotated[tuple[ScalingSignal, ...], Field(max_length=16)] = ()
    """What was measured of each target. Example: `[{metric: TTFT, percentile: 99}]`."""
    predicted: Annotated[tuple[PredictedTail, ...], Field(max_length=16)] = ()
    """What each target would be with one replica fewer, and one more.
    Example: `[{metric: TTFT, percentile: 99, tails: [{replicas: 3, seconds: 0.82}]}]`."""
    cost_per_hour: float | None = None
    """Of so many replicas. Example: `44.0`."""
    decisions: Annotated[tuple[ScalingDecision, ...], Field(max_length=10)] = ()
    """The last ten changes, the newest first.
    Example: `[{time: "2026-11-24T12:00:00Z", from: 2, to: 4}]`."""
    mismatches: Annotated[tuple[Word, ...], Field(max_length=16)] = ()
    """What is wrong with replicas beside their number: reasons of the condition AsPlanned.
    Example: `[KVCachePressure]`."""
    memory: Annotated[str, Field(max_length=16384)] = ""
    """What was learned of speeds, lengths and lateness, packed, for the next process.
    Example: `eNpVjs0KwyAQ`."""


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
