"""Whatever replicas tell, a decision is made; and what cannot be true takes no replica away."""

import functools
import json
import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate, cycle, islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.model.work import Metric, Target
from poolwise.plan.scaling.controller import decide
from poolwise.plan.scaling.decision import Remark
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.signals.adapters import Fault, read
from poolwise.plan.signals.plausible import LEAST_BOUND, MOST_COUNTED, MOST_IN_FLIGHT
from poolwise.plan.signals.sample import Histogram, Sample
from poolwise.plan.signals.window import COUNTERS, HISTOGRAMS
from tests.plan.scaling.given import (
    ANSWER_TOKENS,
    PROMPT_TOKENS,
    STEP_SECONDS,
    Course,
    course,
    service,
)

RATE, BEGUN, LULL_LOOKS = 20.0, 1e6, 40
CHAT = service(
    targets=(
        Target(Metric.TTFT, 99.0, 2.0),
        Target(Metric.TPOT, 99.0, 0.1),
        Target(Metric.ITL, 95.0, 0.1),
        Target(Metric.E2E, 99.0, 30.0),
    )
)
NUMBERS = (0.0, 5e-324, 1e-9, 0.3, 1.0, 7.0, 1e3, 1e5, 1e7, 1e12)
BOUNDS = (0.0, LEAST_BOUND, 1e-3, 0.05, 0.1, 1.0, 100.0, 1e4, 1e9, MOST_COUNTED)

counts = st.sampled_from((*NUMBERS, MOST_COUNTED)) | st.floats(-3.0, 15.9).map(lambda e: 10.0**e)
in_flight = st.sampled_from((*NUMBERS[:-1], MOST_IN_FLIGHT)) | st.floats(0.0, MOST_IN_FLIGHT)


def rising(increments: Iterable[float]) -> list[float]:
    """As counters do, from what a healthy replica has counted."""
    return [min(each, MOST_COUNTED) for each in accumulate(increments, initial=BEGUN)][1:]


@st.composite
def histograms(draw: st.DrawFn, looks: int) -> list[Histogram]:
    """One for each look, of the same bounds."""
    finite = sorted(draw(st.sets(st.sampled_from(BOUNDS), max_size=5)))
    buckets = [rising(draw(counts) for _ in range(looks)) for _ in (*finite, math.inf)]
    totals = draw(st.none() | st.lists(counts, min_size=looks, max_size=looks))
    return [
        Histogram(
            (*finite, math.inf),
            tuple(
                min(each, MOST_COUNTED) for each in accumulate(bucket[look] for bucket in buckets)
            ),
            rising(totals)[look] if totals is not None else None,
        )
        for look in range(looks)
    ]


@st.composite
def courses(draw: st.DrawFn) -> list[dict[str, object]]:
    """By look, what takes the place of what a healthy replica tells: all that comes through the
    gate."""
    looks = draw(st.integers(2, 5))
    gauge = st.lists(st.none() | in_flight, min_size=looks, max_size=looks)
    share = st.lists(st.none() | st.floats(0.0, 1.0), min_size=looks, max_size=looks)
    counter = st.lists(counts, min_size=looks, max_size=looks).map(rising)
    untold: st.SearchStrategy[list[None]] = st.just([None] * looks)
    told = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "running": gauge,
                "waiting": gauge,
                "kv_cache_usage": share,
                **dict.fromkeys(COUNTERS, untold | counter),
                **dict.fromkeys(HISTOGRAMS, untold | histograms(looks)),
            },
        )
    )
    return [{name: values[look] for name, values in told.items()} for look in range(looks)]


@functools.cache
def served() -> Course:
    """A service that has been well for a quarter of an hour."""
    return course(CHAT, [RATE] * 60)


def looks(after: Course, changes: list[dict[str, object]], is_one: bool) -> None:
    """One look for each change; each decision stays inside the bounds and can be kept."""
    memory, fleet, now = after.memory, after.fleet, after.now_seconds
    for change in changes:
        now, fleet = now + STEP_SECONDS, fleet.after(RATE * STEP_SECONDS)
        seen = fleet.seen(now, RATE)
        told = {
            name: replace(each, **change) if name.endswith("-0") or not is_one else each  # type: ignore[arg-type]
            for name, each in seen.samples.items()
        }
        decision = decide(CHAT, memory, replace(seen, samples=told))
        memory = decision.memory
        assert CHAT.least_replicas <= decision.replicas <= CHAT.most_replicas
        kept = json.dumps(memory.as_mapping(), allow_nan=False)
        assert Memory.read(json.loads(kept)).prompts == memory.prompts


@settings(max_examples=40, deadline=None)
@given(courses(), st.booleans())
def test_whatever_comes_through_the_gate_is_decided_on(changes, is_one):
    looks(served(), changes, is_one)


beyond = st.sampled_from((1e300, 1e17, math.inf, -math.inf, math.nan, -1.0))


@st.composite
def impossible(draw: st.DrawFn) -> dict[str, object]:
    """One thing that no replica can have."""
    gauges = ("running", "waiting", "kv_cache_usage")
    name = draw(st.sampled_from((*gauges, *COUNTERS, *HISTOGRAMS, "at_seconds")))
    if name == "at_seconds":
        return {name: math.nan}
    if name not in HISTOGRAMS:
        return {name: draw(beyond)}
    count, total, bound = 1e3, 1e3, 1.0
    match draw(st.sampled_from(("count", "total", "bound"))):
        case "count":
            count = draw(beyond)
        case "total":
            total = draw(beyond)
        case _:
            bound = draw(st.sampled_from((-1.0, 1e17, 1e-300)))
    return {name: Histogram((bound, math.inf), (count, count), total)}


@functools.cache
def lull() -> tuple[int, int]:
    """Replicas before and after hardly anything comes any more."""
    after = served()
    return len(after.fleet.counts), _least_replicas(after, [{}])


def _least_replicas(after: Course, changes: list[dict[str, object]]) -> int:
    memory, fleet, now, least = after.memory, after.fleet, after.now_seconds, math.inf
    for change in islice(cycle(changes), LULL_LOOKS):
        now, fleet = now + STEP_SECONDS, fleet.after(0.5 * STEP_SECONDS)
        seen = fleet.seen(now, 0.5)
        first = min(seen.samples)
        told = {**seen.samples, first: replace(seen.samples[first], **change)}  # type: ignore[arg-type]
        decision = decide(CHAT, memory, replace(seen, samples=told))
        memory, least = decision.memory, min(least, decision.replicas)
        assert (Remark.METRICS_BROKEN in decision.remarks) == bool(change)
        json.dumps(memory.as_mapping(), allow_nan=False)
    return int(least)


@settings(max_examples=30, deadline=None)
@given(st.lists(impossible(), min_size=1, max_size=3))
def test_what_cannot_be_true_takes_no_replica_away(changes):
    before, without = lull()
    assert without < before  # a lull does, where it is told
    assert _least_replicas(served(), changes) >= before


def test_sums_that_are_not_told_are_unknown_and_not_zero():
    """What was learned of speed stays as it was, and lengths come from counts of tokens."""
    after = served()
    memory, fleet, now = after.memory, after.fleet, after.now_seconds
    for _ in range(20):
        now, fleet = now + STEP_SECONDS, fleet.after(RATE * STEP_SECONDS)
        seen = fleet.seen(now, RATE)
        told = {name: _without_sums(each) for name, each in seen.samples.items()}
        decision = decide(CHAT, memory, replace(seen, samples=told))
        memory = decision.memory
        assert decision.replicas == after.decision.replicas
    assert memory.log_slowness == after.memory.log_slowness
    assert memory.prompts.total / memory.prompts.count == pytest.approx(PROMPT_TOKENS)
    assert memory.answers.total / memory.answers.count == pytest.approx(ANSWER_TOKENS)
    read_again = Memory.read(json.loads(json.dumps(memory.as_mapping())))
    assert read_again.lone == memory.lone


def _without_sums(sample: Sample) -> Sample:
    told = {name: getattr(sample, name) for name in HISTOGRAMS}
    return replace(
        sample, **{name: replace(each, total=None) for name, each in told.items() if each}
    )


@pytest.mark.parametrize("lines", [("1e308", "1e308"), ("1e300", "0"), ("9e15", "9e15")])
def test_what_is_absurd_only_together_is_a_fault(lines):
    text = "".join(
        f'vllm:generation_tokens_total{{engine="{index}"}} {value}\n'
        for index, value in enumerate(lines)
    )
    found = read(text, "vllm", "pod-a", 0.0)
    assert isinstance(found, Fault)
    assert found.reason.startswith("the count of generated tokens is ")
