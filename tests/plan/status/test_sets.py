"""What JobSets, TrainJobs and LeaderWorkerSets show: pods are counted, since they count Jobs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Key, Kind
from poolwise.plan.records.running import Children
from poolwise.plan.status.pods import Live, observe
from poolwise.plan.status.workload import status
from tests.plan.children.given import JOB, JOB_UID, SERVICE, SERVICE_UID, training_job
from tests.plan.children.set_cases import SET_CASES, set_manifests

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
FAILED = {
    "type": "Failed",
    "status": "True",
    "reason": "ReachedMaxRestarts",
    "message": "jobset failed due to reaching max number of restarts (first failed job: a-node-0)",
    "lastTransitionTime": "2026-11-22T08:30:00Z",
}
COMPLETED = FAILED | {"type": "Completed", "reason": "AllJobsCompleted", "message": "jobset done"}


def child_of(name, **status):
    return {**set_manifests(SET_CASES[name]())[-1], "status": status}


def pod(name, phase="Running", is_ready=True, **metadata):
    ready = {"type": "Ready", "status": str(is_ready)}
    started = {"startTime": f"2026-11-22T08:0{name[-1]}:00Z"}
    return {
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "status": {"phase": phase, "conditions": [ready], **started},
    }


def state_of(resource, key, uid, *found):
    return Children(found).state_of(resource, key, uid)


@pytest.mark.parametrize("name", ["job-set", "train-job"])
def test_ranks_are_counted(name):
    pods = [pod("a-0"), pod("a-1", is_ready=False)]
    seen = observe(JOB_UID, [child_of(name)], pods)
    assert (seen.desired, seen.ready, seen.replicas) == (2, 1, 2)
    assert not seen.are_all_ready
    assert seen.start_time == "2026-11-22T08:00:00Z"


def test_ranks_that_ended_well_need_not_be_ready():
    pods = [pod("a-0", "Succeeded", is_ready=False), pod("a-1")]
    seen = observe(JOB_UID, [child_of("job-set")], pods)
    assert seen.are_all_ready
    assert (seen.succeeded, seen.replicas) == (1, 1)


def test_a_pod_that_leaves_is_not_ready():
    leaving = pod("a-0", deletionTimestamp="2026-11-22T08:10:00Z")
    assert observe(JOB_UID, [child_of("job-set")], [leaving]).ready == 0


@pytest.mark.parametrize(
    ("name", "condition"),
    [("job-set", COMPLETED), ("train-job", COMPLETED | {"type": "Complete"})],
)
def test_a_run_that_completed(name, condition):
    child = child_of(name, conditions=[condition])
    seen = observe(JOB_UID, [child], [])
    assert seen.completed == "AllJobsCompleted: jobset done"
    assert seen.completion_time == "2026-11-22T08:30:00Z"
    assert state_of(training_job(), JOB, JOB_UID, child).end is Reason.COMPLETED


@pytest.mark.parametrize("name", ["job-set", "train-job"])
def test_a_run_that_failed_says_it_in_its_own_words(name):
    child = child_of(name, conditions=[FAILED])
    seen = observe(JOB_UID, [child], [])
    assert seen.gave_up == f"ReachedMaxRestarts: {FAILED['message']}"
    assert (seen.completed, seen.completion_time) == (None, None)
    assert state_of(training_job(), JOB, JOB_UID, child).end is Reason.FAILED


def test_a_job_set_that_restarts_has_not_ended():
    restarting = FAILED | {"type": "RestartingJobSet"}
    child = child_of("job-set", conditions=[restarting, FAILED | {"status": "False"}])
    assert state_of(training_job(), JOB, JOB_UID, child).end is None


def test_the_record_is_read_off_each_kind():
    for name in ("job-set", "train-job"):
        state = state_of(training_job(), JOB, JOB_UID, child_of(name))
        assert state.record is not None
        assert state.record.runtime == {"job-set": "JobSet", "train-job": "TrainJob"}[name]
    groups = state_of({}, SERVICE, SERVICE_UID, child_of("vllm-two-nodes"))
    assert groups.record is not None and groups.record.nodes_per_replica == 2


def test_the_later_of_two_kinds_counts():
    """A service that moves from a Deployment to groups has both for a moment."""
    resource, *_ = SET_CASES["vllm-two-nodes"]()
    groups = child_of("vllm-two-nodes")
    older = {**groups, "kind": "Deployment"}
    older["metadata"] = {
        **groups["metadata"],
        "annotations": {
            name: text.replace('"generation":1', '"generation":0')
            for name, text in groups["metadata"]["annotations"].items()
        },
    }
    for found in ([older, groups], [groups, older]):
        record = state_of(resource, SERVICE, SERVICE_UID, *found).record
        assert record is not None and record.generation == 1


def test_groups_are_replicas_and_pods_are_pods():
    resource, plan, pool = SET_CASES["vllm-two-nodes"]()
    lws = child_of("vllm-two-nodes", replicas=2, readyReplicas=1)
    pods = [pod("r-0"), pod("r-1"), pod("s-2"), pod("s-3", is_ready=False)]
    shown = status(resource, plan, {pool.name: pool}, Live([lws], pods), NOW)
    assert (shown["replicas"], shown["readyReplicas"]) == (2, 1)
    assert shown["observed"]["pods"] == {"desired": 4, "ready": 3, "existing": 4}
    assert "leaderworkerset.sigs.k8s.io/worker-index=0" in shown["selector"]


GROUPS = ("r-0", "r-1", "s-2", "s-3")
"""Pods of two groups on two nodes each."""


def shown_of_groups(groups, pods, now=NOW):
    resource, plan, pool = SET_CASES["vllm-two-nodes"]()
    record = state_of(resource, SERVICE, SERVICE_UID, groups).record
    plan = replace(plan, kept=True, record=record)
    found = status(resource, plan, {pool.name: pool}, Live([groups], pods), now)
    conditions = {each["type"]: each for each in found["conditions"]}
    ready = conditions["Ready"]
    return ready["reason"], conditions["Stalled"]["status"], ready["message"]


def progress(type_, since="2026-11-22T08:00:00Z", status="True"):
    return {"type": type_, "status": status, "lastTransitionTime": since}


@pytest.mark.parametrize(
    ("updated", "first", "told", "stalled", "says"),
    [
        (2, 0, "Running", "False", "4 of 4 pods ready"),
        (1, 0, "Updating", "False", "still of the spec before: 2 of 4 pods"),
        (0, 1, "Updating", "False", "still of the spec before: 4 of 4 pods"),
        (
            1,
            1,
            "RolloutPaused",
            "True",
            "somebody set partition 1 on LeaderWorkerSet assistant-replica",
        ),
    ],
)
def test_an_update_of_groups_is_judged_as_one_of_a_deployment(updated, first, told, stalled, says):
    groups = child_of("vllm-two-nodes", replicas=2, readyReplicas=2, updatedReplicas=updated)
    groups["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] = first
    reason, is_stalled, message = shown_of_groups(groups, [pod(name) for name in GROUPS])
    assert (reason, is_stalled) == (told, stalled)
    assert says in message


UPDATES = progress("UpdateInProgress")
STARTS = progress("Progressing")


@pytest.mark.parametrize(
    ("counts", "conditions", "partition", "is_hung"),
    [
        pytest.param((2, 1, 1), [UPDATES, STARTS], 0, True, id="update"),
        pytest.param((2, 2, 1), [UPDATES, STARTS], 0, True, id="all-ready-and-none-replaced"),
        pytest.param((2, 2, 1), [UPDATES, STARTS], 1, False, id="held-back"),
        pytest.param((2, 0, 2), [STARTS], 0, True, id="first-start"),
        pytest.param((2, 1, 2), [STARTS], 0, False, id="one-replica-more"),
        pytest.param(
            (2, 2, 2), [progress("UpdateInProgress", status="False")], 0, False, id="updated"
        ),
    ],
)
def test_groups_that_do_not_start_are_stuck_as_pods_of_a_deployment_are(
    counts, conditions, partition, is_hung
):
    names = ("replicas", "readyReplicas", "updatedReplicas")
    given = dict(zip(names, counts, strict=True))
    groups = child_of("vllm-two-nodes", conditions=conditions, **given)
    groups["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] = partition
    pods = [pod(name, is_ready=index < 2 * counts[1]) for index, name in enumerate(GROUPS)]
    early = NOW - timedelta(minutes=40)
    assert shown_of_groups(groups, pods, early)[0] != "ProgressDeadlineExceeded"
    late = NOW + timedelta(hours=2)
    reason, stalled, message = shown_of_groups(groups, pods, late)
    assert (reason == "ProgressDeadlineExceeded") is is_hung
    if is_hung:
        assert stalled == "True"
        told = (
            "LeaderWorkerSet assistant-replica: no pod has become ready since 2026-11-22T08:00:00Z"
        )
        assert told in message
        assert shown_of_groups(groups, pods, late + timedelta(hours=1))[2] == message


def test_each_group_that_becomes_ready_is_progress():
    groups = child_of(
        "vllm-two-nodes", replicas=2, readyReplicas=1, updatedReplicas=1, conditions=[UPDATES]
    )
    pods = [pod(name) for name in GROUPS]
    pods[0]["status"]["conditions"] = [progress("Ready", "2026-11-22T10:50:00Z")]
    pods[3] = pod("s-3", is_ready=False)
    assert shown_of_groups(groups, pods, NOW + timedelta(hours=2))[0] != "ProgressDeadlineExceeded"


def test_a_group_more_that_does_not_start_is_no_stuck_update_though_others_began_long_ago():
    groups = child_of(
        "vllm-two-nodes", replicas=2, readyReplicas=1, updatedReplicas=2, conditions=[STARTS]
    )
    pods = [pod(name, is_ready=index < 2) for index, name in enumerate(GROUPS)]
    for each in pods[:2]:
        each["status"]["conditions"] = [progress("Ready", "2026-11-22T08:00:00Z")]
    assert shown_of_groups(groups, pods, NOW + timedelta(days=2))[0] != "ProgressDeadlineExceeded"


def test_a_job_of_another_owner_is_not_ours():
    other = child_of("job-set", conditions=[COMPLETED])
    state = state_of(training_job(), Key(Kind.TRAINING_JOB, "research", "x"), "another", other)
    assert (state.record, state.end) == (None, None)
