"""How long a replica that stops may take: by the longest requests, not by usual ones."""

import math

import pytest

from poolwise.api import InferenceServiceSpec
from poolwise.plan.children.budget import longest_over_told
from poolwise.settings import Settings


def spec(slo=(), output_tokens=None):
    traffic = {"outputTokens": output_tokens} if output_tokens else {}
    targets = [{"metric": "TTFT", "percentile": 99, "target": "1s"}, *slo]
    return InferenceServiceSpec.model_validate(
        {"model": {"preset": "llama-3.1-8b"}, "traffic": traffic, "slo": targets}
    )


def test_answers_of_one_length_take_no_longer():
    assert longest_over_told(spec(output_tokens={"p50": 200}), Settings()) == 1


def test_the_more_answers_differ_the_longer_the_longest():
    near = longest_over_told(spec(output_tokens={"p50": 200, "p95": 300}), Settings())
    far = longest_over_told(spec(output_tokens={"p50": 200, "p95": 2000}), Settings())
    assert 1 < near < far
    # From p95 to p99 of a log-normal law: 2.326 instead of 1.645 deviations.
    assert far == pytest.approx(math.exp(math.log(10) / 1.645 * (2.326 - 1.645)), rel=1e-3)


def test_what_is_told_at_the_99th_percentile_is_taken_as_it_is():
    asked = {"metric": "E2E", "percentile": 99, "target": "60s"}
    assert longest_over_told(spec([asked], {"p50": 200, "p95": 2000}), Settings()) == 1


def test_lengths_that_nobody_told_are_those_of_the_settings():
    assert longest_over_told(spec(), Settings()) == pytest.approx(
        longest_over_told(spec(output_tokens={"p50": 115, "p95": 448}), Settings())
    )
