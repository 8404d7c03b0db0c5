"""What the controller wants, with its reason and the numbers behind it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from poolwise.model.work import Target
from poolwise.plan.scaling.memory import Memory


class Remark(enum.StrEnum):
    """What a user should know beside the number; each becomes a condition."""

    SLO_UNREACHABLE = "SLOUnreachable"
    """A target is below what a lone request takes."""
    METRICS_BROKEN = "MetricsBroken"
    METRICS_MISSING = "MetricsMissing"
    TOO_FEW_SAMPLES = "TooFewSamples"
    """For the percentile of a target: the model alone tells of it."""
    AT_MAXIMUM = "AtMaximum"
    """More replicas are needed than ``maxReplicas`` allows."""
    AT_CAPACITY = "AtCapacity"
    """More are needed than there is free capacity for."""
    AT_COST_LIMIT = "AtCostLimit"
    """More are needed than an hour may cost."""
    STARTS_PACED = "StartsPaced"
    """Fewer start than are needed, so that loading their weights does not slow them all."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Requests per second that arrive until a replica asked for now would be ready."""

    at_seconds: float
    low: float
    mid: float
    high: float
    """The decision is made for this one."""


@dataclass(frozen=True, slots=True)
class Tail:
    """One target's percentile at several numbers of replicas, under the high forecast."""

    target: Target
    seconds: Mapping[int, float]
    """By number of replicas; infinite where they cannot keep up."""


@dataclass(frozen=True)
class Decision:
    """Replicas from now on."""

    replicas: int
    memory: Memory
    """To be handed in with the next look."""
    reason: str
    """One sentence for people."""
    by_pool: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    """Share of the requests for one replica of a pool; they sum to 1 over replicas."""
    limiting: str = ""
    """What stops a replica from serving more: ``TTFT p99``, ``KV cache``, ``Batch``, ``Rate``."""
    forecast: Forecast | None = None
    tails: tuple[Tail, ...] = ()
    capacity_requests_per_second: float = 0.0
    """Of one replica of the cheapest pool inside all targets."""
    cost_per_hour: float = 0.0
    token_ratio: float | None = None
    """Measured over predicted time of a token at the batch that is seen, on the first pool; None:
    too little has been seen of it."""
    remarks: Mapping[Remark, str] = field(default_factory=dict)
