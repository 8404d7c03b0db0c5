"""Idle, unknown and broken are three things."""

from poolwise.plan.signals.state import State, load_of
from poolwise.plan.signals.window import Delta, WentBack

FLAT = Delta(0, 15, 15, finished_requests=0)
MOVED = Delta(0, 15, 15, finished_requests=3)
BACK = WentBack("b", "finished_requests", 100, 90)


def test_healthy_flat_counters_are_idle():
    assert load_of({"a": [FLAT], "b": [FLAT]}, {}).state is State.IDLE


def test_running_requests_are_not_idle():
    assert load_of({"a": [FLAT]}, {}, busy={"a"}).state is State.LIVE


def test_nothing_told_is_unknown():
    assert load_of({}, {}).state is State.UNKNOWN
    some = load_of({"a": [FLAT], "b": []}, {})
    assert some.state is State.UNKNOWN
    assert "b" in some.reason


def test_no_counter_at_all_is_not_idle():
    assert load_of({"a": [Delta(0, 15, 15)]}, {}).state is not State.IDLE


def test_what_cannot_be_read_is_broken_and_the_rest_is_a_lower_bound():
    load = load_of({"a": [MOVED]}, {"b": "b: no answer within 5 s"})
    assert (load.state, load.reason) == (State.BROKEN, "b: no answer within 5 s")
    assert load.delta is not None
    assert load.delta.finished_requests == 3


def test_going_back_is_broken_until_a_span_is_good_again():
    assert load_of({"a": [MOVED], "b": [MOVED, BACK]}, {}).state is State.BROKEN
    assert load_of({"a": [MOVED], "b": [BACK, MOVED]}, {}).state is State.LIVE


def test_many_reasons_are_one_bounded_sentence():
    reason = load_of({}, {f"pod-{n}": f"pod-{n}: refused" for n in range(200)}).reason
    assert reason.endswith("; and 197 more")
