"""A queue asks for more replicas, less those that come to it anyway."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest

from poolwise.model.work import Metric, Target
from poolwise.plan.scaling.capability import Capability, capability
from poolwise.plan.scaling.level import Level
from poolwise.plan.scaling.outlook import Flow, outlook
from tests.plan.scaling.given import predictor

HORIZON_SECONDS = 65.0
SERVING = 4
TARGET = Target(Metric.TPOT, 99.0, 0.02)


@functools.cache
def able() -> Capability:
    """Of which a target for tokens takes the most, so that arrivals strain it at once."""
    return capability(predictor(), predictor().prior_mix, (TARGET,), 1.0)


def backlog(
    load: float,
    queue_seconds: float,
    joining_seconds: tuple[float, ...] = (),
    queued: float = SERVING,
) -> float:
    """With arrivals of so many full replicas, and a queue of so many seconds of all that serve,
    which waits for ``queued`` of them."""
    each = able().requests_per_second
    rate, served = load * each, SERVING * each
    flow = Flow(
        arrivals_per_second=rate,
        held=float(SERVING),
        bounded=float(SERVING),
        gap_seconds=None,
        serving=SERVING,
        joining_seconds=joining_seconds,
        waiting=queue_seconds * served,
        each_per_second=each,
        queued=queued,
    )
    return outlook(able(), Level(rate, 0.0, 60.0), flow, HORIZON_SECONDS).backlog


def test_a_queue_that_grows_asks_for_more() -> None:
    assert backlog(5.0, 10.0) > backlog(4.5, 10.0) > backlog(4.0, 10.0) > 0.0


def test_no_queue_asks_for_nothing() -> None:
    assert backlog(5.0, 0.0) == backlog(5.0, 0.9) == 0.0


def test_a_queue_that_runs_off_by_itself_asks_for_nothing() -> None:
    assert backlog(2.0, 20.0) == 0.0


def test_those_that_start_are_counted_on() -> None:
    alone, soon, late = backlog(5.0, 5.0), backlog(5.0, 5.0, (10.0,)), backlog(5.0, 5.0, (60.0,))
    assert soon < late < alone


def test_nobody_serves_what_waits_for_another() -> None:
    """However many join, those that are full work off their own queues."""
    queue_seconds = 2.0 * HORIZON_SECONDS
    assert backlog(5.0, queue_seconds, 20 * (0.0,)) > 0.0
    assert backlog(5.0, queue_seconds, 20 * (0.0,)) == backlog(5.0, queue_seconds, 5 * (0.0,))


def test_no_more_are_added_than_have_a_queue() -> None:
    """Others take what comes to these meanwhile, and none of what waits for them."""
    share = able().arrivals_share
    assert backlog(50.0, 1000.0) == pytest.approx(share * SERVING)
    assert backlog(3.0, 1000.0, queued=1.0) == pytest.approx(share)


def test_those_without_a_queue_take_what_comes() -> None:
    """Its own queue then runs off as fast as one replica serves it."""
    just_enough_seconds = HORIZON_SECONDS / SERVING - 1.0
    assert backlog(3.0, just_enough_seconds, queued=1.0) == 0.0
    assert backlog(4.0, just_enough_seconds, queued=1.0) > 0.0


def test_nobody_who_serves_tells_of_no_queue() -> None:
    each = able().requests_per_second
    flow = Flow(5 * each, 0.0, 0.0, None, 0, (0.0, 0.0), 100.0 * each, each, 0.0)
    assert outlook(able(), Level(each, 0.0, 60.0), flow, HORIZON_SECONDS).backlog == 0.0
    assert outlook(able(), Level(each, 0.0, 60.0), replace(flow, waiting=0.0), 65.0).backlog == 0.0
