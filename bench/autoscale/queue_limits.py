"""Limits of the simulated engine that are queues with a known law.

With steps of one length whatever they carry, an engine of c places is M/M/c; with steps as long as
the sequences in them, it shares its processor among all of them (M/G/1-PS).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from poolwise.sim.serving.costs import Curve, EngineLimits, IterationCosts
from poolwise.sim.serving.fleet import Fleet
from poolwise.sim.serving.requests import Floats, Requests
from poolwise.sim.serving.router import LeastOutstanding

STEP_SECONDS = 0.001
TOKENS = 200
"""Mean answer: a step is short beside it, so steps hardly show."""
PLENTY_BLOCKS = 10**6


@dataclass(frozen=True, slots=True)
class Check:
    """A mean that theory knows."""

    name: str
    expected_seconds: float
    found_seconds: float

    @property
    def error(self) -> float:
        """Of what is expected, as a share."""
        return self.found_seconds / self.expected_seconds - 1.0


def erlang_c(servers: int, load: float) -> float:
    """Probability to wait in M/M/c; ``load`` is that of one server, from 0 to 1."""
    offered = servers * load
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    last = offered**servers / math.factorial(servers) / (1.0 - load)
    return last / (sum(terms) + last)


def many_servers(servers: int, load: float, requests: int, seed: int) -> Check:
    """Mean time in the system of M/M/c: service, and ``C / (c (1 - rho))`` times it of waiting."""
    draw = np.random.default_rng(seed)
    answers = draw.geometric(1.0 / TOKENS, requests)
    service = float(answers.mean()) * STEP_SECONDS
    expected = service * (1.0 + erlang_c(servers, load) / servers / (1.0 - load))
    arriving = _arriving(draw, servers * load / service, answers)
    costs = IterationCosts(Curve.line(STEP_SECONDS, 0.0), Curve.line(0.0, 0.0), 0.0, 0.0)
    limits = EngineLimits(servers, 10**4, PLENTY_BLOCKS)
    return Check(f"M/M/{servers} at {load:g}", expected, _mean_seconds(arriving, costs, limits))


def shared_processor(name: str, tokens: Floats, load: float, seed: int) -> Check:
    """Mean time in the system of M/G/1-PS, ``E[S] / (1 - rho)`` whatever the law of lengths."""
    draw = np.random.default_rng(seed)
    answers = np.maximum(tokens, 1.0).round().astype(np.int64)
    service = float(answers.mean()) * STEP_SECONDS
    arriving = _arriving(draw, load / service, answers)
    costs = IterationCosts(Curve.line(0.0, STEP_SECONDS), Curve.line(0.0, 0.0), 0.0, 0.0)
    limits = EngineLimits(4096, 10**5, PLENTY_BLOCKS)
    found = _mean_seconds(arriving, costs, limits)
    return Check(f"M/{name}/1-PS at {load:g}", service / (1.0 - load), found)


def queues(requests: int, seed: int = 0) -> Iterator[Check]:
    """Both limits at several loads; answers all alike, exponential, and of two kinds."""
    for servers, load in ((1, 0.6), (4, 0.7), (16, 0.8)):
        yield many_servers(servers, load, requests, seed)
    draw = np.random.default_rng(seed + 1)
    laws = {
        "D": np.full(requests, float(TOKENS)),
        "M": draw.geometric(1.0 / TOKENS, requests).astype(np.float64),
        "H": np.where(draw.random(requests) < 0.9, TOKENS / 2.0, TOKENS * 5.5),
    }
    for name, tokens in laws.items():
        yield shared_processor(name, tokens, 0.6, seed)


def _arriving(
    draw: np.random.Generator, rate: float, answers: np.typing.NDArray[np.int64]
) -> Requests:
    """By chance, at the very rate: its own error would be the greatest of all."""
    gaps_seconds = draw.exponential(1.0, len(answers))
    arrivals = np.cumsum(gaps_seconds / gaps_seconds.mean() / rate)
    return Requests.of(arrivals, np.ones(len(answers), np.int64), answers)


def _mean_seconds(arriving: Requests, costs: IterationCosts, limits: EngineLimits) -> float:
    """From arrival to the last token, after the first tenth."""
    fleet = run(arriving, costs, limits)
    seconds = fleet.answers().finished_seconds - arriving.arrival_seconds
    return float(seconds[len(seconds) // 10 :].mean())


def run(arriving: Requests, costs: IterationCosts, limits: EngineLimits) -> Fleet:
    """One replica, until all is answered."""
    fleet = Fleet(arriving, costs, limits, LeastOutstanding())
    fleet.request(1, 0.0)
    fleet.finish()
    return fleet
