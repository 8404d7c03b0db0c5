"""What a live run of scaling is made of and judged by, without a cluster."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from bench.autoscale.sizing import Targets, Work
from bench.autoscale.traces import Trace
from e2e.autoscale.comparison import Comparison, Figures, combined, faults, fleet_of, live
from e2e.autoscale.pods import Life
from e2e.autoscale.trace import (
    BIN_SECONDS,
    LONGEST_TOKENS,
    Compressed,
    Steps,
    Stretch,
    as_csv,
    load_of,
    planned,
)
from e2e.images.load.plan import Lengths
from e2e.images.load.replay import LeastOutstanding, Replayed, Told, as_json, from_json, read
from poolwise.sim.serving.requests import Requests

WORK = Work(
    prompt_token_seconds=1e-4,
    prompt_key_seconds=0.0,
    answer_token_seconds=2e-4,
    gap_seconds=0.04,
    requests_per_second=5.0,
)
STEPS = Steps((Stretch(100, 1.0), Stretch(100, 3.0)), Lengths(500, 1500), Lengths(200, 500), seed=3)
FIGURES = Figures(0.9, 0.9, 1.0, 0.1, 3.0, 4, 1, 2.0, 0.05, 100)


def test_a_load_goes_in_straight_lines() -> None:
    load = load_of((Stretch(10, 1.0), Stretch(10, 3.0)))
    assert (len(load), load[5], load[15]) == (20, 1.0, 2.0)


def test_requests_come_as_often_as_the_replicas_bear() -> None:
    trace = STEPS.trace(WORK)
    first, second = np.histogram(trace.requests.arrival_seconds, [0, 100, 200])[0]
    assert first == pytest.approx(100 * 1.0 * 5.0, rel=0.1)
    assert second == pytest.approx(100 * 2.0 * 5.0, rel=0.1)
    assert np.median(trace.requests.input_tokens) == pytest.approx(500, rel=0.1)
    again, other = STEPS.trace(WORK), replace(STEPS, seed=4).trace(WORK)
    assert np.array_equal(again.requests.arrival_seconds, trace.requests.arrival_seconds)
    assert len(other.requests) != len(trace.requests)


def test_a_compressed_file_peaks_where_it_shall_and_swings_faster() -> None:
    source = np.random.default_rng(0)
    arrivals = np.sort(np.concatenate((source.random(500) * 2000, 1000 + source.random(900) * 200)))
    lengths = source.integers(1, 6000, (2, len(arrivals)))
    file = Trace("file", Requests.of(arrivals, *lengths))
    found = Compressed(file, 10.0, 0.0, 2000.0, peak_replicas=2.0).trace(WORK)
    assert found.seconds == pytest.approx(200.0, rel=0.05)
    assert WORK.needed_replicas(found.requests, BIN_SECONDS).max() == pytest.approx(2.0, rel=0.15)
    assert max(found.requests.input_tokens.max(), found.requests.output_tokens.max()) <= (
        LONGEST_TOKENS
    )


def test_a_trace_survives_being_sent_to_a_pod() -> None:
    requests = list(planned(STEPS.trace(WORK).requests))
    assert read(as_csv(requests).splitlines()) == requests
    with pytest.raises(ValueError, match="no column output_tokens"):
        read(["arrival_s,input_tokens"])
    told = Replayed(5.0, [Told(0.0, 0.1, 0.2, 0.3), Told(1.0, error="x")], [0.01])
    assert from_json(as_json(told)) == told


def test_whoever_has_least_to_do_gets_the_next_request() -> None:
    async def chosen() -> Counter[str]:
        urls, route = ["a", "b"], LeastOutstanding(lambda: urls)
        held = [route() for _ in range(4)]
        first = [await each.__aenter__() for each in held]
        urls.append("c")
        async with route() as late:
            assert late == "c"
        for each in held:
            await each.__aexit__(None, None, None)
        return Counter(first)

    assert asyncio.run(chosen()) == {"a": 2, "b": 2}


def test_a_run_is_scored_as_in_the_simulator() -> None:
    requests = Requests.of(
        np.array([0.0, 10.0, 20.0, 30.0]), np.full(4, 100), np.array([11, 11, 11, 11])
    )
    told = [
        Told(0.0, 0.0, 9.0, 9.1),  # in the warm-up
        Told(10.0, 10.5, 11.5, 12.0),  # sent late, which is not its answerer's fault
        Told(20.0, 20.0, 20.5, 29.0),  # gaps of 0.85 s
        Told(30.0, 30.0, None, None, "status 503"),
    ]
    lives = [Life("a", 90.0), Life("b", 115.0, 117.0, 120.0, 125.0), Life("c", 200.0)]
    found = live(requests, Replayed(100.0, told), lives, 5.0, Targets(1.0, 0.1))
    assert (found.requests, found.errors) == (3, 1)
    assert found.attainment == pytest.approx(1 / 3)
    assert (found.ttft_attainment, found.itl_attainment) == pytest.approx((2 / 3, 1 / 3))
    assert found.replica_hours * 3600 == pytest.approx(25 + 10)
    assert (found.most_replicas, found.left_replicas) == (2, 1)
    assert found.p99_ttft_seconds == math.inf


def test_differences_are_told_and_a_machine_that_is_late_is_blamed_first() -> None:
    same = Comparison(FIGURES, FIGURES, FIGURES, FIGURES, 12.0, 0.01)
    assert (same.differences(), same.complaint) == ([], "")
    worse = replace(FIGURES, attainment=0.7, replica_hours=0.2, errors=3)
    assert replace(same, live=worse).differences() == [
        "attainment -20.0% beyond every account",
        "replica-hours +0.1000 beyond every account",
        "3 requests failed",
    ]
    assert replace(same, live=worse, least=worse, most=worse).differences() == ["3 requests failed"]
    assert "did not keep up" in replace(same, late_seconds=2.0).complaint
    assert "attainment +0.0%" in str(same)
    seen = faults([Told(0.0, 0.5), Told(1.0, 1.25, error="Connection reset by peer")])
    assert str(replace(same, faults=seen)).endswith("sent at 1.2 s: Connection reset by peer")
    lives = (Life("a", -9.0), Life("b", 50.0, 70.0, leaving_seconds=200.0))
    fleet = fleet_of(lives)
    assert fleet == ((-9.0, 1), (50.0, 2), (200.0, 1))
    assert fleet_of([Life("a", -9.0, gone_seconds=5.0)]) == ((-9.0, 1), (5.0, 0))
    assert str(replace(same, lives=lives, accounts=(fleet[:2],))).endswith(
        "live asked for 1 at -9 s, 2 at 50 s, 1 at 200 s\nsimulated asked for 1 at -9 s, 2 at 50 s"
    )
    assert combined([FIGURES, worse], min).attainment == 0.7
