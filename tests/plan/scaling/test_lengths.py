"""What is learned of the lengths of requests."""

import math
from dataclasses import replace
from typing import Any

import pytest

from poolwise.model.serving.queueing import Lengths
from poolwise.plan.scaling.lengths import context_tokens, mix, with_lengths
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.mix import Mix
from poolwise.plan.signals.sample import Histogram
from poolwise.plan.signals.window import Delta
from tests.plan.scaling.given import predictor, sample


def _delta(**told: Any) -> Delta:
    return Delta(since_seconds=0.0, until_seconds=15.0, replica_seconds=15.0, **told)


def test_where_lengths_are_not_told_counters_tell_the_mean_of_prompts():
    declared = Mix(Lengths(500.0, 2.0), Lengths(100.0, 1.0))
    told = _delta(finished_requests=950.0, prompt_tokens=950.0 * 8_000.0)
    memory = with_lengths(Memory(), told, 15.0)
    prompts, prior = mix(declared, memory).prompt_tokens, memory.declared_requests
    assert prompts.mean == pytest.approx((950 * 8_000 + prior * 500) / (950 + prior))
    assert prompts.scv == 2.0
    silent = with_lengths(Memory(), _delta(finished_requests=950.0), 15.0)
    assert mix(declared, silent).prompt_tokens == declared.prompt_tokens


@pytest.mark.parametrize(("cached", "computed"), [(0.0, 1.0), (250.0, 0.75), (1_200.0, 0.0)])
def test_what_is_cached_of_prompts_is_not_computed(cached, computed):
    told = _delta(finished_requests=2.0, prompt_tokens=1_000.0, cached_prompt_tokens=cached)
    memory = with_lengths(Memory(), told, 15.0)
    assert memory.computed_share == pytest.approx(computed)
    silent = _delta(finished_requests=2.0, prompt_tokens=1_000.0)
    assert with_lengths(memory, silent, 15.0).computed_share == memory.computed_share


def test_lengths_that_are_told_count_and_not_the_counters():
    declared = Mix(Lengths(500.0, 2.0), Lengths(100.0, 1.0))
    lengths = Histogram((1000.0, 10_000.0, math.inf), (0.0, 950.0, 950.0), 950.0 * 8_000.0)
    told = _delta(
        finished_requests=950.0, prompt_tokens=950.0 * 7_000.0, prompt_lengths_tokens=lengths
    )
    memory = with_lengths(Memory(), told, 15.0)
    prompts, prior = mix(declared, memory).prompt_tokens, memory.declared_requests
    assert prompts.mean == pytest.approx((950 * 8_000 + prior * 500) / (950 + prior))
    assert prompts.scv < 1.0


def _prompts(count: float, tokens: tuple[float, ...]) -> Delta:
    """So many requests, with prompts of these lengths by turns."""
    bounds = (*(50.0 * step for step in range(200)), math.inf)
    share = count / len(tokens)
    counts = tuple(share * sum(each <= bound for each in tokens) for bound in bounds)
    lengths = Histogram(bounds, counts, share * sum(tokens))
    return _delta(finished_requests=count, prompt_lengths_tokens=lengths)


def _answers(one_token: float, more: float) -> Delta:
    """So many of each kind, of which the longer ones have 200 tokens."""
    count = one_token + more
    return _delta(
        finished_requests=count,
        generated_tokens=one_token + 200.0 * more,
        answer_lengths_tokens=Histogram(
            (1.0, 100.0, 1000.0, math.inf),
            (one_token, one_token, count, count),
            one_token + 200.0 * more,
        ),
    )


def test_declared_lengths_are_forgotten_where_much_is_seen():
    """They would else be a few long answers among thousands of one token, for ever."""
    declared = Mix(Lengths(500.0, 2.0), Lengths(300.0, 1.0))
    memory = Memory()
    for _ in range(80):
        memory = with_lengths(memory, _answers(1_500.0, 0.0), 120.0)
    answers = mix(declared, memory).answer_tokens
    assert answers.mean == pytest.approx(1.0)
    assert answers.scv < 1.0
    few = with_lengths(Memory(), _answers(10.0, 0.0), 1e6)
    assert mix(declared, few).answer_tokens.mean > 200.0


@pytest.mark.parametrize(
    ("each_minute", "prompts", "minutes"),
    [
        (3_000.0, (500.0, 500.0), 1),  # alike, and many of them
        (3_000.0, (10.0, 10.0, 10.0, 10.0, 5_000.0), 2),  # few long ones make the mean
        (750.0, (500.0, 500.0), 2),
        (300.0, (500.0, 500.0), 5),
    ],
)
def test_lengths_fade_the_sooner_the_fewer_requests_tell_their_mean(each_minute, prompts, minutes):
    """Half of what is known of a mean is of so many minutes."""
    declared, memory = Mix(Lengths(500.0, 1.0), Lengths(100.0, 1.0)), Memory()
    for _ in range(20 * minutes):
        memory = with_lengths(memory, _prompts(each_minute, prompts), 60.0)
    before = mix(declared, memory).prompt_tokens.mean
    longer = tuple(1.2 * each for each in prompts)
    for _ in range(minutes):
        memory = with_lengths(memory, _prompts(each_minute, longer), 60.0)
    assert mix(declared, memory).prompt_tokens.mean == pytest.approx(1.1 * before, rel=0.01)


def test_lengths_of_a_spread_that_nothing_tells_fade_as_usual():
    declared, memory = Mix(Lengths(500.0, 1.0), Lengths(100.0, 1.0)), Memory()
    for tokens in (20 * [500.0]) + (2 * [600.0]):
        told = _delta(finished_requests=3_000.0, prompt_tokens=3_000.0 * tokens)
        memory = with_lengths(memory, told, 60.0)
    assert mix(declared, memory).prompt_tokens.mean == pytest.approx(550.0, rel=0.01)


@pytest.mark.parametrize("share", [0.0, 0.004, 0.5, 1.0])
def test_histograms_tell_how_many_answers_have_more_than_one_token(share):
    declared = Mix(Lengths(500.0, 2.0), Lengths(300.0, 1.0))
    memory = Memory()
    for _ in range(20):
        memory = with_lengths(memory, _answers(1_500.0 * (1.0 - share), 1_500.0 * share), 120.0)
    told = dict(mix(declared, memory).gaps)
    assert 1.0 - told.get(0.0, 0.0) == pytest.approx(share, abs=1e-6)
    silent = with_lengths(Memory(), _delta(finished_requests=9.0, generated_tokens=9.0), 15.0)
    assert mix(declared, silent).gaps == ()


def test_contexts_are_told_alike_by_caches_of_any_size():
    tokens, running = 1_000.0, 20.0
    looks = []
    for accelerator in ("H100-SXM5-80GB", "H200-SXM-141GB"):
        served = predictor(accelerator).replica(predictor(accelerator).prior_mix)
        room = served.cache_slots * served.context_tokens
        told = sample("one", 0.0, 0.0, running=running)
        looks.append((replace(told, kv_cache_usage=running * tokens / room), served))
    for some in (looks[:1], looks[1:], looks):
        assert context_tokens(None, some, 15.0) == pytest.approx(tokens)
