"""``status.scaling``: how many replicas of a service the load asks for, and why."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from poolwise.api.base import Figures, OpenModel, Sentence, Word


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
    """TTFT, ITL, TPOT or E2E; of a gateway also Queue, the wait there alone. Example: `TTFT`."""
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
    """TTFT, ITL, TPOT or E2E. Example: `TTFT`."""
    percentile: float
    """Of the target. Example: `99`."""
    tails: Annotated[tuple[PredictedReplicas, ...], Field(max_length=16)] = ()
    """One fewer, as many, and one more. Example: `[{replicas: 3, seconds: 0.82}]`."""


class ScalingGateway(OpenModel):
    """What stands before the service and gives each request to a replica."""

    inference_pool: Word
    """Its InferencePool. Example: `chat`."""
    held_requests: float | None = None
    """That waited in its queue at the last look. Example: `0`."""
    wake_up_seconds: float | None = None
    """What a start takes, and so the first request after none for long. Example: `95`."""
    signals: Annotated[tuple[ScalingSignal, ...], Field(max_length=17)] = ()
    """What its clients see of each target that its endpoint picker measures, its queue included,
    and of the wait there alone. Decides nothing. Example: `[{metric: Queue, percentile: 99}]`."""
    problem: Sentence = ""
    """Why what the picker tells of latencies is not used.
    Example: `"chat-epp-0: llm_d_epp_request_duration_seconds has no bucket up to +Inf"`."""


class ScalingStatus(OpenModel):
    """How many replicas the load asks for, and why."""

    time: Word | None = None
    """When this was told; it stands while nothing changes that matters.
    Example: `"2026-11-24T12:00:00Z"`."""
    mode: Word | None = None
    """As `spec.scaling.mode`. Example: `Direct`."""
    desired_replicas: int | None = Field(None, ge=0)
    """Replicas that the load asks for; absent in the mode Off. Example: `4`."""
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
    gateway: ScalingGateway | None = None
    """The gateway before it, if there is one. Example: `{inferencePool: chat}`."""
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
