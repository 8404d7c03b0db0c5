"""What a service is to its controller: targets, bounds, and the pools that its replicas may run on.

Everything is a value; who knows how a replica behaves under a mix of requests is the predictor of
its pool.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

from poolwise.model.efficiency import Calibration
from poolwise.model.hardware import Machine
from poolwise.model.serving import queueing
from poolwise.model.serving.load import Replica
from poolwise.model.serving.replica import replica
from poolwise.model.work import ServingLayout, ServingWork, Target, Tokens
from poolwise.plan.scaling.mix import Mix


class Predictor(Protocol):
    """How one replica of a pool behaves."""

    @property
    def prior_mix(self) -> Mix:
        """Of requests, while none has been seen."""

    @property
    def longest_tokens(self) -> float:
        """Of a prompt that a replica takes."""

    def replica(self, mix: Mix) -> Replica:
        """One replica under requests of these lengths."""

    def __hash__(self) -> int:
        """What is worked out of a predictor is remembered by it."""


@dataclass(frozen=True, eq=False)
class Modelled:
    """The serving model of one layout on one machine.

    Capabilities are remembered by the identity of the predictor: keep it while its pool stays.
    """

    work: ServingWork
    """What is declared of the traffic is the prior; live lengths take its place."""
    layout: ServingLayout
    machine: Machine
    calibration: Calibration

    @property
    def prior_mix(self) -> Mix:
        """As declared."""
        prompts = queueing.log_normal(self.work.input_tokens.p50, self.work.input_tokens.p95)
        answers = queueing.log_normal(self.work.output_tokens.p50, self.work.output_tokens.p95)
        return Mix(prompts, answers, 1.0 - self.work.prefix_hit_fraction)

    @property
    def longest_tokens(self) -> float:
        """As the layout limits it."""
        return float(self.layout.max_model_tokens)

    def replica(self, mix: Mix) -> Replica:
        """Lengths as log-normal laws of the same mean and spread; of prompts with the third
        moment that was seen: a few long ones decide how long others wait."""
        work = replace(
            self.work,
            input_tokens=_tokens(mix.prompt_tokens),
            output_tokens=_tokens(mix.answer_tokens),
            prefix_hit_fraction=min(max(1.0 - mix.computed_share, 0.0), 1.0),
        )
        served = replica(work, self.layout, self.machine, self.calibration)
        prompt = replace(served.prompt, skew=mix.prompt_tokens.skew)
        return replace(served, prompt=prompt, gaps=mix.gaps)


def _tokens(lengths: queueing.Lengths) -> Tokens:
    """Median and 95th percentile of the log-normal law; the inverse of :func:`log_normal`."""
    log_variance = math.log1p(max(lengths.scv, 0.0))
    p50 = lengths.mean * math.exp(-log_variance / 2.0)
    return Tokens(p50, p50 * math.exp(queueing.Z95 * math.sqrt(log_variance)))


@dataclass(frozen=True, slots=True)
class Loading:
    """How weights reach a starting replica."""

    replica_bytes_per_second: float
    """The most that one replica can take: its node's link or disk."""
    shared_bytes_per_second: float = math.inf
    """What the source gives to all of them together."""

    @property
    def most_at_once(self) -> float:
        """Starts that slow each other down no further; one more would delay the first of them and
        end none of them sooner."""
        return max(1.0, self.shared_bytes_per_second // self.replica_bytes_per_second)


@dataclass(frozen=True)
class Pool:
    """One kind of replica that the service may run."""

    name: str
    predictor: Predictor
    start_seconds: float
    """From the request of a replica until it is ready, as a rule."""
    cost_per_replica_hour: float = 1.0
    most_replicas: int | None = None
    """Hard cap: those it has and those for which there is free capacity. None: no cap."""
    loading: Loading | None = None
    """None: starts are not paced."""


@dataclass(frozen=True)
class Service:
    """What the controller has to keep."""

    name: str
    targets: tuple[Target, ...]
    pools: tuple[Pool, ...]
    """At least one."""
    least_replicas: int = 1
    most_replicas: int = 10
    most_cost_per_hour: float = math.inf
    """Of all replicas together, beyond which none is added; what is there stays."""
    redundancy: int = 0
    """Replicas that may fail without a target being missed."""
    can_scale_to_zero: bool = False
    """Allowed, and something holds the requests that come meanwhile."""
    interval_seconds: float = 15.0
    """Between two decisions."""
    is_even: bool = False
    """Whether all replicas get the same share of the requests, whatever their pools: behind a plain
    Service. Else a router gives each as much as it bears."""

    @property
    def first(self) -> Pool:
        """The pool that demand is counted in."""
        return self.pools[0]

    @property
    def start_seconds(self) -> float:
        """Of the slowest pool."""
        return max(each.start_seconds for each in self.pools)

    @property
    def allowed_share(self) -> float:
        """Of requests that may be late, by the strictest target."""
        return min((each.allowed_share for each in self.targets), default=0.01)
