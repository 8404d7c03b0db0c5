"""Whether requests are held, by what was told and for how long nobody told anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.plan.conditions import Reason
from poolwise.plan.gateway.fronts import Front
from poolwise.plan.gateway.holding import PATIENCE_SECONDS, Trust, holding
from poolwise.plan.gateway.pools import InferencePool
from poolwise.plan.gateway.reading import PickerTold
from poolwise.plan.gateway.zero import Zero
from poolwise.plan.scaling.controller import idle_seconds
from poolwise.plan.signals.adapters import Fault

FRONT = Front(InferencePool("chat", {"a": "b"}, "epp"))
SILENT = Fault("no answer within 3 s")


def good(held=0.0, pool="chat"):
    return PickerTold("epp-0", 0.0, True, {pool: held}, frozenset({pool}))


def after(*looks, front=FRONT, every=10.0):
    """What is known after looks, one each so many seconds."""
    trust, found = Trust(), None
    for index, look in enumerate(looks):
        found, trust = holding(front, look, trust, index * every)
    assert found is not None
    return found


def test_every_picker_that_tells_of_flow_control_holds():
    found = after([good(2.0), good(1.0)])
    assert (found.holds, found.is_told, found.held_requests) == (True, True, 3.0)
    assert found.reason is Reason.HOLDS_REQUESTS


def test_one_of_them_that_is_silent_leaves_it_open_and_its_queue_counts():
    found = after([good(2.0), SILENT])
    assert (found.holds, found.is_told, found.held_requests) == (None, False, 2.0)


def test_silence_counts_only_once_it_lasts():
    lasting = int(PATIENCE_SECONDS / 10.0)
    found = after([good()], *[[SILENT]] * lasting)
    assert (found.holds, found.is_told) == (True, False)
    found = after([good()], *[[SILENT]] * (lasting + 1))
    assert (found.holds, found.reason) == (False, Reason.PICKER_SILENT)
    assert "no answer within 3 s" in found.message
    assert after(*[[SILENT]] * lasting).holds is None
    assert after(*[[SILENT]] * 9, [good()]).holds is True


def test_whom_nobody_picks_for_waits_in_the_same_way():
    found = after([good()], *["no pod of Service epp is ready"] * 5)
    assert (found.holds, found.reason) == (False, Reason.NO_ENDPOINT_PICKER)


@pytest.mark.parametrize(
    ("look", "reason", "told"),
    [
        (
            Fault("answers HTTP 401 instead of metrics", asks_for_login=True),
            Reason.PICKER_REFUSES,
            "--metrics-endpoint-auth=false",
        ),
        (
            Fault("Prometheus cannot be queried: it answers HTTP 401"),
            Reason.PICKER_SILENT,
            "Prometheus cannot be queried",
        ),
        (Fault("answers HTTP 500 instead of metrics"), Reason.PICKER_SILENT, "HTTP 500"),
        (
            PickerTold("e", 0.0, False),
            Reason.HOLDING_NOT_TOLD,
            "no metrics of a queue: turn on",
        ),
        (
            PickerTold("e", 0.0, False, {"chat": 0.0}),
            Reason.HOLDING_NOT_TOLD,
            "the length of its queue, but no",
        ),
        (good(pool="other"), Reason.HOLDING_NOT_TOLD, "serves metrics of InferencePool other only"),
    ],
)
def test_what_stands_against_it_is_one_sentence_with_what_to_do(look, reason, told):
    found = after(*[[look]] * 5)
    assert (found.holds, found.reason) == (False, reason)
    assert told in found.message


@pytest.mark.parametrize("reason", [Reason.NOTHING_HOLDS_REQUESTS, Reason.SHARED_INFERENCE_POOL])
def test_what_objects_say_counts_at_once(reason):
    found = after([good()], [good(5.0)], front=Front(FRONT.pool, reason, "there is none"))
    assert found.held_requests == 0.0
    assert (found.holds, found.reason, found.message) == (False, reason, "there is none")


looks = st.one_of(
    st.just("no pod is ready"),
    st.lists(
        st.sampled_from([good(), good(5.0), SILENT, PickerTold("e", 0.0, False)]),
        min_size=1,
        max_size=3,
    ),
)


@given(st.lists(looks, min_size=1, max_size=12), st.sampled_from([1.0, 10.0, 40.0]))
def test_only_good_word_from_all_of_them_lets_the_last_replica_go(told, every):
    found = after(*told, every=every)
    *_, last = told
    is_good = isinstance(last, list) and all(
        isinstance(each, PickerTold) and each.runs_flow_control for each in last
    )
    assert found.is_told is is_good
    awake = Zero(found, False, 60.0, 0, 1.0)
    asleep = Zero(found, True, 60.0, 0, 1.0)
    assert awake.may_fall is is_good
    assert asleep.may_fall or found.holds is False
    assert not Zero(found, True, 60.0, 1, 1.0).may_fall


def test_conditions_say_what_it_costs_to_wake():
    found = after([good()])
    awake = Zero(found, False, 120.0, 0, 1.0).condition()
    assert (awake.status, awake.reason) == (True, "HoldsRequests")
    assert "after 10 min without any the last one leaves" in awake.message
    asleep = Zero(found, True, 95.0, 0, 1.0).condition()
    assert (asleep.status, asleep.reason) == (True, "Asleep")
    assert "about 95 s" in asleep.message
    above = Zero(found, False, 95.0, 1, 1.0).condition()
    assert (above.status, above.reason) == (False, "MinimumIsAboveZero")
    unknown = Zero(after([SILENT]), False, 95.0, 0, 1.0).condition()
    assert (unknown.status, unknown.reason) == (None, "NotMeasured")


@pytest.mark.parametrize(
    ("start_seconds", "expected"), [(5.0, 300.0), (60.0, 300.0), (120.0, 600.0), (900.0, 1800.0)]
)
def test_the_longer_a_start_the_longer_it_waits_before_it_sleeps(start_seconds, expected):
    assert idle_seconds(start_seconds) == expected
