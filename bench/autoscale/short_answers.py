"""Answers of few tokens, whose mean gap one prompt of another makes long: simulated and by the law.

Requests come by chance, a fifth of them answered by so few tokens; the simulator counts who is
late, :mod:`poolwise.plan.scaling.tails` tells it of one replica at the rate that each of them has.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bench.autoscale.engine import Engine, engine
from poolwise.model.serving.load import state_at_rate
from poolwise.model.serving.queueing import Lengths
from poolwise.model.serving.routing import Routed
from poolwise.model.work import Metric, Target, Tokens
from poolwise.plan.scaling.capability import replica_under
from poolwise.plan.scaling.mix import Mix
from poolwise.plan.scaling.service import Modelled
from poolwise.plan.scaling.tails import late_share
from poolwise.sim.serving.fleet import Fleet
from poolwise.sim.serving.requests import Integers, Requests
from poolwise.sim.serving.router import LeastOutstanding

REPLICAS = (1, 8)
SHORT_TOKENS = (2, 4, 8)
RATES_PER_SECOND = (2.0, 5.0, 8.0)
"""Of one replica."""
SHORT_SHARE = 0.2
PROMPT_TOKENS, LONG_TOKENS = 800.0, 150.0
"""Means of log-normal lengths that spread as exponential ones do."""
SCV = 1.0
TARGET = Target(Metric.TPOT, 99.0, 0.1)
SEED = 1


@dataclass(frozen=True, slots=True)
class Late:
    """Shares of short answers."""

    replicas: int
    tokens: int
    per_second: float
    """Requests of one replica."""
    simulated: float
    told: float


def compared(
    seconds: float,
    replicas: tuple[int, ...] = REPLICAS,
    tokens: tuple[int, ...] = SHORT_TOKENS,
    per_second: tuple[float, ...] = RATES_PER_SECOND,
) -> Iterator[Late]:
    """Each number of replicas with each length and rate, for so long."""
    on = engine()
    for count, short, rate in itertools.product(replicas, tokens, per_second):
        simulated = _simulated(on, count, short, rate, seconds)
        yield Late(count, short, rate, simulated, _told(on, count, short, rate))


def _simulated(on: Engine, replicas: int, short: int, rate: float, seconds: float) -> float:
    draw = np.random.default_rng(SEED)
    count = draw.poisson(rate * replicas * seconds)
    is_short = draw.random(count) < SHORT_SHARE
    requests = Requests(
        np.sort(draw.random(count) * seconds),
        _log_normal(draw, PROMPT_TOKENS, count),
        np.where(is_short, short, _log_normal(draw, LONG_TOKENS, count)),
        np.zeros(count, dtype=np.int64),
    )
    fleet = Fleet(requests, on.costs, on.limits, LeastOutstanding())
    fleet.request(replicas, 0.0)
    fleet.finish()
    gap_seconds = fleet.answers().tpot_seconds(requests)
    return float(np.mean(gap_seconds[is_short] > TARGET.seconds))


def _log_normal(draw: np.random.Generator, mean: float, count: int) -> Integers:
    variance = math.log1p(SCV)
    drawn = draw.lognormal(math.log(mean) - variance / 2.0, math.sqrt(variance), count)
    return np.maximum(drawn, 1.0).astype(np.int64)


def _told(on: Engine, replicas: int, short: int, rate: float) -> float:
    work = on.work(Tokens(PROMPT_TOKENS, PROMPT_TOKENS), Tokens(LONG_TOKENS, LONG_TOKENS), ())
    modelled = Modelled(work, on.layout, on.machine, on.calibration)
    answer_tokens = SHORT_SHARE * short + (1.0 - SHORT_SHARE) * LONG_TOKENS
    mix = Mix(Lengths(PROMPT_TOKENS, SCV), Lengths(answer_tokens, SCV), gaps=((short - 1.0, 1.0),))
    served = replica_under(modelled, mix, Routed(apart_share=float(replicas > 1)))
    at = state_at_rate(served, rate)
    return 1.0 if at is None else late_share(served, at, TARGET)
