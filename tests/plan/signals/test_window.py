"""Differences of counters: restarts, repeats, what goes back, sums over replicas."""

import math
import re
from dataclasses import replace
from itertools import pairwise, starmap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.plan.signals.adapters import GAUGES
from poolwise.plan.signals.histogram import credible, difference, native, pooled, with_faded
from poolwise.plan.signals.percentile import percentile_of
from poolwise.plan.signals.window import (
    COUNTERS,
    HISTOGRAMS,
    Delta,
    WentBack,
    between,
    joined,
)
from poolwise.plan.signals.words import WORDS
from tests.plan.signals.given import histogram, latencies, of_values, sample


def test_difference_of_two_looks():
    earlier = sample(10, finished_requests=5, ttft_seconds=histogram(3, 2, total=0.5))
    later = sample(25, finished_requests=9, ttft_seconds=histogram(3, 5, 1, total=1.5))
    delta = between(earlier, later)
    assert isinstance(delta, Delta)
    assert (delta.seconds, delta.finished_requests) == (15, 4)
    assert delta.ttft_seconds == histogram(0, 3, 1, total=1.0)
    assert delta.generated_tokens is None


@pytest.mark.parametrize("at_seconds", [10, 3])
def test_stale_and_repeated_looks_tell_nothing(at_seconds):
    assert between(sample(10, finished_requests=5), sample(at_seconds, finished_requests=9)) is None


def test_restarted_replica_counts_from_zero():
    earlier = sample(0, finished_requests=100, ttft_seconds=histogram(90))
    later = sample(15, finished_requests=4, ttft_seconds=histogram(3, total=0.2))
    delta = between(earlier, later)
    assert isinstance(delta, Delta)
    assert delta.is_restart
    assert (delta.finished_requests, delta.ttft_seconds) == (4, histogram(3, total=0.2))


def test_what_a_restarted_replica_counts_for_the_first_time_is_no_sign_against_its_restart():
    earlier = sample(0, finished_requests=100, preemptions=0)
    delta = between(earlier, sample(15, finished_requests=4, preemptions=1))
    assert isinstance(delta, Delta)
    assert (delta.is_restart, delta.finished_requests, delta.preemptions) == (True, 4, 1)


@pytest.mark.parametrize(
    "later",
    [
        {"finished_requests": 990, "generated_tokens": 9_900},
        {"finished_requests": 3, "generated_tokens": 12_000},
    ],
)
def test_counters_that_go_back_without_a_restart_are_no_number(later):
    earlier = sample(0, finished_requests=1_000, generated_tokens=10_000)
    found = between(earlier, sample(15, **later))
    assert isinstance(found, WentBack)
    named = "the count of (ended requests|generated tokens) went back from .* without a restart"
    assert re.fullmatch(f"{earlier.replica}: {named}", str(found))


def test_of_counters_that_went_back_the_one_is_named_that_lost_most():
    earlier = sample(0, finished_requests=1_000, preemptions=9, generated_tokens=10_000)
    later = sample(15, finished_requests=990, preemptions=5, generated_tokens=9_900)
    found = between(earlier, later)
    assert isinstance(found, WentBack)
    assert (found.counter, found.before, found.after) == ("generated_tokens", 10_000, 9_900)


@pytest.mark.parametrize(
    ("before", "after"), [({"preemptions": 3.0}, {}), ({}, {"preemptions": 3.0})]
)
def test_a_counter_told_at_one_look_alone_tells_nothing(before, after):
    delta = between(
        sample(0, finished_requests=5, **before), sample(15, finished_requests=9, **after)
    )
    assert isinstance(delta, Delta)
    assert (delta.finished_requests, delta.preemptions) == (4, None)


def test_each_field_has_a_name_for_people():
    assert WORDS.keys() == {*GAUGES, *COUNTERS, *HISTOGRAMS}


def test_replicas_with_other_bounds_meet_at_those_they_share():
    coarse = histogram(3, 4, bounds=(0.5, math.inf))
    assert pooled([coarse, histogram(1, 1, 1, 1)]) == histogram(6, 5, bounds=(0.5, math.inf))


def test_those_that_tell_a_counter_are_summed():
    parts = [Delta(0, 15, 15, finished_requests=3), Delta(1, 16, 15, preemptions=2)]
    total = joined(parts)
    assert total is not None
    assert (total.finished_requests, total.preemptions, total.prompt_tokens) == (3, 2, None)
    assert (total.seconds, total.replica_seconds) == (16, 30)
    assert joined([]) is None


@given(st.lists(latencies, min_size=2, max_size=5))
def test_differences_add_up_to_the_whole(rounds):
    looks, seen = [sample(0, finished_requests=0, ttft_seconds=of_values([]))], []
    for at, values in enumerate(rounds, start=1):
        seen += values
        looks.append(sample(at, finished_requests=len(seen), ttft_seconds=of_values(seen)))
    total = joined([each for each in starmap(between, pairwise(looks)) if isinstance(each, Delta)])
    assert total is not None
    assert total.finished_requests == len(seen)
    assert total.ttft_seconds is not None
    assert total.ttft_seconds.counts == of_values(seen).counts


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10_000)), min_size=1, max_size=30),
)
def test_nothing_is_ever_counted_below_zero(looks):
    """Whatever an endpoint tells and whenever, no difference is negative."""
    told = [sample(at, finished_requests=count) for at, count in looks]
    for each in starmap(between, pairwise(told)):
        assert not isinstance(each, Delta) or (each.finished_requests or 0) >= 0
        assert not isinstance(each, Delta) or each.seconds > 0


def test_native_buckets_keep_the_percentile_within_their_width():
    schema, value = 5, 0.42
    index = math.ceil(math.log2(value) * 2**schema)
    found = percentile_of(native(schema, 0, {index: 100.0}, 42.0), 50)
    assert found is not None
    assert found.lower < value <= found.upper <= found.lower * 2 ** (1 / 8) * 1.0001


@given(st.integers(-2, 8), st.dictionaries(st.integers(-200, 200), st.integers(1, 9), max_size=9))
def test_native_histograms_lose_no_observation(schema, buckets):
    found = native(schema, 2.0, buckets, 1.0)
    assert found.count == 2 + sum(buckets.values())
    assert list(found.counts) == sorted(found.counts)


@pytest.mark.parametrize(
    ("seen", "mean"),
    [
        (histogram(0, 0, 4, total=1.6), 0.4),
        (histogram(0, 0, 4, total=2.0), 0.5),
        (histogram(0, 0, 4, total=2.05), 2.05 / 4.0),  # sum and buckets read a moment apart
        (histogram(0, 0, 4, total=0.0), None),  # an engine that tells no sum but 0
        (histogram(0, 0, 4, total=-1.0), None),
        (histogram(0, 0, 4, total=20.0), None),
        (histogram(4, total=0.0), 0.0),
        (histogram(0, 0, 0, 0, 0, 0, 4, total=1e6), 2.5e5),  # beyond the last bound
        (replace(histogram(0, 0, 4), total=None), None),
        (histogram(total=0.0), None),
    ],
)
def test_a_sum_that_its_buckets_contradict_is_unknown(seen, mean):
    assert credible(seen).mean == pytest.approx(mean) if mean is not None else True
    assert (credible(seen).mean is None) == (mean is None)
    assert credible(seen).counts == seen.counts


def test_sums_are_unknown_where_one_of_them_is():
    known, unknown = histogram(0, 0, 4, total=1.6), replace(histogram(0, 0, 1), total=None)
    assert difference(known, unknown).total is None
    assert difference(known, histogram(0, 0, 1, total=0.4)).total == pytest.approx(1.2)
    both = pooled([known, unknown])
    assert both is not None and (both.count, both.total) == (5.0, None)
    faded = with_faded(unknown, 0.5, known)
    assert faded is not None and (faded.count, faded.total) == (4.5, None)
