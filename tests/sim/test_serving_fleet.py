"""Replicas over time: starts, routing, drains, and what is paid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.sim.serving.fleet import Fleet
from poolwise.sim.serving.requests import Requests
from poolwise.sim.serving.router import (
    LeastOutstanding,
    PlainService,
)
from tests.sim.serving_cases import COSTS, ROOMY, poisson, requests, served


def _fleet(given_requests: Requests) -> Fleet:
    return Fleet(given_requests, COSTS, ROOMY, LeastOutstanding())


def test_requests_wait_for_the_first_replica() -> None:
    """One that comes while none is ready is held, and goes to the first that is."""
    fleet = _fleet(requests((1.0, 10, 2)))
    fleet.request(1, 30.0)
    fleet.finish()
    assert fleet.answers().first_token_seconds[0] == pytest.approx(30.0, abs=0.1)
    assert fleet.members[0].is_ready


def test_paid_from_the_request_until_it_is_empty() -> None:
    fleet = _fleet(requests((40.0, 10, 100)))
    fleet.request(2, 30.0)
    fleet.advance(40.5)
    busy = next(member for member in fleet.members if member.engine.outstanding)
    fleet.drain(2)
    assert fleet.members == [busy]
    assert fleet.wanted == 0
    fleet.advance(100.0)
    end = float(fleet.answers().finished_seconds[0])
    assert busy.gone_at_seconds == pytest.approx(end)
    assert fleet.replica_seconds() == pytest.approx(40.5 + end)
    assert fleet.replica_seconds(10.0, 20.0) == pytest.approx(20.0)


def test_what_is_still_to_come_is_not_paid_yet() -> None:
    fleet = _fleet(requests((900.0, 10, 10)))
    fleet.request(2, 0.0)
    fleet.advance(50.0)
    assert fleet.replica_seconds() == 2 * 50.0
    assert fleet.replica_seconds(0.0, 1000.0) == 2 * 50.0


def test_a_start_that_is_not_wanted_any_more_ends_at_once() -> None:
    fleet = _fleet(requests((0.0, 10, 10), (90.0, 10, 10)))
    fleet.request(1, 0.0)
    fleet.request(1, 60.0)
    fleet.advance(20.0)
    fleet.drain(1)
    fleet.finish()
    assert [member.gone_at_seconds for member in fleet.gone] == [20.0]
    assert not np.isnan(fleet.answers().finished_seconds).any()


def test_the_one_with_least_work_leaves_and_takes_nothing_new() -> None:
    fleet = _fleet(requests(*[(0.01 * place, 10, 200) for place in range(5)], (5.0, 10, 10)))
    fleet.request(2, 0.0)
    fleet.advance(0.5)
    few = min(fleet.members, key=lambda member: member.engine.outstanding)
    many = max(fleet.members, key=lambda member: member.engine.outstanding)
    fleet.drain(1)
    assert few.is_draining
    assert not many.is_draining
    fleet.finish()
    assert few.engine.metrics.read().finished == 2
    assert many.engine.metrics.read().finished == 4


def test_of_two_with_as_little_work_the_younger_leaves() -> None:
    fleet = _fleet(requests((900.0, 10, 10)))
    fleet.request(1, 0.0)
    fleet.advance(10.0)
    fleet.request(1, 0.0)
    fleet.advance(20.0)
    fleet.drain(1)
    assert [member.requested_at_seconds for member in fleet.gone] == [10.0]


def test_least_outstanding_keeps_replicas_even() -> None:
    counts = [
        member.engine.metrics.read().finished
        for member in served(poisson(400, 30.0, 5), replicas=4).members
    ]
    assert sum(counts) == 400
    assert max(counts) - min(counts) < 60


def test_a_plain_service_is_less_even_and_slower() -> None:
    """Chance sends some to a busy replica: the tail of first tokens is longer."""
    stream = poisson(3000, 40.0, 9)
    even, chance = (
        np.quantile(served(stream, replicas=4, router=router).answers().ttft_seconds(stream), 0.99)
        for router in (LeastOutstanding(), PlainService(len(stream), seed=2))
    )
    assert chance > even


def test_a_plain_service_chooses_everybody_as_often() -> None:
    count, replicas = 4000, 4
    router = PlainService(count, seed=7)
    chosen = [router.choose(number, [0] * replicas) for number in range(count)]
    assert np.bincount(chosen) == pytest.approx([count / replicas] * replicas, rel=0.1)


def test_it_is_not_done_while_a_request_is_held_for_the_first_replica() -> None:
    fleet = _fleet(requests((1.0, 10, 2)))
    fleet.advance(10.0)
    assert not fleet.is_done
    fleet.request(1, 5.0)
    fleet.finish()
    assert fleet.is_done


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.1, 9.0), st.integers(0, 6), st.floats(0.0, 8.0)), max_size=12),
    st.integers(0, 5),
)
def test_no_request_is_lost_whatever_is_asked(
    moves: list[tuple[float, int, float]], seed: int
) -> None:
    """Fleets grow and shrink at any moment; every request is answered by somebody, once."""
    stream = poisson(60, 2.0, seed)
    fleet = _fleet(stream)
    fleet.request(1, 0.0)
    for seconds, wanted, delay in moves:
        fleet.advance(fleet.now_seconds + seconds)
        fleet.request(max(wanted - fleet.wanted, 0), delay)
        fleet.drain(max(fleet.wanted - wanted, 0))
    fleet.request(1, 1.0)
    fleet.finish()
    everyone = (*fleet.members, *fleet.gone)
    assert not np.isnan(fleet.answers().finished_seconds).any()
    assert sum(member.engine.metrics.read().finished for member in everyone) == len(stream)
    assert fleet.is_done
    assert all(member.gone_at_seconds >= member.requested_at_seconds for member in fleet.gone)


def test_arrays_that_are_no_stream_are_refused() -> None:
    one, two = np.array([1.0]), np.array([1, 2])
    with pytest.raises(ValueError, match="differ in length"):
        Requests(one, two, two, two)
    with pytest.raises(ValueError, match="one token"):
        requests((0.0, 0, 1))
