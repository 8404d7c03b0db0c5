"""How fast caches fill is told exactly, and sees longer answers before any of them ends."""

import math
from dataclasses import replace

import numpy as np
import pytest

from poolwise.plan.scaling.capability import capability
from poolwise.plan.scaling.filling import LONGEST_SECONDS, filling
from poolwise.plan.scaling.intake import intake
from poolwise.plan.scaling.memory import Bin, Memory
from poolwise.plan.scaling.seen import Phase
from tests.plan.scaling.given import ANSWER_TOKENS, PROMPT_TOKENS, Fleet, service

SECONDS = 10.0
RATE, ANSWER, GAP_SECONDS = 15.0, 1800.0, 0.04
SERVES = {"h100": 1.5}


@pytest.fixture(scope="module")
def able():
    given = service()
    pool = given.first
    return capability(pool.predictor, pool.predictor.prior_mix, given.targets, 1.0)


def bins(kept_tokens):
    return [
        Bin(SECONDS * (number + 1), SECONDS, 150.0, kept_tokens=each)
        for number, each in enumerate(kept_tokens)
    ]


def full_tokens(able):
    return able.in_flight * able.served.context_tokens


def test_what_comes_and_goes_fills_nothing(able):
    draw = np.random.default_rng(0)
    told = [filling(bins(draw.normal(0.0, 1e4, 40)), able) for _ in range(200)]
    assert np.mean(told) * LONGEST_SECONDS * full_tokens(able) < 0.2 * 1e4 * math.sqrt(12)


@pytest.mark.parametrize("per_second", [0.01, 0.05])
def test_a_growth_is_told_at_its_rate(able, per_second):
    growing = [per_second * SECONDS * full_tokens(able)] * 12
    assert filling(bins(growing), able) == pytest.approx(per_second)


def test_who_empties_fills_nothing(able):
    assert filling(bins([-1e5] * 12), able) == 0.0


def test_a_few_looks_tell_nothing(able):
    assert filling(bins([1e6] * 4), able) == 0.0
    assert filling([], able) == 0.0


def test_only_as_much_of_the_past_counts_as_agrees(able):
    """After a calm of ten minutes, and before it was twice as fast."""
    draw = np.random.default_rng(1)
    calm, growing = draw.normal(0.0, 2e3, 60), draw.normal(5e4, 2e3, 3)
    found = filling(bins([*calm, *growing]), able) * full_tokens(able) * SECONDS
    assert found == pytest.approx(5e4, rel=0.15)


def test_longer_answers_are_seen_before_any_of_them_ends(able):
    """As many come, from one moment on for twice as long: once the last of the shorter ones has
    ended nobody does for as long again, and all that is written stays."""
    stay, change = ANSWER * GAP_SECONDS, 600.0
    kept = []
    for number in range(70):
        now = SECONDS * (number + 1)
        in_flight = RATE * max(min(now, stay), now - change)
        ended = RATE * SECONDS if stay < now < change + stay else 0.0
        kept.append(in_flight * SECONDS / GAP_SECONDS - ended * ANSWER)
    written = RATE * ANSWER / full_tokens(able)  # a second, at the change
    assert filling(bins(kept[:67]), able) < 0.01 * written
    assert filling(bins(kept), able) == pytest.approx(1.2 * written, rel=0.1)
    assert len(kept) * SECONDS < change + 2 * stay


def test_who_breaks_off_does_not_fill_caches_for_good(able):
    """One request in five, each of a usual context, for twenty minutes; then others come."""
    context_tokens = able.served.context_tokens
    each = Bin(0.0, SECONDS, 150.0, kept_tokens=30.0 * context_tokens, broken_off=30.0)
    leaving = [replace(each, at_seconds=SECONDS * (number + 1)) for number in range(120)]
    assert filling(leaving, able) == pytest.approx(0.0, abs=1e-9)
    more = [replace(each, kept_tokens=90.0 * context_tokens) for _ in range(12)]
    told = filling([*leaving, *more], able) * able.in_flight * SECONDS
    assert told == pytest.approx(60.0, rel=0.1)


def looked(change=lambda each: each, phase=Phase.READY):
    """Two looks at two replicas, of which the first may tell otherwise or leave."""
    fleet, memory = Fleet.of(2), Memory()
    for number in range(2):
        seen = fleet.seen(15.0 * number, 0.0)
        first, second = seen.replicas
        samples = {name: change(each) for name, each in seen.samples.items()}
        seen = replace(seen, replicas=(replace(first, phase=phase), second), samples=samples)
        taken = intake(memory, seen, SERVES)
        memory, fleet = replace(memory, samples=taken.samples), fleet.after(40.0)
    return taken


def test_what_is_read_and_written_and_ended_leaves_nothing():
    assert looked().kept_tokens(1000.0) == 0.0


def test_what_is_written_for_those_that_go_on_is_kept():
    def longer(sample):
        return replace(sample, generated_tokens=1.5 * sample.generated_tokens)

    assert looked(longer).kept_tokens(1000.0) == pytest.approx(40.0 * 0.5 * ANSWER_TOKENS)


def test_who_leaves_fills_nobody():
    def reading(sample):
        return replace(sample, begun_prompt_tokens=2.0 * sample.begun_prompt_tokens)

    assert looked(reading).kept_tokens(1000.0) == pytest.approx(40.0 * PROMPT_TOKENS)
    leaving = looked(reading, Phase.DRAINING)
    assert leaving.kept_tokens(1000.0) == pytest.approx(20.0 * PROMPT_TOKENS)


def test_who_neither_ended_nor_is_there_broke_off():
    def fewer(sample):
        return replace(sample, finished_requests=0.8 * sample.finished_requests)

    assert looked(fewer).broken_off == pytest.approx(40.0 * 0.2)
    assert looked().broken_off == 0.0


def test_who_is_gone_has_ended_where_an_engine_tells_of_no_ends():
    def silent(sample):
        return replace(sample, finished_requests=None, answer_lengths_tokens=None)

    taken = looked(silent)
    assert taken.broken_off == taken.kept_tokens(1000.0) == 0.0


def test_without_lengths_requests_tell_each_of_a_usual_context():
    def silent(sample):
        ended = 0.75 * sample.finished_requests
        return replace(sample, prompt_lengths_tokens=None, finished_requests=ended)

    assert looked(silent).kept_tokens(1000.0) == pytest.approx(40.0 * 0.25 * 1000.0)
