"""The status of a workload in every situation, and that telling it again changes nothing."""

import copy
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from poolwise.api.status import InferenceServiceStatus, TrainingJobStatus
from poolwise.model.work import ServingLayout
from poolwise.plan.children.manifests import children, record_of
from poolwise.plan.conditions import Type
from poolwise.plan.decision import Candidate, Plan, Rejection
from poolwise.plan.joint.outcome import ShadowPrice
from poolwise.plan.live.telling import MeasuredStatus
from poolwise.plan.names import PAUSED
from poolwise.plan.status.pods import Live
from poolwise.plan.status.workload import CANDIDATE_LIMIT, status
from poolwise.settings import Settings
from tests.plan.children.given import (
    JOB,
    JOB_UID,
    h100_pool,
    losers,
    placed_job,
    placed_service,
    service,
    training_job,
)

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
POOL = h100_pool()


def live_job(**status):
    job = children(training_job(), placed_job(), POOL, Settings())[-1]
    return {**job, "status": status}


def live_deployment(**status):
    plan = placed_service(POOL, ServingLayout())
    return {**children(service(), plan, POOL, Settings())[-1], "status": status}


def kept(plan):
    return replace(plan, kept=True, record=record_of(plan, POOL, Settings()), candidates=())


def waiting_job():
    plan = placed_job()
    reason = "needs 16, 8 are free; waits for research/other"
    return replace(
        plan, placed=False, claim=None, reason=reason, reason_code="InsufficientCapacity"
    )


def hopeless_job():
    return Plan(
        key=JOB,
        uid=JOB_UID,
        generation=1,
        placed=False,
        reason="no pool can run it: needs 91.2 GiB per accelerator, the largest has 79.0",
        reason_code="NoFeasiblePool",
        chosen=None,
        candidates=losers(),
    )


def told(resource, outcome, *, seen=(), pods=(), now=NOON, pool=POOL):
    pools = {pool.name: pool} if pool else {}
    return status(resource, outcome, pools, Live(list(seen), list(pods)), now)


def conditions_of(shown):
    return {each["type"]: (each["status"], each["reason"]) for each in shown["conditions"]}


def message_of(shown, type_):
    return next(each["message"] for each in shown["conditions"] if each["type"] == type_)


START = "2026-11-21T12:00:00Z"
RUNNING = {"ready": 2, "active": 2, "startTime": "2026-11-21T12:00:00Z"}
COMPLETE = {
    "succeeded": 2,
    "completionTime": "2026-11-24T23:00:00Z",
    "conditions": [{"type": "Complete", "status": "True", "reason": "CompletionsReached"}],
}
FAILED = {
    "failed": 3,
    "conditions": [
        {"type": "Failed", "status": "True", "reason": "FailedIndexes", "message": "index 1 failed"}
    ],
}
SITUATIONS = {
    "placed": (training_job(), placed_job(), []),
    "running": (training_job(), kept(placed_job()), [live_job(**RUNNING)]),
    "complete": (training_job(), kept(placed_job()), [live_job(**COMPLETE)]),
    "failed": (training_job(), kept(placed_job()), [live_job(**FAILED)]),
    "waiting": (training_job(), waiting_job(), []),
    "hopeless": (training_job(), hopeless_job(), []),
    "rejected": (training_job(), Rejection(JOB, JOB_UID, 1, "InvalidSpec", "spec.x: bad"), []),
    "suspended": (training_job(suspend=True), replace(hopeless_job(), candidates=()), []),
    "plan only": (training_job(mode="Plan"), placed_job(), []),
    "service": (service(), placed_service(POOL, ServingLayout()), []),
    "serving": (
        service(),
        kept(placed_service(POOL, ServingLayout())),
        [live_deployment(replicas=3, readyReplicas=3, updatedReplicas=3)],
    ),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_telling_it_again_changes_nothing(situation):
    resource, outcome, seen = SITUATIONS[situation]
    first = told(resource, outcome, seen=seen)
    again = told({**resource, "status": first}, outcome, seen=seen, now=LATER)
    assert again == first


@pytest.mark.parametrize("situation", SITUATIONS)
def test_survives_the_api_server_and_its_schema(situation):
    resource, outcome, seen = SITUATIONS[situation]
    shown = told(resource, outcome, seen=seen)
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    model = TrainingJobStatus if resource["kind"] == "TrainingJob" else InferenceServiceStatus
    model.model_validate(shown)


@pytest.mark.parametrize(
    ("situation", "ready", "reconciling", "stalled"),
    [
        ("placed", ("False", "Starting"), "True", "False"),
        ("running", ("True", "Running"), "False", "False"),
        ("complete", ("True", "Completed"), "False", "False"),
        ("failed", ("False", "Failed"), "False", "True"),
        ("waiting", ("False", "InsufficientCapacity"), "True", "False"),
        ("hopeless", ("False", "NoFeasiblePool"), "False", "True"),
        ("rejected", ("False", "InvalidSpec"), "False", "True"),
        ("suspended", ("False", "Suspended"), "False", "False"),
        ("plan only", ("True", "PlanOnly"), "False", "False"),
        ("serving", ("True", "Running"), "False", "False"),
    ],
)
def test_ready_in_one_word(situation, ready, reconciling, stalled):
    resource, outcome, seen = SITUATIONS[situation]
    shown = conditions_of(told(resource, outcome, seen=seen))
    assert shown["Ready"] == ready
    assert (shown["Reconciling"][0], shown["Stalled"][0]) == (reconciling, stalled)


PULLING = {
    "metadata": {"name": "chat-new-0", "uid": "new"},
    "status": {
        "containerStatuses": [{"name": "engine", "state": {"waiting": {"reason": "ErrImagePull"}}}]
    },
}


@pytest.mark.parametrize(
    ("is_paused", "pods", "ready", "reconciling", "stalled"),
    [
        (False, [], ("False", "Updating"), "True", "False"),
        (True, [], ("False", "RolloutPaused"), "False", "True"),
        (False, [PULLING], ("False", "ImagePullFailed"), "False", "True"),
    ],
)
def test_an_update_that_is_under_way_or_stuck_is_not_converged(
    is_paused, pods, ready, reconciling, stalled
):
    resource, outcome, _ = SITUATIONS["serving"]
    deployment = live_deployment(replicas=4, readyReplicas=3, updatedReplicas=1)
    deployment["spec"]["paused"] = is_paused
    told_now = told(resource, outcome, seen=[deployment], pods=pods)
    shown = conditions_of(told_now)
    assert shown["Ready"] == shown["PodsReady"] == ready
    assert (shown["Reconciling"][0], shown["Stalled"][0]) == (reconciling, stalled)
    says = "still of the spec before: 3 of 4 pods"
    assert says in message_of(told_now, "PodsReady")


@pytest.mark.parametrize(
    ("looked_at", "is_told", "ready"),
    [
        (2, False, ("True", "Running")),
        (1, False, ("False", "Updating")),
        (1, True, ("True", "Running")),
        (None, False, ("True", "Running")),
    ],
)
def test_pods_of_the_spec_before_are_not_ready_for_an_edit(looked_at, is_told, ready):
    """Its controller has seen none of it yet, and counts no pod as old. What that one is to look at
    for another reason, such as the number of replicas, changes nothing."""
    resource, outcome, [deployment] = SITUATIONS["serving"]
    deployment = copy.deepcopy(deployment)
    deployment["metadata"]["generation"] = 2
    if looked_at:
        deployment["status"]["observedGeneration"] = looked_at
    if is_told:
        resource = {
            **resource,
            "status": told(resource, outcome, seen=[SITUATIONS["serving"][2][0]]),
        }
    assert conditions_of(told(resource, outcome, seen=[deployment]))["Ready"] == ready


def test_an_edit_that_is_planned_is_not_ready_before_it_is_carried_out():
    resource, outcome, live = SITUATIONS["serving"]
    planned = replace(outcome, kept=False)
    assert conditions_of(told(resource, planned, seen=live))["Ready"] == ("False", "Updating")
    resource = {**resource, "status": told(resource, outcome, seen=live)}
    assert conditions_of(told(resource, planned, seen=live))["Ready"] == ("True", "Running")


def test_every_candidate_keeps_its_reason():
    shown = told(training_job(), placed_job())
    reasons = {each["pool"]: each["reason"] for each in shown["plan"]["candidates"]}
    assert reasons["l40s-eth"].startswith("needs 91.2 GiB")
    assert set(reasons) == {"h100-ib", "l40s-eth", "mi300x", "odd"}


def test_printer_columns_are_filled():
    plan = told(training_job(), placed_job())["plan"]
    assert (plan["pool"], plan["bottleneck"]) == ("h100-ib", "Compute")
    assert plan["summary"] == {"accelerators": "16xH100-SXM5-80GB", "shape": "dp2 tp8"}


def test_scale_subresource_is_filled():
    shown = told(*SITUATIONS["serving"][:2], seen=SITUATIONS["serving"][2])
    assert (shown["replicas"], shown["readyReplicas"]) == (3, 3)
    labels = dict(pair.split("=") for pair in shown["selector"].split(","))
    deployment = live_deployment()
    assert labels == deployment["spec"]["selector"]["matchLabels"]


def test_a_ratio_stands_until_another_is_told():
    resource, outcome, seen = SITUATIONS["serving"]
    scaling = {"desiredReplicas": 3}

    def after(before, observed):
        measured = None if observed is None else MeasuredStatus(scaling, (), observed)
        resource_now = {**resource, "status": before}
        return status(resource_now, outcome, {POOL.name: POOL}, Live(seen, ()), NOON, measured)

    first = after({}, {"ratio": 1.04})
    assert first["observed"]["ratio"] == 1.04
    assert after(first, None)["observed"]["ratio"] == 1.04
    assert after(first, {})["observed"]["ratio"] == 1.04
    assert after(first, {"ratio": 1.3})["observed"]["ratio"] == 1.3
    moved = {**first, "plan": {**first["plan"], "pool": "l40s-eth"}}
    assert "ratio" not in after(moved, {})["observed"], "of the pool that it was on"
    InferenceServiceStatus.model_validate(first)


def test_a_kept_plan_keeps_its_story():
    first = told(training_job(), placed_job())
    resource = {**training_job(), "status": first}
    again = told(resource, kept(placed_job()), seen=[live_job(**RUNNING)])
    assert again["plan"] == first["plan"]


@pytest.mark.parametrize("live", [RUNNING, COMPLETE], ids=["runs", "is over"])
def test_what_others_waited_for_is_not_told_for_ever(live):
    price = ShadowPrice(
        "h100-ib", 2.5, 38.0, "each accelerator-hour here delays the 3 that wait by 3 h"
    )
    first = told(training_job(), replace(placed_job(), prices=(price,)))
    again = told({**training_job(), "status": first}, kept(placed_job()), seen=[live_job(**live)])
    assert first["plan"].pop("prices")
    assert again["plan"] == first["plan"]


def test_a_story_of_another_pool_is_not_kept():
    first = told(training_job(), placed_job())
    first["plan"]["pool"] = "elsewhere"
    again = told({**training_job(), "status": first}, kept(placed_job()), seen=[live_job()])
    assert again["plan"]["pool"] == "h100-ib"


def test_the_end_outlives_the_job():
    ended = told(training_job(), kept(placed_job()), seen=[live_job(**COMPLETE)])
    after_ttl = told({**training_job(), "status": ended}, hopeless_job(), now=LATER)
    assert conditions_of(after_ttl)["Complete"] == ("True", "Completed")
    assert after_ttl["observed"]["completionTime"] == "2026-11-24T23:00:00Z"


def test_expected_finish_is_start_and_length():
    shown = told(training_job(), placed_job(), seen=[live_job(**RUNNING)])
    assert shown["observed"]["expectedFinishTime"] == "2026-11-24T23:00:00Z"


def rank(name, hour):
    """Bound to a node at an hour of the day."""
    moment = f"2026-11-21T{hour:02}:00:00Z"
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": moment}
    status = {"phase": "Running", "conditions": [bound]}
    return {"metadata": {"name": name}, "spec": {"nodeName": "n"}, "status": status}


@pytest.mark.parametrize(
    ("interval", "told_steps", "finish"),
    [
        (None, {}, "2026-11-25T07:00:00Z"),
        (None, {"lastCheckpointSteps": 50, "lastCheckpointTime": START}, "2026-11-25T07:00:00Z"),
        ("2h", {}, "2026-11-25T01:00:00Z"),
        ("720h", {}, "2026-11-25T07:00:00Z"),
        ("2h", {"lastCheckpointSteps": 50, "lastCheckpointTime": START}, "2026-11-23T13:30:00Z"),
    ],
    ids=["no checkpoint", "not kept", "one interval lost", "none written yet", "half is kept"],
)
def test_a_run_whose_pods_were_replaced_ends_later(interval, told_steps, finish):
    """Its 83 hours began once more when the last of its pods came, but for what it kept."""
    job = training_job()
    if interval:
        job["spec"]["checkpoint"] = {"claimName": "c", "interval": interval}
    if told_steps:
        run = {"model": "m", "pool": "h100-ib", "time": START, "steps": 60, "ofSteps": 100}
        job["status"] = {"observed": {"training": {**run, **told_steps, "paceSeconds": 3456.0}}}
    pods = [rank("a", 13), rank("b", 20)]
    shown = told(job, placed_job(), seen=[live_job(**RUNNING)], pods=pods)
    assert shown["observed"]["expectedFinishTime"] == finish


@pytest.mark.parametrize("ready", [0, 1], ids=["none runs", "one of two runs"])
def test_a_gang_whose_image_cannot_be_pulled_is_not_expected_to_finish(ready):
    live = live_job(**{**RUNNING, "ready": ready})
    shown = told(training_job(), placed_job(), seen=[live], pods=[PULLING])
    assert shown["observed"]["startTime"] and shown["observed"]["problems"]
    assert "expectedFinishTime" not in shown["observed"]


def test_resumed_after_suspension():
    first = told(*SITUATIONS["suspended"][:2])
    again = told({**training_job(), "status": first}, placed_job())
    assert conditions_of(again)["Suspended"] == ("False", "Resumed")


def test_paused_changes_one_condition():
    first = told(training_job(), placed_job())
    resource = {**training_job(), "status": first}
    resource["metadata"] = {**resource["metadata"], "annotations": {PAUSED: "true"}}
    paused = told(resource, waiting_job(), now=LATER)
    assert {**paused, "conditions": paused["conditions"][:-1]} == first
    assert paused["conditions"][-1]["type"] == "Paused"
    assert told({**resource, "status": paused}, waiting_job(), now=LATER) == paused


@pytest.mark.parametrize(
    ("code", "stalled"),
    [("NameConflict", "True"), ("ChildRefused", "True"), ("InsufficientCapacity", "False")],
)
def test_a_refused_plan_waits_for_somebody(code, stalled):
    plan = replace(placed_job(), placed=False, claim=None, reason_code=code, reason="because")
    shown = conditions_of(told(training_job(), plan))
    assert shown["Placed"] == ("False", code)
    assert shown["Stalled"][0] == stalled


def test_observed_generation_is_that_of_the_spec():
    resource = training_job()
    resource["metadata"]["generation"] = 7
    shown = told(resource, placed_job())
    assert shown["observedGeneration"] == 7
    assert {each["observedGeneration"] for each in shown["conditions"]} == {7}


def test_status_is_bounded():
    many = tuple(
        Candidate(f"pool-{n}", None, False, "x" * 10_000, "UnknownHardware") for n in range(500)
    )
    chosen = placed_job().chosen
    assert chosen is not None
    plan = replace(placed_job(), candidates=(*many, chosen))
    shown = told(training_job(), plan)
    assert len(shown["plan"]["candidates"]) == CANDIDATE_LIMIT
    assert shown["plan"]["candidates"][0]["chosen"] is True
    assert shown["plan"]["candidatesOmitted"] == 501 - CANDIDATE_LIMIT
    assert len(json.dumps(shown)) < 200_000


@pytest.mark.parametrize("mode", ["Direct", "Off"])
def test_of_a_service_whose_pool_is_gone_nothing_old_is_told(mode):
    """Nobody looks at it: that it follows its load stood there for ever."""
    resource, outcome, seen = SITUATIONS["serving"]
    resource = copy.deepcopy(resource)
    resource["spec"]["scaling"] = {"mode": mode}
    old = {"status": "True", "message": "", "lastTransitionTime": "2026-11-21T12:00:00Z"}
    told_before = {"MetricsAvailable": "MetricsRead", "ScalingActive": "FollowsLoad"}
    resource["status"] = {
        "conditions": [{**old, "type": each, "reason": why} for each, why in told_before.items()]
    }
    shown = told(resource, outcome, seen=seen, pool=None)
    found = conditions_of(shown)
    assert found["MetricsAvailable"] == ("Unknown", "NotMeasured")
    assert found["Ready"] == ("True", "Running")
    if mode == "Off":
        assert "ScalingActive" not in found
        return
    assert found["ScalingActive"] == ("False", "PoolGone")
    assert "an edit of the spec places it anew" in message_of(shown, Type.SCALING_ACTIVE)


def test_a_pool_that_is_gone_is_told():
    shown = told(training_job(), kept(placed_job()), seen=[live_job(**RUNNING)], pool=None)
    assert "AcceleratorPool h100-ib is gone; its pods run on" in message_of(shown, Type.PLACED)
    waits = told(training_job(), kept(placed_job()), seen=[live_job()], pool=None)
    assert "AcceleratorPool h100-ib is gone)" in message_of(waits, Type.PLACED)


def test_numbers_have_four_digits():
    predicted = told(training_job(), placed_job())["plan"]["predicted"]
    assert predicted["stepSeconds"] == 125.0
    assert predicted["tokensPerSecond"] == 67_120.0
