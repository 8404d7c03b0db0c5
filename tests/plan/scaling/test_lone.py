"""Prompts that alone take too long are known by their lengths, and blamed on no load."""

import json
import math
from dataclasses import replace

import pytest

from poolwise.model.work import Metric, Target
from poolwise.plan.scaling.capability import capability
from poolwise.plan.scaling.learning import late_requests
from poolwise.plan.scaling.lone import Known, Lone, alone_share, known_share, longest_in_time
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.mix import Mix
from poolwise.plan.scaling.tails import floor_seconds
from poolwise.plan.signals.sample import Histogram
from poolwise.plan.signals.window import Delta
from tests.plan.scaling.given import predictor, service, target

BOUNDS = (100.0, 1000.0, 10_000.0, 100_000.0, math.inf)
MIX = predictor().prior_mix


def lengths(*counts):
    return Histogram(BOUNDS, tuple(map(float, counts)), 1000.0 * counts[-1])


def told(seconds=0.1, of=None, lone=None):
    given = service(targets=(target(seconds),))
    able = capability(given.pools[0].predictor, of or MIX, given.targets, 1.0)
    return alone_share(given, able, of or MIX, lone or Lone()), able


def known(share, able, lone, seconds=0.1):
    return known_share(service(targets=(target(seconds),)), able, MIX, lone, share)


@pytest.mark.parametrize("seconds", [0.03, 0.1, 0.3])
def test_the_longest_prompt_in_time_takes_as_long_as_the_target_allows(seconds):
    longest = longest_in_time(predictor(), target(seconds), 1.0, 1.0)
    mix = replace(MIX, prompt_tokens=replace(MIX.prompt_tokens, mean=longest, scv=0.0))
    assert floor_seconds(predictor().replica(mix), target(seconds)) == pytest.approx(
        seconds, rel=0.01
    )


def test_slow_replicas_read_less_in_time_and_cached_prompts_may_be_longer():
    usual, slow, cached = (
        longest_in_time(predictor(), target(0.1), share, slowness)
        for share, slowness in ((1.0, 1.0), (1.0, 1.5), (0.5, 1.0))
    )
    assert slow < 0.75 * usual
    assert cached == pytest.approx(2.0 * usual, rel=0.3)
    assert longest_in_time(predictor(), target(2.0), 1.0, 1.0) == math.inf


def test_shares_are_of_the_lengths_that_engines_tell():
    longest = longest_in_time(predictor(), target(0.1), 1.0, 1.0)
    assert 1000.0 < longest < 10_000.0
    share, able = told(lone=Lone(late=50.0, lengths=lengths(0, 500, 950, 1000, 1000)))
    part = math.log(longest / 1e3) / math.log(10.0)
    assert share == pytest.approx(0.5 * 0.1**part, rel=0.01)  # a tenth of them above the next bound
    assert known(share, able, Lone(lengths=lengths(0, 5, 9, 10, 10))) is None  # too few
    of_many = known(share, able, Lone(lengths=lengths(0, 500, 900, 1000, 1000)))
    assert of_many == Known(share, 0.0)


@pytest.mark.parametrize(
    ("usual", "least", "most"), [(9_000.0, 0.025, 0.03), (1_500.0, 0.0, 0.022)]
)
def test_where_nothing_is_above_the_bucket_the_sum_tells_how_many_may_be_late_alone(
    usual, least, most
):
    """3 % of the prompts lie in a bucket of 1,000 to 10,000 tokens; some 3,600 are in time."""
    counts = (0.0, 970.0, 1000.0, 1000.0, 1000.0)
    lone = Lone(lengths=Histogram(BOUNDS, counts, 970 * 550.0 + 30 * usual))
    found, able = told(lone=lone)
    assert found < 0.005
    assert least < found + known(found, able, lone).more < most


def test_where_gaps_are_late_lengths_of_prompts_do_not_tell_who():
    _, able = told()
    gaps = replace(able, limit=Target(Metric.TPOT, 99.0, 0.1))
    lone = Lone(lengths=lengths(0, 500, 900, 1000, 1000))
    assert known(0.1, able, lone) == Known(0.1, 0.0)
    assert known(0.1, gaps, lone) is None
    assert known(0.1, replace(able, limit=None), lone) is None


def test_before_lengths_are_told_the_declared_ones_count():
    long = Mix(replace(MIX.prompt_tokens, mean=2_000.0, scv=2.0), MIX.answer_tokens)
    share, able = told(of=long)
    assert share == able.floors[0] > 0.05
    assert able.limiting == "TTFT p99"  # as it was declared, not as far as it can be kept
    assert known(share, able, Lone()) is None


def test_an_allowance_of_a_laxer_target_is_worth_less():
    lone = Lone(lengths=lengths(0, 500, 500, 1000, 1000))
    given = service(targets=(target(0.1, 90.0), Target(Metric.TPOT, 99.0, 0.1)))
    able = capability(predictor(), MIX, given.targets, 1.0)
    strict, _ = told(lone=lone)
    assert alone_share(given, able, MIX, lone) == pytest.approx(strict / 10.0)


def test_only_those_beyond_the_long_prompts_are_late_of_load():
    lone = Lone(late=80.0, lengths=lengths(0, 500, 900, 1000, 1000))
    assert lone.of_load(0.02) == pytest.approx(0.75)
    assert lone.of_load(0.5) == 0.0  # more are long than were late: they have not ended yet
    assert Lone(late=80.0, count=2000.0).of_load(0.02) == pytest.approx(0.5)  # lengths are not told
    assert Lone(lengths=lone.lengths).of_load(0.02) == 1.0  # none was late


def test_counts_fade_together():
    lone = Lone(80.0, 1200.0, lengths(0, 500, 900, 1000, 1000)).after(0.0, 0.0, None, 900.0)
    assert (lone.late, lone.count) == (40.0, 600.0)
    assert lone.lengths == Histogram(BOUNDS, (0.0, 250.0, 450.0, 500.0, 500.0), 500_000.0)


@pytest.mark.parametrize("lone", [Lone(), Lone(7.0, 1000.0, lengths(0, 500, 900, 1000, 1000))])
def test_it_is_kept_over_a_restart(lone):
    document = json.loads(json.dumps(lone.as_mapping(), allow_nan=False))
    assert Lone.read(document) == lone


def test_a_memory_of_an_earlier_version_is_read():
    document = Memory(lone=Lone(7.0)).as_mapping()
    assert Memory.read(document).lone == Lone(7.0)
    del document["lone"]
    assert Memory.read(document).lone == Lone()


def test_a_damaged_one_is_not_read():
    document = Lone(7.0, 1000.0, lengths(0, 500, 900, 1000, 1000)).as_mapping()
    with pytest.raises(ValueError, match="another number of bounds"):
        Lone.read({**document, "counts": [1.0]})


def test_first_tokens_are_counted_and_those_under_way_are_as_late_as_those_that_ended():
    delta = Delta(
        since_seconds=0.0,
        until_seconds=15.0,
        replica_seconds=15.0,
        ttft_seconds=Histogram((2.0, math.inf), (30.0, 40.0), 90.0),
        tpot_seconds=Histogram((0.1, math.inf), (9.0, 10.0), 0.5),
    )
    assert late_requests(service(), service().targets, delta) == (10.0, 40.0)
    ended = replace(delta, ttft_seconds=Histogram((2.0, math.inf), (3.0, 4.0), 9.0))
    assert late_requests(service(), service().targets, ended) == pytest.approx((1.0, 10.0))
