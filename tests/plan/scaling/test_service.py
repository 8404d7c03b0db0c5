"""What a replica bears, by the mix of requests that it is given."""

from dataclasses import replace

import pytest

from poolwise.plan.scaling.capability import capability
from poolwise.plan.scaling.mix import Mix
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
