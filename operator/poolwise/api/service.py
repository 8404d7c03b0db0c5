"""What a service must withstand and keep: traffic, latency targets, scaling, engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from poolwise.api.base import ApiModel
from poolwise.api.markers import INT_OR_STRING, VALIDATIONS, Rule
from poolwise.api.names import Image, Text
from poolwise.api.quantity import Duration, Quantity
from poolwise.api.volumes import RequiredName


def _p50(fields: dict[str, Any]) -> int:
    return int(fields["p50"])


class TokenLengths(ApiModel):
    """A distribution of lengths by two of its percentiles."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.p95) || self.p50 <= self.p95",
            "must be at least p50 (%d), is %d",
            ("self.p50", "self.p95"),
            ".p95",
        ),
    )

    p50: int = Field(ge=1, le=16_777_216)
    """Median. Example: `400`."""
    p95: int = Field(default_factory=_p50, ge=1, le=16_777_216)
    """95th percentile; the median when absent. Example: `1500`."""


class Traffic(ApiModel):
    """The peak that the service must withstand."""

    requests_per_second: Annotated[float, Quantity("1m", "1M", '"12.5"')] | None = None
    """Requests (items for models that are not decoders) per second at the peak, over all
    replicas; learned when absent. Example: `"12.5"`."""
    input_tokens: TokenLengths | None = None
    """Lengths of prompts; learned when absent. Example: `{p50: 400, p95: 1500}`."""
    output_tokens: TokenLengths | None = None
    """Lengths of answers; learned when absent. Example: `{p50: 200, p95: 600}`."""
    prefix_hit_percent: int = Field(0, ge=0, le=100)
    """Prompt tokens already in the prefix cache, in percent. Example: `30`."""


def _is_number(percentile: str) -> str:
    """CEL of whether it is written as a number below 100, which ``double`` can read."""
    return f"string({percentile}).matches('^[0-9]{{1,2}}([.][0-9]{{1,6}})?$')"


@dataclass(frozen=True, slots=True)
class _Percentile:
    rule: ClassVar[Rule] = Rule(
        f"{_is_number('self')} && double(string(self)) > 0.0",
        'must be above 0 and below 100: an integer, or a string such as "99.9"',
    )

    def __get_pydantic_core_schema__(
        self, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.float_schema(gt=0, lt=100)

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {
            INT_OR_STRING: True,
            "maxLength": 16,
            VALIDATIONS: [self.rule.as_validation()],
        }


class LatencyTarget(ApiModel):
    """A tail that must hold."""

    metric: Literal["TTFT", "ITL", "TPOT", "E2E"]
    """Time to the first token, of each gap between tokens (ITL), of a request's mean gap (TPOT), or
    of the whole request. Example: `TTFT`."""
    percentile: Annotated[float, _Percentile()]
    """Percentile that must stay below the target. Example: `99`."""
    target: Annotated[float, Duration("1us", "1h", "500ms")]
    """The longest that it may take. Example: `500ms`."""


LatencyTargets = Annotated[
    tuple[LatencyTarget, ...],
    Field(max_length=12),
    Rule(
        # What is no number has its own sentence, and must not be an error here.
        f"!self.all(target, {_is_number('target.percentile')})"
        " || self.all(a, self.exists_one(b, b.metric == a.metric"
        " && double(string(b.percentile)) == double(string(a.percentile))))",
        "must not give one percentile of one metric two targets",
    ),
]


class Scaling(ApiModel):
    """Who sets the number of replicas, and its limits."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.minReplicas <= self.maxReplicas",
            "must be at most maxReplicas (%d), is %d",
            ("self.maxReplicas", "self.minReplicas"),
            ".minReplicas",
        ),
        Rule(
            "self.minReplicas > 0 || self.scaleToZero",
            "must be at least 1, or scaleToZero be true",
            field=".minReplicas",
        ),
        Rule(
            "self.redundancy < self.maxReplicas",
            "must be below maxReplicas (%d), is %d",
            ("self.maxReplicas", "self.redundancy"),
            ".redundancy",
        ),
    )

    mode: Literal["Direct", "External", "Off"] = "Direct"
    """Direct: Poolwise sets the replicas. External: it publishes the number, and `replicas` is
    followed. Off: `replicas` is followed. Example: `Direct`."""
    min_replicas: int = Field(1, ge=0, le=10_000)
    """Fewest replicas. Example: `1`."""
    max_replicas: int = Field(10, ge=1, le=10_000)
    """Most replicas, whoever sets the number. Example: `10`."""
    redundancy: int = Field(0, ge=0, le=100)
    """Replicas that may fail while the targets still hold. Example: `1`."""
    scale_to_zero: bool = False
    """Whether an idle service may have no replica at all, with minReplicas 0 and where the gateway
    before it (InferencePool) holds requests meanwhile; the condition ScalesToZero says whether it
    does. Example: `false`."""


class Engine(ApiModel):
    """The server that answers requests."""

    type: Literal["vllm", "sglang", "tgi", "triton", "custom"] = "vllm"
    """Which server; custom needs an image and gets no arguments from the plan.
    Example: `vllm`."""
    image: Image = ""
    """Image of the server; Poolwise's choice for the type when absent.
    Example: `vllm/vllm-openai:v0.11.0`."""
    args: Annotated[tuple[Text, ...], Field(max_length=256)] = ()
    """Arguments after those that the plan sets. Example: `["--enable-prefix-caching"]`."""
    metrics_port: int = Field(8000, ge=1, le=65_535)
    """Port that serves Prometheus metrics. Example: `8000`."""


class ModelCache(ApiModel):
    """Where weights are kept between starts."""

    claim_name: RequiredName
    """PersistentVolumeClaim of the same namespace. Example: `models`."""
