"""Capacity of a replica: never beyond what it serves in a steady state, whatever the targets."""

from __future__ import annotations

import numpy as np
import pytest

from bench.autoscale.sizing import OutOfReach, Targets, measured
from poolwise.sim.serving.fleet import Fleet
from poolwise.sim.serving.requests import Requests
from poolwise.sim.serving.router import LeastOutstanding
from tests.bench.autoscale_cases import small_engine, stream

WIDE = Targets(ttft_seconds=99_999.0, tpot_seconds=99_999.0)


def _of_one_token(requests: Requests) -> Requests:
    ones = np.ones_like(requests.output_tokens)
    return Requests.of(requests.arrival_seconds, requests.input_tokens, ones)


def _served_per_second(requests: Requests) -> float:
    """Of one replica from the first answer to the last of a long queue."""
    on = small_engine()
    at_once = Requests.of(np.zeros(len(requests)), requests.input_tokens, requests.output_tokens)
    fleet = Fleet(at_once, on.costs, on.limits, LeastOutstanding())
    fleet.request(1, 0.0)
    fleet.finish()
    return len(requests) / float(fleet.answers().finished_seconds.max())


@pytest.mark.parametrize("seconds", [80.0, 800.0, 99_999.0])
def test_wide_targets_leave_what_a_replica_serves(seconds: float) -> None:
    requests = stream(1.0, 4000.0)
    found = measured(small_engine(), requests, Targets(seconds, seconds)).requests_per_second
    assert found <= 1.05 * _served_per_second(requests)
    assert found >= 0.8 * _served_per_second(requests)


@pytest.mark.parametrize("targets", [Targets(), WIDE])
def test_answers_of_one_token_have_a_capacity(targets: Targets) -> None:
    requests = _of_one_token(stream(1.0, 4000.0))
    work = measured(small_engine(), requests, targets)
    assert work.requests_per_second == pytest.approx(_served_per_second(requests), rel=0.1)
    seconds = work.replica_seconds(requests).mean()
    assert seconds * work.requests_per_second == pytest.approx(1.0, rel=0.05)


def test_a_few_long_answers_among_short_ones_count() -> None:
    """Short ones overtake: by their number far more are served than the cache lets through."""
    rows = stream(1.0, 4000.0)
    long = np.where(np.arange(len(rows)) % 40 == 0, 4000, 1)
    mixed = Requests.of(rows.arrival_seconds, rows.input_tokens, long)
    found = measured(small_engine(), mixed, WIDE).requests_per_second
    assert found == pytest.approx(_served_per_second(mixed), rel=0.15)


def test_tight_targets_leave_less_than_it_serves() -> None:
    requests = stream(1.0, 4000.0)
    tight = measured(small_engine(), requests, Targets(0.7, 0.1)).requests_per_second
    wide = measured(small_engine(), requests, WIDE).requests_per_second
    assert 0.0 < tight < 0.9 * wide


def test_targets_that_nobody_meets_are_refused() -> None:
    with pytest.raises(OutOfReach, match="even alone on an idle replica"):
        measured(small_engine(), stream(1.0, 400.0), Targets(5.0, 1e-4))
