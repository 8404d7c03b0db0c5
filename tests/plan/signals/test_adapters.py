"""One vocabulary out of what engines tell, under their names old and new."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.plan.signals import exposition
from poolwise.plan.signals.adapters import Fault, read
from poolwise.plan.signals.exposition import MOST_LINES, MOST_NEW
from poolwise.plan.signals.sample import Histogram, Sample
from tests.plan.signals import texts

NOW = 1_800_000_000.0


def sample_of(text: str, engine: str = "vllm") -> Sample:
    found = read(text, engine, "pod-a", NOW)
    assert isinstance(found, Sample), found
    return found


def fault_of(text: str, engine: str = "vllm") -> str:
    found = read(text, engine, "pod-a", NOW)
    assert isinstance(found, Fault), found
    return found.reason


def test_all_that_vllm_tells():
    told = sample_of(texts.VLLM_NEW)
    times = Histogram((0.5, 1.0, math.inf), (4, 9, 10), 6.5)
    assert told == Sample(
        "pod-a",
        NOW,
        running=3,
        waiting=2,
        kv_cache_usage=0.25,
        finished_requests=10,
        preemptions=1,
        prompt_tokens=1000,
        begun_prompt_tokens=1000,
        cached_prompt_tokens=100,
        generated_tokens=500,
        ttft_seconds=times,
        inter_token_seconds=times,
        tpot_seconds=times,
        e2e_seconds=times,
        prompt_lengths_tokens=times,
        answer_lengths_tokens=times,
    )


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        (texts.VLLM_OLD, "vllm"),
        (texts.VLLM_NEW.replace("vllm:", "ray_vllm_"), "vllm"),
        (texts.SGLANG, "sglang"),
        (texts.SGLANG.replace("sglang:", "sglang_"), "sglang"),
        (texts.TRITON, "triton"),
        (texts.TRTLLM_SERVE, "triton"),
        (texts.VLLM_NEW, "triton"),
        (texts.SGLANG, "custom"),
        (texts.TRITON, "custom"),
    ],
)
def test_every_engine_tells_its_load(text, engine):
    told = sample_of(text, engine)
    assert (told.running, told.waiting, told.kv_cache_usage) == (3, 2, 0.25)


def test_old_names_stand_in():
    told = sample_of(texts.VLLM_OLD)
    assert told.cached_prompt_tokens == 100
    assert told.inter_token_seconds == Histogram((0.05, math.inf), (4, 10), 0.5)


def test_tgi_tells_no_cache_and_no_first_token():
    told = sample_of(texts.TGI, "tgi")
    assert (told.running, told.waiting, told.finished_requests) == (3, 2, 10)
    assert told.tpot_seconds is not None
    assert (told.kv_cache_usage, told.ttft_seconds) == (None, None)


def test_milliseconds_become_seconds():
    told = sample_of(texts.TRITON, "triton")
    assert told.ttft_seconds == Histogram((0.5, math.inf), (4, 10), 6.5)


def test_engines_of_one_replica_are_summed_and_the_fullest_cache_counts():
    second = texts.VLLM_NEW.replace('engine="0"', 'engine="1"').replace("perc", "perc")
    told = sample_of(texts.VLLM_NEW + second.replace("} 0.25", "} 0.75"))
    assert (told.running, told.finished_requests, told.kv_cache_usage) == (6, 20, 0.75)
    assert told.ttft_seconds == Histogram((0.5, 1.0, math.inf), (8, 18, 20), 13.0)


def test_a_series_that_is_told_twice_counts_once():
    assert sample_of(texts.VLLM_NEW + texts.VLLM_NEW) == sample_of(texts.VLLM_NEW)


def test_native_histogram_where_the_text_gives_it():
    told = sample_of(texts.native(spans="[-2:2,1:1]", deltas="[3,1,-2]"))
    assert told.ttft_seconds is not None
    counts = dict(zip(told.ttft_seconds.upper_bounds, told.ttft_seconds.counts, strict=True))
    assert [counts[bound] for bound in (0.125, 0.25, 0.5, 1.0, 2.0)] == [1, 4, 8, 8, 10]
    assert told.ttft_seconds.total == 6.5


def test_a_sum_that_is_not_told_is_unknown():
    lines = texts.VLLM_NEW.splitlines()
    told = sample_of("\n".join(each for each in lines if "_sum" not in each))
    assert told.ttft_seconds == Histogram((0.5, 1.0, math.inf), (4, 9, 10), None)
    of_one = texts.VLLM_NEW.replace('engine="0"', 'engine="1"')
    both = sample_of("\n".join(lines + [x for x in of_one.splitlines() if "_sum" not in x]))
    assert both.ttft_seconds == Histogram((0.5, 1.0, math.inf), (8, 18, 20), None)


def test_gauge_without_a_value_is_not_told():
    assert (
        sample_of(
            texts.VLLM_NEW.replace("perc{" + texts.MODEL + "} 0.25", "perc NaN")
        ).kv_cache_usage
        is None
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "serves none of the metrics of engine vllm, such as vllm:num_requests_running"),
        ("python_info 1\n", "serves none of the metrics of engine vllm"),
        ("<html><body>502 Bad Gateway</body></html>", "answers '<html>"),
        ('{"error": "not found"}', "answers '{"),
        ("vllm:generation_tokens_total -3\n", "is -3, which is not a possible count or share"),
        ("vllm:generation_tokens_total NaN\n", "is nan"),
        ("vllm:generation_tokens_total +Inf\n", "is inf"),
        ("vllm:num_requests_running many\n", "is 'many', which is not a number"),
        ("vllm:kv_cache_usage_perc 35\n", "is 35, a share must lie between 0 and 1"),
        (f"vllm:num_requests_running 3 {'9' * 400}\n", "which is not a series"),
        (
            "vllm:num_requests_running 3 1790000000000\n",
            "timestamp that differs by -10000000 s",
        ),
        ('vllm:num_requests_running{a="b 3\n', "is not a series"),
        ('vllm:num_requests_running{a="b} 3\n', "cannot be read"),
        ("vllm:num_requests_running{ 3\n", "is not a series"),
        (
            'vllm:time_to_first_token_seconds_bucket{le="1"} 4\n',
            "vllm:time_to_first_token_seconds has no bucket up to +Inf",
        ),
        (
            texts.family("vllm:time_to_first_token_seconds", {"1": 4, "+Inf": 3}, 1),
            "fewer observations than the one below it",
        ),
        (
            texts.family("vllm:time_to_first_token_seconds", {"1": -4, "+Inf": 3}, 1),
            "has a bucket that holds -4 observations",
        ),
        (
            texts.family("vllm:time_to_first_token_seconds", {"x": 1, "+Inf": 3}, 1),
            "a bucket up to 'x', which is not a number",
        ),
        (
            texts.family("vllm:time_to_first_token_seconds", {"+Inf": 3}, -1),
            "has the sum -1",
        ),
        (
            texts.family("vllm:time_to_first_token_seconds", {"-1": 1, "+Inf": 3}, 1),
            "in buckets from -1 on",
        ),
        (
            texts.family("vllm:time_to_first_token_seconds", {"1": 1, "+Inf": 1e300}, 1),
            "the histogram of TTFT has 1e+300 observations",
        ),
        (
            "vllm:num_requests_waiting 1e300\n",
            "the number of waiting requests is 1e+300, outside of the 0 to 1e+07",
        ),
        ("vllm:num_requests_running 3" + " " * 5000 + "\n", "a line of more than"),
        (texts.native(deltas="[3,-4]"), "is a native histogram of impossible numbers"),
        (texts.native(total="NaN"), "is a native histogram of impossible numbers"),
        (texts.native(zero_count="-1"), "is a native histogram of impossible numbers"),
        (texts.native(schema="-53"), "is a native histogram of impossible numbers"),
        (texts.native(deltas="[3]"), "is a native histogram that cannot be read"),
        (texts.native(total="much"), "is a native histogram that cannot be read"),
        (texts.native(spans=f"[{'9' * 400}:2]"), "is a native histogram that cannot be read"),
        (texts.native(schema="9" * 400), "is a native histogram of impossible numbers"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(text, told):
    reason = fault_of(text)
    assert told in reason
    assert "\n" not in reason


def test_a_million_series_are_refused_at_once():
    lines = (f'vllm:num_requests_running{{user="{n}"}} 1\n' for n in range(1_000_000))
    assert (
        fault_of("".join(lines))
        == f"serves more than {MOST_NEW} series that were never seen before"
    )


def test_one_series_told_a_million_times_is_refused_at_once():
    assert fault_of("vllm:num_requests_running 1\n" * 1_000_000) == (
        f"serves more than {MOST_LINES} series of the metrics that are read"
    )


def test_series_of_others_cost_nothing_of_the_bound():
    others = "".join(f'other_metric{{n="{n}"}} 1\n' for n in range(50_000))
    assert sample_of(others + texts.VLLM_NEW).running == 3


def test_series_of_many_replicas_are_parsed_once(monkeypatch):
    """300 replicas each few seconds: what a series is called is parsed once."""
    sample_of(texts.VLLM_NEW)
    monkeypatch.setattr(exposition, "plain", None)
    for _ in range(300):
        sample_of(texts.VLLM_NEW)


@given(st.text(alphabet=st.sampled_from('vlm:_{}=",\\ \n0123.eNaI+-<#\x00é'), max_size=200))
def test_no_text_breaks_it(text):
    for head in ("", "vllm:num_requests_running", "vllm:time_to_first_token_seconds_bucket"):
        assert isinstance(read(head + text, "custom", "pod-a", NOW), Sample | Fault)


@given(st.binary(max_size=300))
def test_no_bytes_break_it(body):
    text = body.decode("utf-8", errors="replace")
    assert isinstance(read(text, "vllm", "pod-a", NOW), Sample | Fault)
