"""Queues with a known law are limits of the engine."""

from __future__ import annotations

import numpy as np
import pytest

from bench.autoscale.queue_limits import STEP_SECONDS, TOKENS, erlang_c
from poolwise.sim.serving.costs import Curve, EngineLimits, IterationCosts
from poolwise.sim.serving.requests import Floats, Integers, Requests
from tests.sim.queues import in_common, in_order
from tests.sim.serving_cases import served


def test_erlang_c_is_that_of_tables() -> None:
    """One server waits with the probability of its load; Allen's tables for more."""
    assert erlang_c(1, 0.6) == pytest.approx(0.6)
    assert erlang_c(4, 0.7) == pytest.approx(0.4287, abs=1e-4)


def _stream(load: float, answers: Integers) -> tuple[Requests, Floats]:
    """Arrivals by chance that keep one server busy for ``load`` of the time; service times."""
    services = answers.astype(np.float64) * STEP_SECONDS
    gaps = np.random.default_rng(7).exponential(1.0, len(answers))
    arrivals = np.cumsum(gaps * (services.mean() / load))
    return Requests.of(arrivals, np.ones(len(answers), np.int64), answers), services


def _geometric(count: int) -> Integers:
    return np.random.default_rng(8).geometric(1.0 / TOKENS, count).astype(np.int64)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.6), (4, 0.7), (16, 0.9)])
def test_steps_of_one_length_make_many_servers(servers: int, load: float) -> None:
    """Request by request as in a queue with so many servers: no chance is left to hide behind."""
    stream, services = _stream(load * servers, _geometric(5000))
    costs = IterationCosts(Curve.line(STEP_SECONDS, 0.0), Curve.line(0.0, 0.0), 0.0, 0.0)
    found = served(stream, EngineLimits(servers, 100, 10**5), costs=costs).answers()
    expected = in_order(stream.arrival_seconds, services, servers)
    _assert_alike(found.finished_seconds, expected, stream)


@pytest.mark.parametrize("kind", ["all alike", "exponential", "of two kinds"])
def test_steps_as_long_as_the_batch_share_one_processor(kind: str) -> None:
    """Request by request as on a processor that all share."""
    answers = {
        "all alike": np.full(3000, TOKENS),
        "exponential": _geometric(3000),
        "of two kinds": np.where(_geometric(3000) < 460, TOKENS // 2, TOKENS * 5),
    }[kind]
    stream, services = _stream(0.7, answers.astype(np.int64))
    costs = IterationCosts(Curve.line(0.0, STEP_SECONDS), Curve.line(0.0, 0.0), 0.0, 0.0)
    found = served(stream, EngineLimits(4096, 10**5, 10**6), costs=costs).answers()
    _assert_alike(found.finished_seconds, in_common(stream.arrival_seconds, services), stream)


def _assert_alike(found: Floats, expected: Floats, stream: Requests) -> None:
    whole = (expected - stream.arrival_seconds).mean()
    assert (found - stream.arrival_seconds).mean() == pytest.approx(whole, rel=0.02)
    assert np.abs(found - expected).mean() < 0.05 * whole


def test_the_references_have_the_means_of_theory() -> None:
    """M/M/4 and M/G/1-PS, as far as 40,000 requests tell."""
    stream, services = _stream(0.6 * 4, _geometric(40_000))
    mean = (in_order(stream.arrival_seconds, services, 4) - stream.arrival_seconds).mean()
    assert mean == pytest.approx(services.mean() * (1 + erlang_c(4, 0.6) / 1.6), rel=0.03)
    stream, services = _stream(0.5, _geometric(40_000))
    mean = (in_common(stream.arrival_seconds, services) - stream.arrival_seconds).mean()
    assert mean == pytest.approx(services.mean() / 0.5, rel=0.03)
