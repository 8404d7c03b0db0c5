"""A waiting workload is told anew when something has changed, and not at each pass."""

from dataclasses import replace
from datetime import timedelta

import pytest

from poolwise.plan.joint.outcome import ShadowPrice
from poolwise.plan.status.steady import is_same
from tests.plan.children.given import training_job
from tests.plan.status.test_status import NOON, hopeless_job, told, waiting_job


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("may start in about 38 min", "may start in about 37 min"),
        ("may start in about 299 s", "may start in about 5 min"),
        ("scarce: $38 per accelerator-hour", "scarce: $36.20 per accelerator-hour"),
        ("loses 4.1 % against h100", "loses 4.9 % against h100"),
        ("8 of 16 are free", "8 of 16 are free"),
    ],
)
def test_figures_that_moved_a_little_say_the_same(before, after):
    assert is_same(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("may start in about 38 min", "may start in about 18 min"),
        ("8 of 16 are free", "9 of 16 are free"),
        ("2 workloads ahead of it", "3 workloads ahead of it"),
        ("scarce: $38 per accelerator-hour", "scarce: $3.80 per accelerator-hour"),
        ("loses 4 % against h100", "loses 40 % against h100"),
        ("waits for h100", "waits for h200"),
        ("$5 and 5 min", "5 min and $5"),
    ],
)
def test_what_is_otherwise_is_told(before, after):
    assert not is_same(before, after)


def waiting(minutes, **changes):
    price = ShadowPrice("h100-ib", minutes / 10, minutes, f"delays others by {minutes} min")
    reason = f"needs 16, 8 are free; may start in about {minutes} min"
    start = NOON + timedelta(minutes=minutes)
    return replace(waiting_job(), reason=reason, prices=(price,), expected_start=start, **changes)


def after(first, second, **more):
    """The statuses of two passes, one after the other."""
    before = told(training_job(), first)
    return before, told({**training_job(), "status": before}, second, **more)


def test_a_pass_that_finds_about_the_same_changes_nothing():
    before, again = after(waiting(60), waiting(55))
    assert again == before


def test_another_start_price_and_reason_are_told():
    before, again = after(waiting(60), waiting(30))
    assert before["plan"]["expectedStartTime"] == "2026-11-21T13:00:00Z"
    assert again["plan"]["expectedStartTime"] == "2026-11-21T12:30:00Z"
    assert again["plan"]["prices"][0]["perAcceleratorHour"] == 30
    assert again["plan"]["reason"].endswith("about 30 min")
    placed = [each["message"] for each in again["conditions"] if each["type"] == "Placed"]
    assert placed == [again["plan"]["reason"]]


def test_a_start_that_has_passed_is_not_kept():
    _, again = after(waiting(60), waiting(62), now=NOON + timedelta(minutes=61))
    assert again["plan"]["expectedStartTime"] == "2026-11-21T13:02:00Z"


def test_a_changed_spec_is_told_whatever_is_the_same():
    _, again = after(waiting(60), waiting(59, generation=2))
    assert again["plan"]["reason"].endswith("about 59 min")


def test_reasons_of_candidates_rest_each_by_itself():
    first = hopeless_job()
    moved = [replace(each, reason="would take 90 min") for each in first.candidates]
    plan = replace(first, candidates=tuple(moved))
    other = [replace(each, reason="would take 91 min") for each in moved[1:]]
    changed = replace(moved[0], reason="would take 180 min")
    _, again = after(plan, replace(plan, candidates=(changed, *other)))
    reasons = {each["reason"] for each in again["plan"]["candidates"]}
    assert reasons == {"would take 90 min", "would take 180 min"}
