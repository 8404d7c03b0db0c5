"""What a replica bears, by the mix of requests that it is given."""

from dataclasses import replace

import pytest

from poolwise.model.serving.load import state
from poolwise.model.serving.queueing import Lengths
from poolwise.model.work import Metric, Target
from poolwise.plan.scaling.capability import capability, highest_load
from poolwise.plan.scaling.mix import Mix
from poolwise.plan.scaling.tails import holds, late_share
from tests.plan.scaling.given import predictor, service

USUAL = predictor().prior_mix


def requests_per_second(mix: Mix) -> float:
    return capability(predictor(), mix, service().targets, 1.0).requests_per_second


@pytest.mark.parametrize(
    "harder",
    [
        replace(USUAL, prompt_tokens=replace(USUAL.prompt_tokens, mean=2_000.0)),
        replace(USUAL, answer_tokens=replace(USUAL.answer_tokens, mean=800.0)),
    ],
    ids=["longer prompts", "longer answers"],
)
def test_of_longer_requests_a_replica_serves_fewer(harder):
    assert requests_per_second(harder) < 0.8 * requests_per_second(USUAL)


def test_of_prompts_that_are_cached_it_serves_more():
    long = replace(USUAL, prompt_tokens=replace(USUAL.prompt_tokens, mean=2_000.0))
    cached = replace(long, computed_share=0.2)
    assert requests_per_second(cached) > 1.2 * requests_per_second(long)


@pytest.mark.parametrize("tokens", [2.0, 3.0, 5.0])
def test_of_answers_of_few_tokens_the_highest_load_is_found_too(tokens):
    """Hardly a request is between its first and last token, of hundreds that could be."""
    long = Lengths(4_000.0, 0.3)
    served = predictor().replica(Mix(long, Lengths(tokens, 0.0)))
    targets = (Target(Metric.TPOT, 99.0, 0.1),)
    load = highest_load(served, targets)
    assert 0.0 < load < 0.01 * served.largest_load
    assert holds(served, state(served, load), targets)
    assert not holds(served, state(served, 1.15 * load), targets)


def test_no_more_requests_have_late_tokens_than_have_any():
    """Of a hundred answers at most two have a second token, where the mean is 1.02."""
    served = predictor().replica(Mix(USUAL.prompt_tokens, Lengths(1.02, 0.0)))
    crowded = state(served, served.largest_load)
    assert late_share(served, crowded, Target(Metric.TPOT, 99.0, 0.001)) <= 0.021


@pytest.mark.parametrize("few", [0.0, 0.005])
def test_targets_of_gaps_do_not_matter_where_too_few_answers_have_any(few):
    """A classifier's answers are one token; a few longer ones are no more than may be late."""
    longer = 400.0
    mostly_one = replace(USUAL, answer_tokens=Lengths(1.0 + few * longer, 50.0))
    ttft = Target(Metric.TTFT, 99.0, 2.0)
    tight = (ttft, Target(Metric.TPOT, 99.0, 0.02))
    told = replace(mostly_one, gaps=((0.0, 1.0 - few), (longer, few)))
    both, one = (capability(predictor(), told, each, 1.0) for each in (tight, (ttft,)))
    assert both.requests_per_second == one.requests_per_second
    assert both.limit == ttft


def test_half_as_many_are_late_where_half_of_the_answers_have_gaps():
    served = predictor().replica(USUAL)
    crowded, target = state(served, served.largest_load), Target(Metric.TPOT, 99.0, 1e-3)
    assert late_share(served, crowded, target) == pytest.approx(1.0)
    half = replace(served, gaps=((0.0, 0.5), (200.0, 0.5)))
    assert late_share(half, crowded, target) == pytest.approx(0.5)


def test_of_answers_that_hardly_ever_have_a_second_token_a_lone_request_is_alone():
    """Loads are counted in sequences that are being answered: of 0.0001 on average there are few
    however many prompts are read."""
    hardly = replace(USUAL, answer_tokens=Lengths(1.0001, 0.0))
    able = capability(predictor(), hardly, service().targets, 1.0)
    none = capability(predictor(), replace(USUAL, answer_tokens=Lengths(1.0, 0.0)),
                      service().targets, 1.0)  # fmt: skip
    assert max(able.floors) < 1e-3
    assert able.requests_per_second == pytest.approx(none.requests_per_second, rel=0.1)
