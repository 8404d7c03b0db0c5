"""What is left of a run: never nothing, and a text that seldom changes."""

import itertools
import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from poolwise.plan.decision import Key, Kind
from poolwise.plan.steps.remaining import about, ends, remaining_seconds

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR = 3600.0


def run(total=10 * HOUR, low=9.0, high=11.0, elapsed=None, **spec):
    started = None if elapsed is None else (NOW - timedelta(seconds=elapsed)).isoformat()
    plan = {"totalSeconds": total, "predicted": {"stepSecondsLow": low, "stepSecondsHigh": high}}
    return {
        "metadata": {"namespace": "research", "name": "run"},
        "spec": spec,
        "status": {"plan": plan, "observed": {"startTime": started} if started else {}},
    }


def test_a_run_that_has_not_started_has_all_before_it():
    left = remaining_seconds(run(), NOW)
    assert left is not None
    assert left.mid == 10 * HOUR
    assert left.low < left.mid < left.high


@pytest.mark.parametrize("hours", [4, 5])
def test_a_run_that_goes_as_predicted_counts_down(hours):
    left = remaining_seconds(run(elapsed=hours * HOUR), NOW)
    assert left is not None
    assert left.mid == pytest.approx((10 - hours) * HOUR, rel=1e-6)


def test_a_run_that_is_overdue_ends_soon_and_never_at_once():
    left = remaining_seconds(run(elapsed=10.5 * HOUR), NOW)
    assert left is not None
    assert 0.0 < left.low < left.mid < left.high < 2 * HOUR
    late = remaining_seconds(run(elapsed=100 * HOUR), NOW)
    assert late is not None
    assert 0.0 < late.mid < late.high


@pytest.mark.parametrize("low", [1e-308, 5e-324])
def test_a_range_that_tells_nothing_leaves_a_time_that_can_be_told(low):
    left = remaining_seconds(run(low=low, elapsed=HOUR), NOW)
    assert left is not None
    assert 0.0 < left.mid < left.high < math.inf
    assert about(left.high).startswith("about")


def test_a_deadline_ends_it_in_any_case():
    left = remaining_seconds(run(elapsed=4 * HOUR, activeDeadlineSeconds=5 * 3600), NOW)
    assert left is not None
    assert (left.mid, left.high) == (HOUR, HOUR)
    unknown = run(elapsed=4 * HOUR, activeDeadlineSeconds=5 * 3600)
    del unknown["status"]["plan"]
    bounded = remaining_seconds(unknown, NOW)
    assert bounded is not None
    assert (bounded.low, bounded.mid) == (0.0, HOUR)


@pytest.mark.parametrize(
    "status",
    [{}, {"plan": None}, {"plan": {"totalSeconds": "soon"}}, {"plan": {"totalSeconds": -1}}, None],
)
def test_what_nobody_predicted_is_not_known(status):
    assert remaining_seconds({"metadata": {}, "spec": {}, "status": status}, NOW) is None


def test_damaged_figures_are_no_figures():
    broken = run(low="x", high=None)
    broken["status"]["observed"] = {"startTime": "yesterday"}
    left = remaining_seconds(broken, NOW)
    assert left is not None
    assert left.mid == 10 * HOUR


def test_ends_of_all_that_are_known():
    found = ends([run(), {"metadata": {"namespace": "research", "name": "other"}}], NOW)
    assert list(found) == [Key(Kind.TRAINING_JOB, "research", "run")]


amounts = st.floats(1.0, 1e8)


@given(amounts, st.floats(1.01, 4.0), st.floats(0.0, 1e9))
def test_what_is_left_is_positive_and_in_order(total, width, elapsed):
    left = remaining_seconds(run(total, 1.0, width**2, elapsed=elapsed), NOW)
    assert left is not None
    assert 0.0 <= left.low <= left.mid <= left.high < math.inf
    assume(elapsed < 1e3 * total)
    assert left.high > 0.0


@given(amounts, st.floats(1.01, 4.0), st.floats(0.0, 3.0), st.floats(0.0, 3.0))
def test_it_ends_no_earlier_for_having_gone_on(total, width, one, other):
    first, then = sorted((one, other))
    ends_at = []
    for elapsed in (first * total, then * total):
        left = remaining_seconds(run(total, 1.0, width**2, elapsed=elapsed), NOW)
        assert left is not None
        ends_at.append(elapsed + left.mid)
    assert ends_at[0] <= ends_at[1] * (1 + 1e-6) + 1e-3


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "a few minutes"),
        (100.0, "a few minutes"),
        (300.0, "about 5 min"),
        (2700.0, "about 40 min"),
        (4000.0, "about 1 h"),
        (28_800.0, "about 8 h"),
        (40_000.0, "about 12 h"),
        (100_000.0, "about 1 d"),
        (600_000.0, "about 8 d"),
        (3e8, "about 4096 d"),
    ],
)
def test_times_are_told_roughly(seconds, text):
    assert about(seconds) == text


def test_a_text_changes_a_score_of_times_while_four_days_count_down():
    texts = [about(4 * 86_400.0 - passed) for passed in range(0, 4 * 86_400, 60)]
    changes = sum(one != other for one, other in itertools.pairwise(texts))
    assert changes == len(set(texts)) - 1 <= 18
