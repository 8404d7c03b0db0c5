"""What of a trace can be replayed: lengths of time and of requests, and how many of them."""

from __future__ import annotations

import numpy as np
import pytest

from bench.autoscale import replayable, scene
from bench.autoscale.scene import Routing, Scraping
from bench.autoscale.traces import Trace
from bench.files import BadInput
from poolwise.sim.serving.requests import Requests
from tests.bench.autoscale_cases import TARGETS, WORK, small_engine, stream


def _trace(arrivals: list[float], prompts: list[int]) -> Trace:
    return Trace(
        "some", Requests.of(np.array(arrivals), np.array(prompts), np.ones(len(prompts), int))
    )


def test_requests_that_fit_no_cache_are_left_out_and_named() -> None:
    most = small_engine().limits.kv_tokens
    trace = _trace([0.0, 10.0, 100.0], [most, most - 1, 5])
    found = replayable.replayable(trace, small_engine())
    assert found.requests.input_tokens.tolist() == [most - 1, 5]
    assert found.requests.arrival_seconds.tolist() == [0.0, 90.0]
    assert f"1 of 3 requests left out, whose tokens fit no replica's cache of {most}" in (
        found.complaint
    )


def test_a_trace_that_is_too_short_is_refused() -> None:
    with pytest.raises(BadInput, match="within 59 s, must be spread over 60 s at least"):
        replayable.replayable(_trace([0.0, 59.0], [5, 5]), small_engine())


def test_a_refusal_tells_of_rows_that_were_left_out() -> None:
    trace = Trace("some", stream(1.0, 30.0), complaint="some.csv: 9 of 39 rows left out")
    with pytest.raises(BadInput, match=r"at least; some\.csv: 9 of 39 rows left out"):
        replayable.replayable(trace, small_engine())


def test_a_peak_of_too_many_requests_is_lowered() -> None:
    trace = Trace("many", stream(40.0, 3600.0))
    assert replayable.affordable_peak(trace, WORK, 40.0) == 40.0
    peak = replayable.affordable_peak(trace, WORK, 40_000.0)
    assert 40.0 < peak < 40_000.0
    users = peak / float(WORK.needed_replicas(trace.requests, scene.BIN_SECONDS).max())
    assert users * len(trace.requests) == pytest.approx(replayable.MOST_REQUESTS_PER_HOUR)


def test_a_trace_of_which_too_little_is_left_is_refused() -> None:
    few = Trace("few", stream(0.5, 3600.0))
    with pytest.raises(
        BadInput, match=r"few: .* of its 1800 requests .* left for a fleet of this size"
    ):
        thinned = scene.of_peak(few, small_engine(), TARGETS, WORK, 0.001)
        replayable.check_left(thinned.trace, few)


@pytest.mark.parametrize(("seconds", "expected"), [(200.0, 100.0), (600.0, 300.0), (3600.0, 300.0)])
def test_half_of_a_short_trace_is_scored(seconds: float, expected: float) -> None:
    trace = _trace([0.0, seconds], [5, 5])
    found = scene.with_settings(
        scene.Scene(trace, small_engine(), TARGETS, WORK), 60.0, Routing.SERVICE, Scraping()
    )
    assert found.warm_up_seconds == expected
