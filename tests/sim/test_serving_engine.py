"""One engine: its steps, its cache, and what it must never lose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.sim.serving.cache import Cache
from poolwise.sim.serving.costs import EngineLimits
from poolwise.sim.serving.fleet import Fleet
from poolwise.sim.serving.requests import Requests
from poolwise.sim.serving.router import LeastOutstanding
from tests.sim.serving_cases import COSTS, ROOMY, poisson, requests, served

TOKENS = COSTS.tokens.up_to(512)
streams = st.lists(
    st.tuples(
        st.floats(0.0, 20.0, allow_nan=False), st.integers(1, 300), st.integers(1, 120)
    ),
    min_size=1,
    max_size=40,
)  # fmt: skip
tight = st.builds(
    EngineLimits,
    max_num_seqs=st.integers(1, 12),
    max_batched_tokens=st.integers(12, 200),
    kv_blocks=st.integers(27, 60),
    watermark_share=st.sampled_from((0.0, 0.01, 0.1)),
)


def test_one_request_alone() -> None:
    """A prompt of one step, then a step for each token, each with one more key to read."""
    answers = served(requests((1.0, 100, 4))).answers()
    prompt = TOKENS[100] + 1e-5 + 100 * 101 / 2 * 1e-9
    decode = sum(TOKENS[1] + 1e-5 + 2e-7 * (100 + done) for done in range(3))
    assert answers.first_token_seconds[0] == pytest.approx(1.0 + prompt)
    assert answers.finished_seconds[0] == pytest.approx(1.0 + prompt + decode)


def test_a_long_prompt_comes_in_chunks() -> None:
    answers = served(requests((0.0, 1100, 1))).answers()
    pairs = 1100 * 1101 / 2
    expected = 2 * TOKENS[512] + TOKENS[76] + 1e-5 + pairs * 1e-9
    assert answers.first_token_seconds[0] == pytest.approx(expected)
    assert answers.finished_seconds[0] == answers.first_token_seconds[0]


def test_a_cached_prefix_is_not_computed() -> None:
    given = Requests.of(
        np.array([0.0]), np.array([500]), np.array([1]), cached_tokens=np.array([400])
    )
    expected = TOKENS[100] + 1e-5 + 100 * (400 + 50.5) * 1e-9
    assert served(given).answers().first_token_seconds[0] == pytest.approx(expected)


def test_an_arrival_joins_after_the_step_that_runs() -> None:
    """The first decodes; the second's prompt is in the step after the one it came in."""
    fleet = served(requests((0.0, 10, 50), (0.1, 20, 1)))
    answers = fleet.answers()
    moment, context = float(answers.first_token_seconds[0]), 10
    while moment < 0.1:
        moment += TOKENS[1] + 1e-5 + 2e-7 * context
        context += 1
    joined = TOKENS[21] + 2e-5 + 2e-7 * context + 20 * 21 / 2 * 1e-9
    assert answers.first_token_seconds[1] == pytest.approx(moment + joined)


def test_preemption_computes_again() -> None:
    """Two that fit alone but not together: the later one is stopped, and still answers in full."""
    limits = EngineLimits(4, 64, kv_blocks=10, watermark_share=0.0)
    fleet = served(requests((0.0, 60, 80), (0.0, 60, 80)), limits)
    answers = fleet.answers()
    assert answers.preemptions.tolist() == [0, 1]
    assert answers.finished_seconds[0] < answers.finished_seconds[1]
    metrics = fleet.members[0].engine.metrics.read()
    assert (metrics.generated, metrics.preemptions, metrics.finished) == (160, 1, 2)


def test_what_no_cache_holds_is_refused() -> None:
    fleet = served(requests((0.0, 170, 10), (0.0, 10, 10)), EngineLimits(4, 64, kv_blocks=10))
    assert fleet.refused == 1
    assert np.isnan(fleet.answers().finished_seconds).tolist() == [True, False]


@settings(max_examples=150, deadline=None)
@given(streams, tight)
def test_nothing_is_lost(rows: list[tuple[float, int, int]], limits: EngineLimits) -> None:
    """Every request ends, in order, and each token is told once, however tight the cache is."""
    given_requests = requests(*rows)
    fleet = served(given_requests, limits)
    answers, metrics = fleet.answers(), fleet.members[0].engine.metrics.read()
    assert not np.isnan(answers.finished_seconds).any()
    assert (answers.first_token_seconds > given_requests.arrival_seconds).all()
    assert (answers.finished_seconds >= answers.first_token_seconds).all()
    assert metrics.generated == given_requests.output_tokens.sum()
    assert metrics.prompt_tokens == given_requests.input_tokens.sum()
    assert metrics.finished == len(rows) == sum(metrics.e2e.counts) == sum(metrics.ttft.counts)
    assert sum(metrics.gaps.counts) == (given_requests.output_tokens - 1).sum()
    assert metrics.preemptions == answers.preemptions.sum()


@settings(max_examples=60, deadline=None)
@given(streams, tight, st.integers(1, 9))
def test_limits_hold_at_every_moment(
    rows: list[tuple[float, int, int]], limits: EngineLimits, looks: int
) -> None:
    fleet = Fleet(requests(*rows), COSTS, limits, LeastOutstanding())
    fleet.request(1, 0.0)
    engine = fleet.members[0].engine
    while not fleet.is_done:
        fleet.advance(fleet.now_seconds + 0.37 * looks)
        assert engine.running <= limits.max_num_seqs
        assert engine._cache.used_after(max(engine._steps, 1)) <= limits.kv_blocks
        assert 0.0 <= engine.kv_cache_usage(fleet.now_seconds) <= 1.0
        assert engine.outstanding == engine.running + engine.waiting
    assert engine._cache.used_after(0) == 0


@given(st.lists(st.integers(1, 70), max_size=8), st.integers(0, 80), st.integers(0, 40))
def test_blocks_are_those_of_each_sequence(lengths: list[int], before: int, steps: int) -> None:
    cache = Cache(10_000, 16)
    cache.grow(before)
    for length in lengths:
        cache.join(length)
    expected = sum(-(-(length + steps) // 16) for length in lengths)
    assert cache.used_after(steps) == expected
    assert cache.fits(steps) or expected > 10_000


def test_a_run_repeats_to_the_last_bit() -> None:
    given_requests = poisson(500, 8.0, seed=3)
    first, again = (served(given_requests, ROOMY, replicas=3).answers() for _ in range(2))
    assert first.digest() == again.digest()
    assert first.digest() != served(given_requests, ROOMY, replicas=2).answers().digest()
