"""What is skipped changes nothing: token by token the same as one step after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from poolwise.sim.serving.costs import EngineLimits
from tests.sim import stepwise
from tests.sim.serving_cases import COSTS, poisson, requests, served
from tests.sim.test_serving_engine import streams, tight


def _assert_alike(rows: list[tuple[float, int, int]], limits: EngineLimits) -> None:
    stream = requests(*rows)
    answers = served(stream, limits).answers()
    tokens = stepwise.run(stream, COSTS, limits)
    assert [len(each) for each in tokens] == stream.output_tokens.tolist()
    assert answers.first_token_seconds == pytest.approx([each[0] for each in tokens], abs=1e-9)
    assert answers.finished_seconds == pytest.approx([each[-1] for each in tokens], abs=1e-9)


@settings(max_examples=150, deadline=None)
@given(streams, tight)
def test_skipping_changes_nothing(rows: list[tuple[float, int, int]], limits: EngineLimits) -> None:
    _assert_alike(rows, limits)


def test_nor_does_it_under_a_long_overload() -> None:
    """Full queue, full cache, many stops."""
    stream = poisson(150, 20.0, 11)
    limits = EngineLimits(24, 256, kv_blocks=150)
    rows = list(zip(stream.arrival_seconds, stream.input_tokens, stream.output_tokens, strict=True))
    _assert_alike(rows, limits)
    assert served(stream, limits).answers().preemptions.sum() > 10


def test_counted_gaps_are_those_between_tokens() -> None:
    """The histogram of gaps, filled by whole phases, against every single gap."""
    stream, limits = poisson(120, 6.0, 12), EngineLimits(24, 256, kv_blocks=400)
    tokens = stepwise.run(stream, COSTS, limits)
    gaps = np.concatenate([np.diff(each) for each in tokens])
    told = served(stream, limits).members[0].engine.metrics.read().gaps
    edges = np.array([-np.inf, *told.upper_bounds])
    counted = np.histogram(-gaps, -edges[::-1])[0][::-1]
    assert np.abs(counted - np.array(told.counts)).sum() <= 4
    assert told.total == pytest.approx(gaps.sum())
