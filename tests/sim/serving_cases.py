"""Small engines and streams of requests for tests."""

from __future__ import annotations

import numpy as np

from poolwise.sim.serving.costs import Curve, EngineLimits, IterationCosts
from poolwise.sim.serving.fleet import Fleet
from poolwise.sim.serving.requests import Requests
from poolwise.sim.serving.router import LeastOutstanding, Router

COSTS = IterationCosts(
    Curve((0, 64, 512), (0.010, 0.011, 0.050)), Curve.line(0.0, 1e-5), 2e-7, 1e-9
)
ROOMY = EngineLimits(max_num_seqs=64, max_batched_tokens=512, kv_blocks=4096)


def requests(*rows: tuple[float, int, int]) -> Requests:
    """Arrival, prompt and answer of each."""
    arrivals, inputs, outputs = (np.array(column) for column in zip(*rows, strict=True))
    return Requests.of(arrivals, inputs, outputs)


def poisson(count: int, per_second: float, seed: int) -> Requests:
    """Prompts of 10 to 800 tokens and answers of 1 to 300."""
    draw = np.random.default_rng(seed)
    return Requests.of(
        np.cumsum(draw.exponential(1.0 / per_second, count)),
        draw.integers(10, 800, count),
        draw.integers(1, 300, count),
    )


def served(
    given: Requests,
    limits: EngineLimits = ROOMY,
    replicas: int = 1,
    costs: IterationCosts = COSTS,
    router: Router | None = None,
) -> Fleet:
    """A fleet that was there from the start, after the last answer."""
    fleet = Fleet(given, costs, limits, router or LeastOutstanding())
    fleet.request(replicas, 0.0)
    fleet.finish()
    return fleet
