"""Prompts that become others."""

import math
from dataclasses import replace

import pytest

from poolwise.model.serving.queueing import Lengths
from poolwise.plan.scaling.lengths import mix, with_lengths
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.mix import Mix
from poolwise.plan.signals.sample import Histogram
from poolwise.plan.signals.window import Delta

USUAL_TOKENS, EACH = 500.0, 120.0
SECONDS = 15.0
DECLARED = Mix(Lengths(USUAL_TOKENS, 2.0), Lengths(200.0, 1.0))


def _look(
    prompt_tokens: float,
    count: float,
    began_tokens: float | None = None,
    began: float | None = None,
) -> Delta:
    """Half of the prompts a third shorter, half a third longer; of those that began the number and
    their mean, told only where there is one."""
    short, long = prompt_tokens / 1.5, prompt_tokens / 0.75
    bounds = (0.9 * short, short, 0.9 * long, long, math.inf)
    counts = (0.0, count / 2.0, count / 2.0, count, count)
    first = Histogram((1.0, math.inf), (began or count,) * 2, began or count)
    return Delta(
        0.0,
        SECONDS,
        SECONDS,
        finished_requests=count,
        generated_tokens=200.0 * count,
        prompt_tokens=count * prompt_tokens,
        begun_prompt_tokens=began_tokens and began_tokens * first.count,
        ttft_seconds=first,
        prompt_lengths_tokens=Histogram(bounds, counts, count * prompt_tokens),
    )


def _usual(is_begun_told: bool = False) -> Memory:
    """After half an hour of the same."""
    memory = Memory(declared_requests=0.0)
    for _ in range(120):
        usual = _look(USUAL_TOKENS, EACH, USUAL_TOKENS if is_begun_told else None)
        memory = with_lengths(memory, usual, SECONDS)
    return memory


def _prompts(memory: Memory, *looks: Delta) -> Lengths:
    for look in looks:
        memory = with_lengths(memory, look, SECONDS)
    return mix(DECLARED, memory).prompt_tokens


@pytest.mark.parametrize("tokens", [6_000.0, 100.0])
def test_prompts_of_another_kind_are_no_mixture_with_those_before(tokens):
    """What both together need is several times what either kind does."""
    assert _prompts(_usual(), _look(tokens, 40.0)).mean == pytest.approx(tokens)


@pytest.mark.parametrize(("tokens", "count"), [(550.0, 400.0), (1_200.0, 400.0), (2_000.0, 1.0)])
def test_drifts_and_few_requests_are_no_other_kind(tokens, count):
    assert _prompts(_usual(), _look(tokens, count)).mean < 0.7 * USUAL_TOKENS + 0.3 * tokens


@pytest.mark.parametrize("tokens", [6_000.0, 100.0])
def test_those_that_began_are_known_before_any_of_them_ends(tokens):
    usual = _usual(is_begun_told=True)
    before, now = _prompts(usual), _prompts(usual, _look(USUAL_TOKENS, EACH, tokens, 20.0))
    assert now.mean == pytest.approx(tokens)
    assert now.scv == pytest.approx(before.scv)


def test_once_they_end_their_own_spread_counts():
    changing = _look(USUAL_TOKENS, EACH, 6_000.0, 20.0), _look(6_000.0, 40.0, 6_000.0, 40.0)
    found = _prompts(_usual(is_begun_told=True), *changing)
    assert found.mean == pytest.approx(6_000.0)
    assert found.scv == pytest.approx(_prompts(Memory(declared_requests=0.0), changing[1]).scv)


def test_a_rise_is_no_other_kind_where_prompts_count_when_they_end():
    """Four times as many begin as before, of the same length: they are counted later."""
    rising = _look(USUAL_TOKENS, EACH, None, 4.0 * EACH)
    assert _prompts(_usual(), rising).mean == pytest.approx(USUAL_TOKENS)


@pytest.mark.parametrize("times", [2.0, 6.0])
def test_a_few_long_prompts_among_uneven_ones_are_no_other_kind(times):
    """R1's prompts spread so widely that twelve of them have a mean of six times the usual now and
    then."""
    bounds, memory = (250.0, 10_000.0, math.inf), Memory()
    uneven = Histogram(bounds, (0.95 * EACH, EACH, EACH), EACH * USUAL_TOKENS)
    for _ in range(120):
        look = _look(USUAL_TOKENS, EACH, USUAL_TOKENS)
        memory = with_lengths(memory, _with_lengths(look, uneven), SECONDS)
    now = _with_lengths(_look(USUAL_TOKENS, EACH, times * USUAL_TOKENS, 12.0), uneven)
    assert _prompts(memory, now).mean == pytest.approx(USUAL_TOKENS)


def _with_lengths(look: Delta, lengths: Histogram) -> Delta:
    return replace(look, prompt_lengths_tokens=lengths)
