"""InferenceService: one model behind one address."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from poolwise.api.accelerators import ServingAccelerators
from poolwise.api.base import AGE, READY_REASON, Column, Resource
from poolwise.api.markers import Rule
from poolwise.api.model_spec import ServedModel
from poolwise.api.parallelism import SERVING_RULES, ServingParallelism
from poolwise.api.placement import ServingObjective
from poolwise.api.service import Engine, LatencyTargets, ModelCache, Scaling, Traffic
from poolwise.api.status import (
    ACCELERATOR,
    BOTTLENECK,
    COST_PER_HOUR,
    COST_SO_FAR,
    POOL,
    InferenceServiceStatus,
)
from poolwise.api.workload import WorkloadSpec


def _p95(field: str) -> str:
    """CEL of the 95th percentile of a length; 0 where it is not known."""
    given = f"has({field}.p95) ? {field}.p95 : {field}.p50"
    return f"(has(self.traffic) && has({field}) ? ({given}) : 0)"


_LONGEST = f"{_p95('self.traffic.inputTokens')} + {_p95('self.traffic.outputTokens')}"


class InferenceServiceSpec(WorkloadSpec):
    """Which model, under which traffic, inside which latency."""

    rules: ClassVar[tuple[Rule, ...]] = (
        *SERVING_RULES,
        Rule(
            "self.trafficClass == 'Throughput' || (has(self.slo) && self.slo.size() > 0)",
            "must have at least one target unless trafficClass is Throughput",
            field=".slo",
        ),
        Rule(
            "self.replicas > 0 || self.scaling.scaleToZero || self.scaling.mode == 'Direct'",
            "must be at least 1 in scaling modes External and Off unless scaling.scaleToZero is"
            " true, is %d",
            ("self.replicas",),
            ".replicas",
        ),
        Rule(
            "self.engine.type != 'custom' || has(self.engine.image) || has(self.run.image)",
            "is required when engine.type is custom (here or as engine.image)",
            field=".run.image",
        ),
        Rule(
            f"!has(self.model.maxModelLength) || {_LONGEST} <= self.model.maxModelLength",
            "prompt and answer at their 95th percentile must be at most model.maxModelLength (%d)"
            " together, are %d",
            ("self.model.maxModelLength", _LONGEST),
            ".traffic",
        ),
        Rule(
            "!has(self.model.custom) || !has(self.slo)"
            " || self.slo.all(target, target.metric == 'E2E')",
            "must have only the metric E2E with model.custom, which generates no tokens",
            field=".slo",
        ),
        Rule(
            "!has(self.model.custom) || has(self.model.custom.forwardFlopsPerSample)",
            "is required for a service, whose targets are met by prediction",
            field=".model.custom.forwardFlopsPerSample",
        ),
    )

    model: ServedModel
    """The model that is served. Example: `{preset: llama-3.1-8b, uri: "pvc://models/llama"}`."""
    traffic: Traffic = Field(default_factory=Traffic)
    """The peak that the service must withstand; learned when absent.
    Example: `{requestsPerSecond: "12.5"}`."""
    slo: LatencyTargets = ()
    """Tails that must hold; at least one unless `trafficClass` is Throughput.
    Example: `[{metric: TTFT, percentile: 99, target: 500ms}]`."""
    traffic_class: Literal["LatencyCritical", "Throughput"] = "LatencyCritical"
    """Whether the tail counts, or only the rate: targets are told then.
    Example: `LatencyCritical`."""
    replicas: int = Field(1, ge=0, le=10_000)
    """Replicas in the scaling modes External and Off; written by people, HPA or KEDA through the
    scale subresource, ignored in mode Direct. Example: `2`."""
    scaling: Scaling = Field(default_factory=Scaling)
    """Who sets the number of replicas, and its limits. Example: `{maxReplicas: 10}`."""
    accelerators: ServingAccelerators = Field(default_factory=ServingAccelerators)
    """Accelerators of one replica; chosen when absent. Example: `{perReplica: 1}`."""
    parallelism: ServingParallelism = Field(default_factory=ServingParallelism)
    """Parallel sizes to keep; tensor x pipeline is the number per replica.
    Example: `{tensor: 2}`."""
    engine: Engine = Field(default_factory=Engine)
    """The server that answers requests. Example: `{type: vllm}`."""
    objective: ServingObjective = Field(default_factory=ServingObjective)
    """What the choice among feasible places minimises. Example: `{goal: Cost}`."""
    model_cache: ModelCache | None = None
    """Where weights are kept between starts. Example: `{claimName: models}`."""


class InferenceService(Resource):
    """One model behind one address, with as many replicas as its latency targets need."""

    short_name: ClassVar[str] = "isvcp"
    is_scalable: ClassVar[bool] = True
    columns: ClassVar[tuple[Column, ...]] = (
        *(POOL, ACCELERATOR, Column("Replicas", ".status.replicas", "integer")),
        *(BOTTLENECK, READY_REASON, AGE, COST_PER_HOUR, COST_SO_FAR),
    )

    spec: InferenceServiceSpec
    """Which model, under which traffic, inside which latency."""
    status: InferenceServiceStatus | None = None
    """What became of it; written by Poolwise only."""
