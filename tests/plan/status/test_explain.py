"""The story in plain text: for a placed, a waiting and a rejected object, and for damaged ones."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.plan.joint.outcome import ShadowPrice
from poolwise.plan.status.explain import explain
from tests.plan.children.given import placed_job, training_job
from tests.plan.status.test_status import SITUATIONS, live_job, told, waiting_job

PLACED = """\
llama-70b is starting on h100-ib (16 x H100-SXM5-80GB, dp2 tp8): 125 s (116-136) per step, \
67.1k tokens/s, 2G tokens, 83 h, $36,400.
  bound by   Compute; 10 % more gives: Compute +7.1 %, Host +0.4 %, Input +0.4 %; \
time: Compute 74 %, Interconnect 14 %, Bubble 12 %
  based on   fitted on runs of this accelerator
  balance    1210 FLOP per byte, the ridge is at 295: on the side of compute
  memory     61.0, at most 64.5, of 79.0 GiB per accelerator: weights 17.0, gradients 17.0, \
optimizer 13.0, activations 12.0, reserve 2.0
  cost       $36,400 and 8610 kWh in all
  why here   h100-ib finishes first
  now        pods are about to be created
  others     mi300x    no free block of 16 (largest 8); would take 125 s (116-136), 90 h, $41,000
             l40s-eth  impossible: needs 91.2 GiB per accelerator at the smallest shape, \
L40S has 44.0 usable
             odd       impossible: no label names the accelerator"""


def explained(situation):
    resource, outcome, seen = SITUATIONS[situation]
    return explain({**resource, "status": told(resource, outcome, seen=seen)})


def test_a_placed_job():
    assert explained("placed") == PLACED


@pytest.mark.parametrize(
    ("situation", "head"),
    [
        ("running", "llama-70b runs on h100-ib (16 x H100-SXM5-80GB, dp2 tp8): 125 s"),
        ("complete", "llama-70b has run on h100-ib"),
        ("failed", "llama-70b has failed on h100-ib"),
        ("waiting", "llama-70b waits for h100-ib (16 x H100-SXM5-80GB, dp2 tp8): needs 16, 8 are"),
        ("hopeless", "llama-70b runs nowhere: no pool can run it: needs 91.2 GiB"),
        ("rejected", "llama-70b is not accepted: spec.x: bad."),
        ("suspended", "llama-70b runs nowhere: spec.suspend is true."),
        ("plan only", "llama-70b is only planned, and would run on h100-ib"),
        ("serving", "assistant runs on h100-ib (3 replicas of 1 x H100-SXM5-80GB, tp1): TTFT 310"),
    ],
)
def test_first_line(situation, head):
    assert explained(situation).splitlines()[0].startswith(head)


@pytest.mark.parametrize(
    "reason",
    [
        "8 of 16 are free, needs 16; behind other work",
        "at most 8 nodes, needs 2 places: l40s-eth in rack a: has none",
    ],
)
def test_what_it_waits_for_is_told_once(reason):
    resource, outcome, seen = SITUATIONS["waiting"]
    status = told(resource, outcome, seen=seen)
    whole = f"waits for 16 free H100-SXM5-80GB in h100-ib: {reason}"
    status = {**status, "plan": {**status["plan"], "reason": whole}}
    first = explain({**resource, "status": status}).splitlines()[0]
    assert first.startswith(
        f"llama-70b waits for h100-ib (16 x H100-SXM5-80GB, dp2 tp8): {reason}. There: "
    )


def test_a_question_keeps_its_mark():
    asked = "placement.pools: there is no pool chaep; did you mean cheap?"
    status = {"plan": {"reason": asked}, "conditions": []}
    told = explain({"metadata": {"name": "odd"}, "status": status})
    assert told.splitlines()[0] == f"odd runs nowhere: {asked}"


def test_what_was_paused_before_its_first_plan_says_so():
    paused = {"type": "Paused", "status": "True", "reason": "PausedByAnnotation", "message": "held"}
    shown = explain({"metadata": {"name": "odd"}, "status": {"conditions": [paused]}})
    assert shown.splitlines()[0] == "odd runs nowhere: nothing has been planned for it."
    assert "  beware     held" in shown


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"feasible": True, "reason": "$9"}, "TTFT 310 ms: $9"),
        ({"waits": True, "reason": "is full"}, "is full; would have TTFT 310 ms"),
    ],
)
def test_the_time_of_another_pool_for_a_service_has_its_name(more, says):
    other = {"pool": "b", "predicted": {"ttftSeconds": 0.31, "e2eSeconds": 9.0}, **more}
    status = {"plan": {"pool": "a", "candidates": [other]}, "conditions": []}
    shown = explain({"metadata": {"name": "odd"}, "status": status})
    assert shown.endswith(f"others     b  {says}")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"provenance": "measured"}, "measured on this accelerator"),
        ({"provenance": "specification"}, "from data sheets: no published run to fit"),
        (
            {"correctedBy": {"training": 1.081}},
            "fitted on runs of this accelerator; corrected by what was measured: training +8.1 %",
        ),
        (
            {
                "correctedBy": {"token": 1.85},
                "correctedFrom": {"token": {"ratio": 2.35, "samples": 7}},
            },
            "fitted on runs of this accelerator; corrected by what was measured: token +85 %"
            " (token measured 2.35x of the model on h100-ib, 7 samples)",
        ),
        (
            {"provenance": "inherited", "lowConfidence": "8 accelerators talk over PCIe"},
            "fitted on runs of other accelerators; low confidence: 8 accelerators talk over PCIe",
        ),
    ],
)
def test_what_stands_behind_the_times_is_told(more, says):
    resource, outcome, seen = SITUATIONS["placed"]
    status = told(resource, outcome, seen=seen)
    status = {**status, "plan": {**status["plan"], **more}}
    assert f"  based on   {says}\n" in explain({**resource, "status": status})


def test_a_capacity_has_a_range():
    assert "up to 5.1 (4.07-6.39) requests/s per replica (limited by ITL p99)" in explained(
        "serving"
    )


def test_what_an_engine_is_told_to_do_at_once():
    says = "at most 256 sequences of up to 8,192 tokens, 2,048 tokens a step, weights in bf16"
    assert f"  engine     {says}\n" in explained("serving")
    assert "  engine  " not in explained("placed")


def test_uses_of_memory_too_small_to_tell_leave_the_sums():
    resource, outcome, seen = SITUATIONS["placed"]
    status = told(resource, outcome, seen=seen)
    small = {"neededBytes": 2**24, "mostBytes": 2**24, "usableBytes": 2**34, "weightsBytes": 2**24}
    shown = explain({**resource, "status": {**status, "plan": {**status["plan"], "memory": small}}})
    assert "  memory     0.0, at most 0.0, of 16.0 GiB per accelerator\n" in shown


def test_the_speed_of_tokens_is_told():
    resource, outcome, seen = SITUATIONS["serving"]
    status = told(resource, outcome, seen=seen)
    shown = explain({**resource, "status": {**status, "observed": {"ratio": 1.04}}})
    says = "a token takes 1.04x the time predicted at the measured batch"
    assert f"  measured   {says}\n" in f"{shown}\n"


def test_what_clients_of_its_gateway_see_is_told():
    resource, outcome, seen = SITUATIONS["serving"]
    status = told(resource, outcome, seen=seen)
    waits = {"metric": "Queue", "percentile": 99.0, "lowSeconds": 1.0, "highSeconds": 2.5}
    gateway = {"inferencePool": "chat", "heldRequests": 3.0, "signals": [waits]}
    shown = explain({**resource, "status": {**status, "scaling": {"gateway": gateway}}})
    assert "  gateway    Queue p99 1 s to 2.5 s; 3 requests held\n" in f"{shown}\n"


def test_what_replicas_do_that_was_not_planned_is_told():
    resource, outcome, seen = SITUATIONS["serving"]
    status = told(resource, outcome, seen=seen)
    wrong = {"type": "AsPlanned", "status": "False", "message": "caches were over 90 % full"}
    shown = explain({**resource, "status": {**status, "conditions": [wrong]}})
    assert "  beware     caches were over 90 % full\n" in f"{shown}\n"


@pytest.mark.parametrize(
    ("type_", "status", "is_told"),
    [
        ("Paused", "True", True),
        ("WithinBudget", "False", True),
        ("WithinBudget", "True", False),
        ("QuotaReserved", "Unknown", True),
        ("QuotaReserved", "False", False),
    ],
)
def test_what_a_user_has_to_know_of_is_told(type_, status, is_told):
    shown = explained_with({"type": type_, "status": status, "message": "mind this"})
    assert ("  beware     mind this\n" in shown) is is_told


def explained_with(*conditions, **scaling):
    resource, outcome, seen = SITUATIONS["serving"]
    status = {**told(resource, outcome, seen=seen), "conditions": list(conditions)}
    return explain({**resource, "status": {**status, "scaling": scaling}}) + "\n"


def test_how_many_replicas_it_should_have_and_why_is_told():
    assert "  replicas   2 as before: idle\n" in explained_with(reason="2 as before: idle")
    limit = {"type": "ScalingActive", "status": "True", "reason": "AtMaximum", "message": "at most"}
    assert "  replicas   8 as before; at most\n" in explained_with(limit, reason="8 as before")
    assert "  replicas  " not in explained_with()


def test_what_is_missed_or_cannot_be_seen_is_told_once():
    def is_false(type_, reason, message):
        return {"type": type_, "status": "False", "reason": reason, "message": message}

    shown = explained_with(
        is_false("SLOMet", "BeyondTargets", "TTFT p99 is above its target of 1 s"),
        is_false("MetricsAvailable", "MetricsBroken", "chat-0: answers HTML"),
        is_false("ScalingActive", "MetricsBroken", "metrics cannot be read"),
    )
    says = "TTFT p99 is above its target of 1 s. Also, chat-0: answers HTML"
    assert f"  beware     {says}\n" in shown


def test_what_keeps_pods_back_is_told():
    event = {"kind": "Event", "metadata": {}, "reason": "FailedCreate", "note": "exceeded quota"}
    shown = told(training_job(), placed_job(), seen=[live_job(), event])
    assert "now        exceeded quota" in explain({**training_job(), "status": shown})


@pytest.mark.parametrize(("hour", "says"), [(22, "done about"), (23, "was to be done about")])
def test_an_end_that_has_passed_is_no_forecast(hour, says):
    resource, outcome, seen = SITUATIONS["running"]
    status = told(resource, outcome, seen=seen)
    end = {"expectedFinishTime": "2026-11-24T23:00:00Z"}
    shown = {**resource, "status": {**status, "observed": {**status["observed"], **end}}}
    line = f"pods ready, {says} 2026-11-24T23:00:00Z"
    assert explain(shown, datetime(2026, 11, 24, hour, 1, tzinfo=UTC)).endswith(line)


def test_what_it_has_cost_is_told_up_to_the_moment():
    accrued = {
        "cost": 1320.5,
        "currency": "USD",
        "kilowattHours": 122.9,
        "acceleratorHours": 192.0,
        "until": "2026-11-21T12:00:00Z",
        "perHour": {"cost": 110.0, "kilowatts": 10.24, "accelerators": 16},
    }
    resource, outcome, seen = SITUATIONS["running"]
    status = told(resource, outcome, seen=seen)
    status["observed"]["accrued"] = accrued
    later = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
    sums = "so far $1,540, 143 kWh, 224 accelerator-hours"
    lines = explain({**resource, "status": status}, later).splitlines()
    assert f"  cost       $36,400 and 8610 kWh in all; {sums}, at $110/h and 10.2 kW" in lines
    accrued |= {"cost": 1540.5, "kilowattHours": 143.4, "acceleratorHours": 224.0}
    del accrued["perHour"]
    lines = explain({**resource, "status": status}, later).splitlines()
    assert f"  cost       $36,400 and 8610 kWh in all; {sums}" in lines


def test_what_spot_nodes_cost_it_is_told():
    shown = told(training_job(), placed_job(lost_seconds=7 * 3600.0))
    assert "kWh in all, with 7 h lost to interruptions of Spot nodes" in explain(
        {**training_job(), "status": shown}
    )


def test_scarce_pools_and_the_start_are_told():
    price = ShadowPrice(
        "h100-ib", 2.5, 38.0, "each accelerator-hour here delays the 3 that wait by 3 h"
    )
    start = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
    waiting = replace(waiting_job(), prices=(price,), expected_start=start)
    shown = told(training_job(), waiting)
    assert shown["plan"]["prices"] == [
        {
            "pool": "h100-ib",
            "perAcceleratorHour": 38.0,
            "delaySecondsPerAcceleratorSecond": 2.5,
            "reason": "each accelerator-hour here delays the 3 that wait by 3 h",
        }
    ]
    text = explain({**training_job(), "status": shown})
    assert "There: may start about 2026-11-21T14:00:00Z, 125 s" in text
    assert "  scarce     h100-ib: each accelerator-hour here delays the 3 that wait by 3 h" in text


def test_without_a_status():
    assert "no status yet" in explain(training_job())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=5,
)


@given(st.sampled_from(["predicted", "gains", "ledger", "memory", "candidates", "summary"]), JSON)
def test_a_damaged_story_does_no_harm(field, value):
    shown = told(training_job(), placed_job())
    shown["plan"][field] = value
    assert explain({**training_job(), "status": shown}).startswith("llama-70b")


@given(st.sampled_from(["observed", "plan", "conditions"]), JSON)
def test_a_damaged_status_does_no_harm(field, value):
    shown = told(training_job(), placed_job())
    assert "llama-70b" in explain({**training_job(), "status": {**shown, field: value}})


def test_what_a_run_tells_of_itself():
    resource, outcome, seen = SITUATIONS["placed"]
    status = told(resource, outcome, seen=seen)
    run = {
        "steps": 1200,
        "ofSteps": 4883,
        "stepSeconds": 131.2,
        "samples": 16,
        "lastCheckpointTime": "2026-11-24T12:00:00Z",
    }
    observed = {"ratio": 1.05, "training": run}
    text = explain({**resource, "status": {**status, "observed": observed}})
    assert (
        "  measured   131 s per step, 1.05x of the prediction (16 samples); "
        "step 1,200 of 4,883, 25 %; last checkpoint at 2026-11-24T12:00:00Z" in text
    )
    broken = {**observed, "training": {"steps": "many", "ofSteps": 0, "samples": True}}
    assert "  measured" not in explain({**resource, "status": {**status, "observed": broken}})
