"""How conditions are kept over time."""

from datetime import UTC, datetime, timedelta

import pytest

from poolwise.plan.conditions import MESSAGE_LIMIT, Type, condition, merged
from poolwise.plan.reading import is_true

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)


def ready(status, reason="Running", message="all run"):
    return condition(Type.READY, status, reason, message)


def test_a_new_condition_begins_now():
    (shown,) = merged([], [ready(True)], 3, NOON)
    assert shown == {
        "type": "Ready",
        "status": "True",
        "observedGeneration": 3,
        "lastTransitionTime": "2026-11-21T12:00:00Z",
        "reason": "Running",
        "message": "all run",
    }


@pytest.mark.parametrize(
    ("then", "since"),
    [
        pytest.param(ready(True, "PartlyReady", "most run"), "12:00", id="words change"),
        pytest.param(ready(False), "12:05", id="status changes"),
        pytest.param(ready(None), "12:05", id="status gets unknown"),
    ],
)
def test_transition_time_moves_with_the_status_only(then, since):
    before = merged([], [ready(True)], 1, NOON)
    (shown,) = merged(before, [then], 2, LATER)
    assert since in shown["lastTransitionTime"]


def test_merging_again_changes_nothing():
    before = merged([], [ready(True), condition(Type.PLACED, True, "Placed", "")], 1, NOON)
    wanted = [condition(Type.PLACED, True, "Placed", ""), ready(True)]
    assert merged(before, wanted, 1, LATER) == before


def test_order_is_fixed_and_unwanted_are_gone():
    before = merged([], [condition(Type.PAUSED, True, "PausedByAnnotation", "")], 1, NOON)
    shown = merged(before, [ready(True), condition(Type.ACCEPTED, True, "Valid", "")], 1, LATER)
    assert [each["type"] for each in shown] == ["Accepted", "Ready"]


@pytest.mark.parametrize("damaged", [[None], ["x"], [{}], [{"type": "Ready", "status": "True"}]])
def test_a_damaged_status_does_no_harm(damaged):
    (shown,) = merged(damaged, [ready(True)], 1, NOON)
    assert shown["lastTransitionTime"] == "2026-11-21T12:00:00Z"


def test_messages_are_one_bounded_line():
    shown = condition(Type.READY, False, "CrashLoop", "a\n\x1b[31m" + "x" * 10_000)
    assert "\n" not in shown.message and "\x1b" not in shown.message
    assert len(shown.message) == MESSAGE_LIMIT


def test_is_true():
    conditions = merged([], [ready(True), condition(Type.FAILED, False, "Failed", "")], 1, NOON)
    assert is_true({"conditions": conditions}, Type.READY)
    assert not is_true({"conditions": conditions}, Type.FAILED)
    assert not is_true({"conditions": [None, {"type": "Ready"}]}, Type.READY)
