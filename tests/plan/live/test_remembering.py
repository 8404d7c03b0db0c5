"""What was learned comes back as it was; what is damaged, old or hostile is nothing."""

import base64
import json
import math
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.plan.live.knowledge import Knowledge, Least, recalled
from poolwise.plan.live.mismatch.clue import Baseline, Mismatch
from poolwise.plan.live.mismatch.watch import Raised, Watch
from poolwise.plan.live.remembering import (
    KEPT_SECONDS,
    LONGEST_CHARACTERS,
    MOST_ERRORS,
    read,
    written,
)
from poolwise.plan.scaling.controller import decide
from poolwise.plan.scaling.learning import MOST_SLOWNESS
from poolwise.plan.scaling.memory import Memory
from poolwise.plan.scaling.surprise import Errors
from tests.plan.scaling.given import Fleet, course, service

NOW = 1_800_000_000.0
BASELINE = Baseline("TTFT p99", 99.0, 0.8, {"requests": 4.0})
WATCH = Watch(raised={Mismatch.TAIL_OUTGROWS_LOAD: Raised("told", 1.0, 2.0, 3.0, None, BASELINE)})


@pytest.fixture(scope="module")
def learned() -> Memory:
    rates = [3.0 + 2.0 * math.sin(step / 20.0) for step in range(200)]
    return course(service(), rates, late_share=0.01).memory


def document(text):
    return json.loads(zlib.decompress(base64.b64decode(text)))


def packed(told):
    return base64.b64encode(zlib.compress(json.dumps(told).encode())).decode()


def test_what_was_learned_comes_back(learned):
    text = written(learned, WATCH, NOW)
    found = read(text, NOW + 60.0)
    assert found is not None
    memory, watch = found
    assert watch == WATCH
    assert np.allclose(memory.belief.weights, learned.belief.weights, atol=2e-3)
    before, after = learned.as_mapping(), memory.as_mapping()
    for name in before.keys() - {"belief", "errors"}:
        assert after[name] == before[name]
    assert memory.since_seconds == learned.since_seconds  # a restart makes nobody older
    assert len(text) < LONGEST_CHARACTERS / 4


def test_who_has_seen_nobody_is_young_after_a_restart():
    found = read(written(Memory(), WATCH, NOW), NOW + 60.0)
    assert found is not None
    assert found[0].is_young(NOW + 60.0)


def test_errors_of_every_kind_still_fit():
    """The largest are kept, and the text is no longer than a status takes."""
    draw = np.random.default_rng(0)
    counts = draw.lognormal(3.0, 3.0, Memory().errors.counts.shape)
    text = written(replace(Memory(), errors=Errors(counts)), WATCH, NOW)
    found = read(text, NOW)
    assert found is not None
    kept = found[0].errors.counts
    assert (kept > 0.0).sum() == MOST_ERRORS
    assert kept[kept > 0.0].min() >= np.sort(counts.ravel())[-MOST_ERRORS] - 1e-3


def test_it_is_the_same_text_each_time(learned):
    assert written(learned, WATCH, NOW) == written(learned, WATCH, NOW)


@pytest.mark.parametrize("age_seconds", [-3600.0, KEPT_SECONDS + 1.0])
def test_of_another_day_or_of_the_future_it_is_nothing(learned, age_seconds):
    assert read(written(learned, WATCH, NOW), NOW + age_seconds) is None


@pytest.mark.parametrize(
    "change",
    [
        {"version": 1},
        {"at": "today"},
        {"at": math.nan},
        {"memory": {}},
        {"memory": None},
        {"shape": [67, 8]},
        {"shape": [-1, 0, 1]},
        {"told": {"Gossip": {}}},
        {"told": []},
        {"told": {"Preemptions": {"told": "x"}}},
    ],
)
def test_whatever_is_damaged_it_is_nothing(learned, change):
    assert read(packed({**document(written(learned, WATCH, NOW)), **change}), NOW) is None


@pytest.mark.parametrize(
    "value",
    [math.inf, math.nan, 1e300, pytest.param(10**400, id="beyond-floats"), "many", None, [1.0]],
)
@pytest.mark.parametrize("name", ["finished", "usualArrivals", "generatedTokens"])
def test_numbers_that_cannot_be_are_refused(learned, name, value):
    told = document(written(learned, WATCH, NOW))
    told["memory"][name] = value
    assert read(packed(told), NOW) is None


@pytest.mark.parametrize(
    "text",
    [
        None,
        7,
        "",
        "=",
        "é",
        "A" * LONGEST_CHARACTERS,
        "A" * 10**6,
        packed([]),
        packed(1),
        packed({}),
    ],
)
def test_what_is_no_such_text_is_nothing(text):
    assert read(text, NOW) is None
    assert recalled({"scaling": {"memory": text}}, NOW) == Knowledge()


def test_without_a_memory_a_service_is_as_fast_as_its_plan_says():
    plan = {"pool": "h100", "correctedBy": {"token": 1.8, "first-token": 1.2}}
    known = recalled({"plan": plan}, NOW).memory
    assert known.log_slowness == {"h100": pytest.approx(math.log(1.8))}
    expected, corrected = decided(Memory()), decided(known)
    assert corrected.capacity_requests_per_second < 0.8 * expected.capacity_requests_per_second


def decided(memory):
    """At the first look at one replica."""
    return decide(service(), memory, Fleet.of(1).seen(NOW, 1.0))


def test_what_was_learned_counts_before_the_plan(learned):
    told = written(learned, Watch(), NOW)
    plan = {"pool": "h100", "correctedBy": {"token": 1.8}}
    assert recalled({"scaling": {"memory": told}, "plan": plan}, NOW).memory.log_slowness == (
        learned.log_slowness
    )


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ({"pool": "h100", "correctedBy": {"training": 2.0}}, {}),
        ({"correctedBy": {"token": 2.0}}, {}),
        ({"pool": "h100", "correctedBy": {"token": -1.0}}, {}),
        ({"pool": "h100", "correctedBy": "twice"}, {}),
        ({"pool": "h100", "correctedBy": {"token": 1e9}}, {"h100": math.log(MOST_SLOWNESS)}),
    ],
)
def test_a_correction_that_says_nothing_of_tokens_here_is_none(plan, expected):
    assert recalled({"plan": plan}, NOW).memory.log_slowness == expected


def test_a_bomb_is_not_inflated():
    bomb = base64.b64encode(zlib.compress(b"[" * 10**7, 9)).decode()
    assert len(bomb) <= LONGEST_CHARACTERS
    assert read(bomb, NOW) is None


@given(
    text=st.text(max_size=200) | st.binary(max_size=200).map(lambda b: base64.b64encode(b).decode())
)
def test_noise_is_nothing(text):
    assert read(text, NOW) is None


def test_more_replicas_have_to_stay_at_once_and_fewer_after_a_while():
    least = Least().after(4, NOW)
    assert least.replicas == 4
    assert least.after(6, NOW + 1).replicas == 6
    assert least.after(None, NOW + 1).replicas is None
    lower = least.after(2, NOW + 10).after(3, NOW + 300)
    assert lower.replicas == 4
    assert lower.after(2, NOW + 700).replicas == 2
    assert lower.after(4, NOW + 400).after(2, NOW + 700).replicas == 4
