"""What a Prometheus answers of pods: copies, native histograms, and what cannot be read."""

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.plan.signals.adapters import Fault, own_labels, read
from poolwise.plan.signals.exposition import Nonsense
from poolwise.plan.signals.histogram import native as exponential
from poolwise.plan.signals.percentile import percentile_of
from poolwise.plan.signals.sample import Histogram, Sample
from poolwise.plan.signals.vector import ScrapedText, texts
from poolwise.plan.signals.window import Delta, between
from poolwise.plan.steps.reading import read as read_run
from poolwise.plan.steps.sample import RANK_LABELS, RunSample

NOW = 1_800_000_000.0
RUNNING, TTFT = "vllm:num_requests_running", "vllm:time_to_first_token_seconds"
OWN = own_labels("vllm")


def series(name: str, value: Any, **labels: str) -> dict[str, Any]:
    of = {"__name__": name, "pod": "chat-0", "engine": "0", **labels}
    told = {"histogram": [NOW, value]} if isinstance(value, dict) else {"value": [NOW, value]}
    return {"metric": of, **told}


def age(at_seconds: float = NOW, **labels: str) -> dict[str, Any]:
    of = {"pod": "chat-0", "engine": "0", **labels}
    return {"metric": of, "value": [NOW, str(at_seconds)]}


def sample_of(told: list[Any], ages: list[Any], at_seconds: float = NOW) -> Sample:
    found = texts(told, ages, OWN)["chat-0"]
    assert isinstance(found, ScrapedText), found
    sample = read(found.text, "vllm", "chat-0", at_seconds)
    assert isinstance(sample, Sample), sample
    return sample


def native(*buckets: list[Any], count: float, total: float = 1.0) -> dict[str, Any]:
    """As Prometheus answers it: without a key for no buckets, and no empty bucket."""
    told = {"count": str(count), "sum": str(total)}
    return {**told, "buckets": list(buckets)} if buckets else told


def ttft(*buckets: list[Any], count: float, total: float = 1.0) -> Histogram:
    told = [series(RUNNING, "3"), series(TTFT, native(*buckets, count=count, total=total))]
    found = sample_of(told, [age()]).ttft_seconds
    assert found is not None
    return found


@pytest.mark.parametrize("schema", [0, 2, 5, 8])
def test_exponential_buckets_are_as_the_engine_itself_would_tell_them(schema):
    """Finer ones than are kept are merged, however many there are."""
    held = {index: 1 + index % 3 for index in range(-2 * 2**schema, 3 * 2**schema) if index % 5}
    held = dict(list(held.items())[-900:])
    width = 2.0**-schema
    buckets = [
        [0, str(2.0 ** ((index - 1) * width)), str(2.0 ** (index * width)), str(count)]
        for index, count in held.items()
    ]
    zero = [3, "-2.9e-39", "2.9e-39", "1"]
    found = ttft(zero, *buckets, count=1 + sum(held.values()), total=6.5)
    assert found == exponential(schema, 1, held, 6.5)


def test_exponential_buckets_around_a_wide_zero():
    found = ttft(
        [3, "-0.25", "0.25", "1"], [0, "0.25", "0.5", "4"], [0, "1", "2", "2"], count=7, total=6.5
    )
    assert found == Histogram((0.25, 0.5, 1.0, 2.0, math.inf), (1, 5, 5, 7, 7), 6.5)


def test_custom_buckets_as_classic_histograms_become():
    """``convert_classic_histograms_to_nhcb``: the first bucket begins at -Inf."""
    found = ttft(
        [3, "-Inf", "0.5", "4"], [0, "0.5", "1", "5"], [0, "1", "+Inf", "1"], count=10, total=6.5
    )
    assert found == Histogram((0.5, 1.0, math.inf), (4, 9, 10), 6.5)


def test_custom_buckets_of_which_the_first_holds_nothing():
    """Prometheus leaves it out: those that are left may lie between powers of two."""
    found = ttft([0, "0.5", "1", "5"], [0, "1", "+Inf", "1"], count=6, total=6.5)
    assert found == Histogram((0.5, 1.0, math.inf), (0, 5, 6), 6.5)


def test_a_native_histogram_of_nothing_yet():
    assert ttft(count=0, total=0.0) == Histogram((math.inf,), (0,), 0.0)


def test_native_where_there_are_both():
    told = [
        series(RUNNING, "3"),
        series(TTFT, native([0, "0.25", "0.5", "4"], count=4)),
        series(f"{TTFT}_bucket", "4", le="+Inf"),
        series(f"{TTFT}_sum", "1"),
    ]
    found = sample_of(told, [age()]).ttft_seconds
    assert found == exponential(0, 0, {-1: 4}, 1.0)


def test_buckets_that_fill_in_later_lose_nothing():
    """Prometheus answers no empty bucket, so bounds come and go with observations."""
    filled = [[0, "0.25", "0.5", "2"], [0, "0.5", "1", "6"]]
    looks = [
        sample_of([series(RUNNING, "3"), series(TTFT, told)], [age()], NOW + at_seconds)
        for at_seconds, told in (
            (0, native(count=0)),
            (15, native([0, "0.5", "1", "6"], count=6)),
            (30, native(*filled, count=8)),
            (
                45,
                native([0, "0.25", "0.5", "2"], [0, "0.5", "1", "6"], [0, "4", "8", "2"], count=10),
            ),
        )
    ]
    found = []
    for earlier, later in itertools.pairwise(looks):
        delta = between(earlier, later)
        assert isinstance(delta, Delta)
        assert delta.ttft_seconds is not None
        median = percentile_of(delta.ttft_seconds, 50)
        assert median is not None
        found.append((median.lower, median.upper, median.samples))
    assert found == [(0.5, 1.0, 6), (0.25, 0.5, 2), (4.0, 8.0, 2)]


@pytest.mark.parametrize("ends", [("0.5", "1"), ("0.3", "0.7")])
def test_steps_of_a_run_are_timed_by_native_histograms_of_both_kinds(ends):
    told = series("training_step_seconds", native([0, *ends, "8"], count=8, total=6.5))
    found = texts([told], [age()], RANK_LABELS)["chat-0"]
    assert isinstance(found, ScrapedText)
    run = read_run(found.text, "chat-0", NOW)
    assert isinstance(run, RunSample)
    assert (run.timed_steps, run.timed_seconds) == (8, 6.5)


@pytest.mark.parametrize(
    "broken",
    [
        {"count": "1"},
        {"count": "1", "sum": "x"},
        {"count": "1", "sum": "1", "buckets": [[0, "1", "2"]]},
        {"count": "1", "sum": "1", "buckets": 7},
        {"count": "1", "sum": "1", "buckets": [[0, "2", "1", "1"]]},
        {"count": "1", "sum": "1", "buckets": [[0, "-2", "-1", "1"]]},
        {"count": "1", "sum": "1", "buckets": [[0, "1", "2", "-1"]]},
        {"count": "1", "sum": "1", "buckets": [[0, "1", "2", "NaN"]]},
        {"count": "9", "sum": "1", "buckets": [[0, str(n), str(n + 1), "1"] for n in range(1001)]},
    ],
)
def test_a_broken_native_histogram_is_of_its_pod_alone(broken):
    other = {"pod": "chat-1"}
    told = [series(RUNNING, "3"), series(TTFT, broken), series(RUNNING, "2", **other)]
    found = texts(told, [age(), age(pod="chat-1")], OWN)
    assert isinstance(found["chat-0"], Nonsense)
    assert str(found["chat-0"]).startswith(TTFT)
    assert isinstance(found["chat-1"], ScrapedText)


def copies(*targets: dict[str, str], names: tuple[str, ...] = (RUNNING,)) -> list[Any]:
    engines = ({"engine": "0"}, {"engine": "1"})
    return [series(name, "3", **of, **own) for name in names for of in targets for own in engines]


@pytest.mark.parametrize(
    "targets",
    [
        ({"replica": "a"}, {"replica": "b"}),
        ({"job": "pods"}, {"job": "others", "app": "chat"}),
        ({"job": "pods"}, {"job": "pods", "app": "chat"}),
        ({"instance": "10.0.0.1:8000"}, {"instance": "10.0.0.9:8000"}),
    ],
)
@pytest.mark.parametrize("has_up", [True, False])
def test_copies_of_a_pod_count_once_and_its_engines_each(targets, has_up):
    ups = [
        {"metric": {"__name__": "up", "pod": "chat-0", **of}, "value": [NOW, "1"]} for of in targets
    ]
    told = copies(*targets) + (ups if has_up else [])
    ages = [age(**of, engine=engine) for of in targets for engine in "01"]
    assert sample_of(told, ages).running == 6


def test_what_up_does_not_bear_is_the_engines_own():
    """A label that nobody knows: with ``up`` it is no target's."""
    up = {"metric": {"__name__": "up", "pod": "chat-0", "job": "pods"}, "value": [NOW, "1"]}
    told = [series(RUNNING, "3", job="pods", shard=shard) for shard in "ab"]
    ages = [age(job="pods", shard=shard) for shard in "ab"]
    assert sample_of([*told, up], ages).running == 6
    assert sample_of(told, ages).running == 3


def test_an_engines_label_that_the_target_has_as_well():
    told = [series(RUNNING, "3", engine="vllm", exported_engine=each) for each in "01"]
    ages = [age(engine="vllm", exported_engine=each) for each in "01"]
    assert sample_of(told, ages).running == 6


def test_the_freshest_copy_is_taken_and_of_others_what_it_lacks():
    told = [
        series(RUNNING, "3", replica="a"),
        series(RUNNING, "5", replica="b"),
        series("vllm:generation_tokens_total", "70", replica="a"),
    ]
    ages = [age(NOW - 9, replica="a"), age(NOW - 2, replica="b")]
    found = texts(told, ages, OWN)["chat-0"]
    assert isinstance(found, ScrapedText)
    assert found.at_seconds == NOW - 2
    sample = sample_of(told, ages)
    assert (sample.running, sample.generated_tokens) == (5, 70)


@pytest.mark.parametrize("order", [1, -1])
def test_a_copy_is_as_fresh_as_its_freshest_series(order):
    told = [series(RUNNING, "3", replica="a"), series(RUNNING, "5", replica="b")]
    ages = [
        age(NOW - 9, replica="a"),
        age(NOW - 2, replica="b", engine="0"),
        age(NOW - 40, replica="b", engine="1"),
    ]
    found = texts(told, ages[::order], OWN)["chat-0"]
    assert isinstance(found, ScrapedText)
    assert found.at_seconds == NOW - 2
    assert sample_of(told, ages[::order]).running == 5


def test_labels_of_metrics_stay():
    told = [
        series(RUNNING, "3"),
        *(series("vllm:request_success_total", "2", finished_reason=each) for each in "abc"),
    ]
    assert sample_of(told, [age()]).finished_requests == 6


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=8,
)


points = json_values | st.sampled_from(["3", "-1", "NaN", "1e400"]).map(lambda each: [NOW, each])


@given(json_values, points, json_values)
def test_no_answer_breaks_it(metric, value, histogram):
    """All of it is nonsense together; one by one some can be read."""
    of = {"pod": "chat-0", "__name__": TTFT}
    told = [metric, {"metric": metric, "value": value}, {"metric": of, "histogram": histogram}]
    told += [{"metric": of, "value": value}, {"metric": of, "histogram": [0, histogram]}]
    for part in (told, *([each] for each in told)):
        found = texts(part, [*part, age()], OWN)["chat-0"]
        assert isinstance(found, ScrapedText | Nonsense)
        if isinstance(found, ScrapedText):
            assert isinstance(read(found.text, "vllm", "chat-0", NOW), Sample | Fault)
