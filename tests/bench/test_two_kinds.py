"""Two kinds of replicas behind one Service, simulated: they bear what the controller counts."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest

from bench.autoscale.engine import Engine, engine
from poolwise.model.serving import queueing
from poolwise.model.work import Metric, Target, Tokens
from poolwise.plan.scaling.capability import capability
from poolwise.plan.scaling.portfolio import PoolOffer, worth
from poolwise.plan.scaling.service import Modelled
from poolwise.sim.serving.fleet import Fleet
from poolwise.sim.serving.requests import Requests
from poolwise.sim.serving.router import LeastOutstanding, PlainService, Router

TTFT_SECONDS, TPOT_SECONDS = 2.0, 0.05
TARGETS = (
    Target(Metric.TTFT, 99.0, TTFT_SECONDS),
    Target(Metric.TPOT, 99.0, TPOT_SECONDS),
)
PROMPTS, ANSWERS = Tokens(400.0, 1200.0), Tokens(180.0, 400.0)
COUNTS = {"h100": 2, "a100": 3}
SECONDS, SETTLED_SHARE = 200.0, 0.25


FASTER = 0.75
"""Of the simulated replicas' time over the model's. Where both are the same, one request in a
hundred is late at four fifths of what is counted, half of them at all of it; the sum is asked for.
"""


@functools.cache
def kinds() -> tuple[Engine, Engine]:
    """Llama 3.1 8B on one accelerator of each."""
    first, second = (
        engine("llama-3.1-8b", name, 1).slower(FASTER)
        for name in ("H100-SXM5-80GB", "A100-SXM4-80GB")
    )
    return first, second


@functools.cache
def capacities() -> tuple[float, float]:
    """Requests per second of a replica of each kind, as the controller has them."""
    made = [
        Modelled(each.work(PROMPTS, ANSWERS, ()), each.layout, each.machine, each.calibration)
        for each in kinds()
    ]
    first, second = (
        capability(each, each.prior_mix, TARGETS, 1.0).requests_per_second for each in made
    )
    return first, second


def counted(is_even: bool) -> float:
    """Requests per second that the controller takes the fleet to bear."""
    first, second = capacities()
    offers = [
        PoolOffer(pool, rate / first, 1.0, COUNTS[pool], 9, is_even)
        for pool, rate in zip(COUNTS, (first, second), strict=True)
    ]
    return first * worth(COUNTS, offers)


def stream(requests_per_second: float) -> Requests:
    """Poisson arrivals, log-normal lengths."""
    draw, count = np.random.default_rng(1), int(requests_per_second * SECONDS)

    def lengths(tokens: Tokens) -> np.ndarray:
        sigma = np.log(tokens.p95 / tokens.p50) / queueing.Z95
        drawn = draw.lognormal(np.log(tokens.p50), sigma, count)
        return np.maximum(drawn, 1.0).astype(np.int64)

    gaps = draw.exponential(1.0 / requests_per_second, count)
    return Requests.of(np.cumsum(gaps), lengths(PROMPTS), lengths(ANSWERS))


@dataclass(frozen=True)
class Kept:
    """Shares of requests inside each target."""

    ttft: float
    tpot: float


def served(requests_per_second: float, is_plain: bool) -> Kept:
    """Both kinds behind a plain Service, or behind a router that counts what each has to do."""
    requests = stream(requests_per_second)
    router: Router = PlainService(len(requests), 7) if is_plain else LeastOutstanding()
    first, second = kinds()
    others = [(second.costs, second.limits)]
    fleet = Fleet(requests, first.costs, first.limits, router, others)
    fleet.request(COUNTS["h100"], 0.0)
    fleet.request(COUNTS["a100"], 0.0, kind=1)
    fleet.finish()
    answers, settled = fleet.answers(), slice(int(SETTLED_SHARE * len(requests)), None)
    return Kept(
        float((answers.ttft_seconds(requests) <= TTFT_SECONDS)[settled].mean()),
        float((answers.tpot_seconds(requests) <= TPOT_SECONDS)[settled].mean()),
    )


def test_a_plain_service_bears_what_its_weakest_replicas_bear_and_no_more():
    """5 replicas at 14.4/s each, and not 2 at 40 and 3 at 14.4 (123/s)."""
    first, second = capacities()
    assert counted(is_even=True) == pytest.approx(5 * second)
    at_the_least = served(counted(is_even=True), is_plain=True)
    assert min(at_the_least.ttft, at_the_least.tpot) >= 0.99
    at_the_sum = served(counted(is_even=False), is_plain=True)
    assert counted(is_even=False) == pytest.approx(2 * first + 3 * second)
    assert min(at_the_sum.ttft, at_the_sum.tpot) < 0.8


def test_a_router_that_counts_bears_the_sum():
    found = served(counted(is_even=False), is_plain=False)
    assert min(found.ttft, found.tpot) >= 0.99


def test_a_fleet_of_one_kind_is_what_it_was():
    given, (first, second) = stream(20.0), kinds()

    def digest(*others: Engine) -> str:
        kinds_of = [(each.costs, each.limits) for each in others]
        fleet = Fleet(given, first.costs, first.limits, LeastOutstanding(), kinds_of)
        fleet.request(2, 0.0)
        fleet.finish()
        return fleet.answers().digest()

    assert digest() == digest(second)
