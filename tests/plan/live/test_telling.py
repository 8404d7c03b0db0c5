"""What a user reads of scaling: complete, bounded, and at rest while nothing happens."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.api.scaling_status import ScalingStatus
from poolwise.plan.conditions import Reason, timestamp
from poolwise.plan.live.look import Mode, Rival, Standstill
from poolwise.plan.live.mismatch.clue import Mismatch
from poolwise.plan.live.telling import DECISIONS_KEPT, measured
from poolwise.plan.scaling.decision import Forecast, Remark
from tests.plan.live.given import ITL, NOW, TTFT, decision, look, signal


def told(given_look, before=None):
    return measured(given_look, before or {}).scaling


def conditions(given_look):
    return {each.type: each for each in measured(given_look, {}).conditions}


def later(seconds):
    return NOW + timedelta(seconds=seconds)


def test_all_that_a_decision_knows_is_told():
    scaling = told(look(4, held=3))
    assert scaling["desiredReplicas"] == 4
    assert scaling["limiting"] == "TTFT p99"
    assert scaling["forecast"] == {"low": 3, "mid": 4, "high": 5}
    assert scaling["signals"][0] == {
        "metric": "TTFT",
        "percentile": 99,
        "targetSeconds": 2,
        "lowSeconds": 0.5,
        "highSeconds": 0.75,
        "samples": 5000,
        "lateShareLow": 0.001,
        "lateShareHigh": 0.004,
    }
    assert scaling["predicted"][0]["tails"] == [
        {"replicas": 2},
        {"replicas": 3, "seconds": 1.2},
        {"replicas": 4, "seconds": 0.7},
    ]
    [decided] = scaling["decisions"]
    assert (decided["from"], decided["to"], decided["reason"]) == (3, 4, "4 replicas")
    ScalingStatus.model_validate(scaling)
    json.dumps(scaling, allow_nan=False)


def test_what_was_told_without_its_time_is_told_anew():
    before = told(look(3))
    again = look(3, now=later(5))
    assert told(again, before) == before
    timeless = {name: value for name, value in before.items() if name != "time"}
    assert told(again, timeless)["time"] == timestamp(later(5))


@pytest.mark.parametrize(
    ("then", "wanted", "changes"),
    [
        (22, 8, [(22, 8, "scaling.maxReplicas is 8")]),
        (22, 2, [(8, 2, "2 replicas"), (22, 8, "scaling.maxReplicas is 8")]),
        (1, 3, [(1, 3, "scaling.minReplicas is 3")]),
        (1, 5, [(3, 5, "5 replicas"), (1, 3, "scaling.minReplicas is 3")]),
        (0, 3, [(0, 3, "3 replicas")]),
        (1, 2, [(1, 2, "scaling.minReplicas is 3")]),
        (4, 6, [(4, 6, "6 replicas")]),
    ],
)
def test_what_the_users_limits_made_of_the_number_is_told_as_theirs(then, wanted, changes):
    """What is left is the look's."""
    before = {**told(look(then, held=then)), "decisions": []}
    now = replace(look(wanted, held=wanted, now=later(10)), least=3, most=8)
    made = [(each["from"], each["to"], each["reason"]) for each in told(now, before)["decisions"]]
    assert made == changes


def test_a_new_service_whose_pods_are_not_there_yet_was_not_scaled_up():
    assert told(look(2, held=0, by_pool={"near": 2}))["decisions"] == []
    [decided] = told(look(3, held=0, by_pool={"near": 2}))["decisions"]
    assert (decided["from"], decided["to"]) == (2, 3)


def test_a_number_that_nobody_told_anything_for_is_not_said_to_follow_the_load():
    active = conditions(look(1, told=0))["ScalingActive"]
    assert (active.status, active.reason) == (True, Reason.NOT_MEASURED)
    assert conditions(look(1, told=1))["ScalingActive"].reason == Reason.FOLLOWS_LOAD
    for hears in ("is_asleep", "is_heard"):  # from its gateway
        heard = replace(look(1, told=0), **{hears: True})
        assert conditions(heard)["ScalingActive"].reason == Reason.FOLLOWS_LOAD


@pytest.mark.parametrize("failing", [{}, {"chat-0": "no answer"}], ids=["never", "no-more"])
def test_a_maximum_below_what_nobody_can_look_at_is_told_as_no_load(failing):
    at_most = look(1, told=0, failing=failing, remarks={Remark.AT_MAXIMUM: "30 would stay"})
    active = conditions(at_most)["ScalingActive"]
    assert "scaling.maxReplicas allows no more" in active.message
    assert "load" not in active.message
    assert told(at_most)["remarks"] == ["AtMaximum"]


@pytest.mark.parametrize("failing", [{}, {"chat-0": "no answer"}], ids=["never", "no-more"])
def test_no_metrics_are_no_lack_of_requests(failing):
    nothing = (signal(low=None, high=None, samples=0.0, late=None),)
    silent = look(2, told=0, failing=failing, signals=nothing)
    assert conditions(silent)["SLOMet"].reason == Reason.NOT_MEASURED
    quiet = look(2, told=2, signals=nothing)
    assert conditions(quiet)["SLOMet"].reason == Reason.TOO_FEW_SAMPLES


def test_what_another_autoscaler_sets_is_no_decision_of_ours():
    before = told(look(1, held=1))
    after = told(
        look(1, held=4, conflict=Rival("HorizontalPodAutoscaler theirs"), now=later(10)), before
    )
    assert (after["desiredReplicas"], after["decisions"]) == (4, [])


def test_in_the_mode_off_what_is_measured_is_told_and_no_number():
    earlier = told(look(4, held=3))
    scaling = told(look(5, held=3, mode=Mode.OFF, now=later(10)), earlier)
    of_the_number = {"desiredReplicas", "reason", "predicted", "costPerHour", "decisions"}
    assert scaling.keys() == earlier.keys() - of_the_number
    assert scaling["mode"] == "Off" and scaling["signals"] == earlier["signals"]
    [again] = told(look(5, held=3, now=later(20)), scaling)["decisions"]
    assert (again["from"], again["to"]) == (3, 5)
    ScalingStatus.model_validate(scaling)


def test_the_ratio_of_tokens_is_told_along_with_the_rest():
    first = measured(replaced(look(4, held=3), token_ratio=1.0437), {})
    assert first.observed == {"ratio": 1.04}
    assert measured(look(4, held=3), {}).observed == {}
    moved_alone = replaced(look(4, held=4), token_ratio=1.2)
    before = measured(look(4, held=4), {}).scaling
    assert measured(moved_alone, before).observed == {}


def replaced(given_look, **changes):
    return replace(given_look, decision=replace(given_look.decision, **changes))


def test_the_last_ten_changes_are_kept_the_newest_first():
    scaling: Any = {}
    held = 1
    for turn in range(15):
        scaling = told(look(turn + 2, held=held, now=later(turn)), scaling)
        held = turn + 2
    assert [each["to"] for each in scaling["decisions"]] == list(range(16, 16 - DECISIONS_KEPT, -1))


def test_nothing_is_written_while_figures_move_a_little():
    before = told(look())
    near = Forecast(0.0, 3.1, 4.2, 5.3)
    assert told(look(now=later(600), forecast=near), before) == before


def test_figures_that_moved_much_are_told_after_a_rest():
    before = told(look())
    far = Forecast(0.0, 6.0, 9.0, 12.0)
    assert told(look(now=later(240), forecast=far, memory="now"), before) == before
    after = told(look(now=later(300), forecast=far), before)
    assert after["forecast"]["mid"] == 9


def test_words_that_changed_are_told_after_a_shorter_rest():
    before = told(look(limiting="KV cache"))
    assert told(look(now=later(50), limiting="prefill"), before) == before
    assert told(look(now=later(60), limiting="prefill"), before)["limiting"] == "prefill"


def test_what_was_told_by_a_clock_that_was_ahead_is_told_anew():
    before = told(look(now=later(7200)))
    after = told(look(forecast=Forecast(0.0, 6.0, 9.0, 12.0)), before)
    assert after["forecast"]["mid"] == 9


def test_another_number_is_told_at_once():
    before = told(look())
    assert told(look(4, held=3, now=later(1)), before)["desiredReplicas"] == 4


def test_late_requests_are_told_though_their_share_is_small():
    before = told(look())
    late = (signal(late=(0.03, 0.05)), signal(ITL, 0.02, 0.025))
    after = told(look(now=later(300), signals=late), before)
    assert after["signals"][0]["lateShareHigh"] == 0.05


@pytest.mark.parametrize(
    ("signals", "status", "reason"),
    [
        ((signal(),), True, Reason.WITHIN_TARGETS),
        ((signal(low=2.5, high=5.0, late=(0.2, 0.2)),), False, Reason.BEYOND_TARGETS),
        ((signal(low=1.0, high=2.5, late=(0.0, 0.05)),), None, Reason.TOO_FEW_SAMPLES),
        ((signal(low=1.0, high=2.5, late=(0.02, 0.05)),), False, Reason.BEYOND_TARGETS),
        ((signal(low=1.0, high=2.5, late=(0.005, 0.005)),), True, Reason.WITHIN_TARGETS),
        ((signal(late=None),), True, Reason.WITHIN_TARGETS),
        ((signal(low=2.5, high=5.0, late=None),), False, Reason.BEYOND_TARGETS),
        ((signal(low=None, high=None, late=None),), None, Reason.TOO_FEW_SAMPLES),
        ((signal(), signal(ITL, None, None, 3, None)), None, Reason.TOO_FEW_SAMPLES),
        ((), None, Reason.NOT_MEASURED),
    ],
)
def test_targets_are_judged_by_bounds(signals, status, reason):
    found = conditions(look(signals=signals))["SLOMet"]
    assert (found.status, found.reason) == (status, reason)


def test_where_the_number_stands_still_nothing_is_judged_and_both_say_why():
    why = Standstill(Reason.DECISION_FAILED, "the decision failed")
    found = conditions(replace(look(), standstill=why))
    met, active = found["SLOMet"], found["ScalingActive"]
    assert (met.status, met.reason, met.message) == (None, Reason.NOT_MEASURED, why.message)
    assert (active.status, active.reason, active.message) == (False, why.reason, why.message)


def test_a_target_below_the_floor_is_unreachable():
    words = "TTFT p99 is 0.05 s, and a lone request takes 0.21 s"
    found = conditions(look(remarks={Remark.SLO_UNREACHABLE: words}))["SLOMet"]
    assert (found.status, found.reason, found.message) == (False, Reason.SLO_UNREACHABLE, words)


def test_metrics_that_fail_are_told_by_name():
    found = conditions(look(failing={"chat-1": "answers HTTP 500", "chat-0": "no answer"}))
    assert found["MetricsAvailable"].status is False
    assert found["MetricsAvailable"].message.startswith("chat-0: no answer; and 1 more replica")
    assert found["ScalingActive"].reason == Reason.METRICS_BROKEN


def test_a_rival_is_refused_and_the_number_stays():
    rivalled = look(5, held=3, conflict=Rival("HorizontalPodAutoscaler hpa (on Deployment chat)"))
    found = conditions(rivalled)["ScalingActive"]
    assert (found.status, found.reason) == (False, Reason.AUTOSCALER_CONFLICT)
    assert told(rivalled)["desiredReplicas"] == 3


@pytest.mark.parametrize(
    ("remark", "reason"),
    [
        (Remark.AT_MAXIMUM, Reason.AT_MAXIMUM),
        (Remark.AT_CAPACITY, Reason.AT_CAPACITY),
        (Remark.STARTS_PACED, Reason.STARTS_PACED),
    ],
)
def test_what_holds_it_back_is_the_reason(remark, reason):
    found = conditions(look(remarks={remark: "9 replicas"}))["ScalingActive"]
    assert (found.status, found.reason) == (True, reason)
    assert not any(letter.isdigit() for letter in found.message)


def test_a_service_that_is_not_scaled_has_no_such_condition():
    assert "ScalingActive" not in conditions(look(mode=Mode.OFF))


def test_before_anything_was_read_nothing_is_known():
    found = conditions(look(held=3, told=0, signals=()))["MetricsAvailable"]
    assert (found.status, found.reason) == (None, Reason.NOT_MEASURED)


@given(
    st.floats(0, 1e6),
    st.floats(0, 1e6, allow_nan=False),
    st.integers(0, 10_000),
    st.lists(st.floats(0.0, 1.0), min_size=2, max_size=2),
)
def test_what_is_told_is_the_same_when_it_is_told_again(rate, seconds, replicas, shares):
    late = (min(shares), max(shares))
    seen = look(
        replicas,
        forecast=Forecast(0.0, rate / 2, rate, rate * 2),
        signals=(signal(TTFT, seconds, seconds * 2, late=late),),
    )
    first = measured(seen, {})
    again = measured(
        look(replicas, now=later(5), forecast=seen.decision.forecast, signals=seen.signals),
        first.scaling,
    )
    assert again.scaling == first.scaling
    json.dumps(first.scaling, allow_nan=False)


def test_replicas_that_do_as_planned_say_so():
    found = conditions(look())["AsPlanned"]
    assert (found.status, found.reason) == (True, Reason.NO_MISMATCH)
    assert "mismatches" not in told(look())


def test_what_is_not_as_planned_has_the_first_reason_and_all_sentences():
    both = [(Mismatch.PREEMPTIONS, "preempted 40 times"), (Mismatch.CACHE_PRESSURE, "caches full")]
    given_look = look(mismatches=both)
    found = conditions(given_look)["AsPlanned"]
    assert (found.status, found.reason) == (False, Reason.PREEMPTIONS)
    assert found.message == "preempted 40 times. Also, caches full"
    assert told(given_look)["mismatches"] == ["Preemptions", "KVCachePressure"]


def test_every_mismatch_is_a_reason():
    for kind in Mismatch:
        assert conditions(look(mismatches=[(kind, "so")]))["AsPlanned"].reason == Reason(kind)


def test_a_new_mismatch_is_told_at_once_with_what_was_learned():
    before = told(look(memory="then"))
    after = told(look(memory="now", mismatches=[(Mismatch.PREEMPTIONS, "x")], now=later(1)), before)
    assert after["memory"] == "now"


@pytest.mark.parametrize(("seconds", "kept"), [(10, "then"), (600, "then"), (1000, "now")])
def test_what_was_learned_is_told_anew_now_and_then(seconds, kept):
    before = told(look(memory="then"))
    assert told(look(memory="now", now=later(seconds)), before)["memory"] == kept
    ScalingStatus.model_validate(before)


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        (Mode.DIRECT, "the number of replicas follows the load"),
        (
            Mode.EXTERNAL,
            "the number of replicas is published as a metric; spec.replicas is followed",
        ),
    ],
)
def test_who_follows_the_load_is_said_by_mode(mode, message):
    active = conditions(look(mode=mode))["ScalingActive"]
    assert (active.status, active.reason, active.message) == (True, "FollowsLoad", message)


FAILING = {"chat-0": "no answer within 3 s"}


@pytest.mark.parametrize(
    ("mode", "metrics", "active"),
    [
        (
            Mode.DIRECT,
            ": the number of replicas does not fall",
            "replicas may be added, none is removed",
        ),
        (
            Mode.EXTERNAL,
            ": the published number of replicas does not fall",
            "the published number of replicas does not fall",
        ),
        (Mode.OFF, "", None),
    ],
)
def test_what_broken_metrics_mean_is_said_for_who_sets_the_number(mode, metrics, active):
    found = conditions(look(mode=mode, failing=FAILING))
    assert found["MetricsAvailable"].message == f"chat-0: no answer within 3 s{metrics}"
    broken = found.get("ScalingActive")
    told_active = f"metrics of replicas cannot be read: {active}" if active else None
    assert (broken.message if broken else None) == told_active


def test_a_load_that_nobody_told_is_no_reason():
    assert told(look(3, told=0))["reason"] == "3 as before: no replica reports metrics"
    assert told(replace(look(3, told=0), missed=1))["reason"] == decision(3).reason
