"""What keeps pods from running, as kubelet, scheduler and controllers word it."""

import pytest

from poolwise.plan.status.pods import observe
from poolwise.plan.status.problems import PROBLEM_LIMIT

UID = "u-1"


def pod(name="p-0", **status):
    return {"kind": "Pod", "metadata": {"name": name}, "status": {"phase": "Pending", **status}}


def waiting(reason, message=""):
    state = {"waiting": {"reason": reason, "message": message}}
    return {"containerStatuses": [{"name": "train", "state": state}]}


def ended(code, reason="Error", message=""):
    terminated = {"exitCode": code, "reason": reason, "message": message}
    return {
        "containerStatuses": [
            {
                "name": "train",
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
                "lastState": {"terminated": terminated},
            }
        ]
    }


def unscheduled(message):
    return {"conditions": [{"type": "PodScheduled", "status": "False", "message": message}]}


def controller(kind="Deployment", conditions=(), owner=UID):
    return {
        "kind": kind,
        "metadata": {"name": "c", "ownerReferences": [{"controller": True, "uid": owner}]},
        "spec": {"replicas": 1, "completions": 1},
        "status": {"conditions": list(conditions)},
    }


def failure(message):
    return {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": message,
    }


QUOTA = 'pods "x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=8'
SECURITY = 'pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true'
ACCOUNT = (
    'pods "x" is forbidden: error looking up service account a/b: serviceaccount "b" not found'
)

PRIORITY = 'pods "x" is forbidden: no PriorityClass with name urgent was found'


@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        (waiting("ImagePullBackOff", 'Back-off pulling image "x:1"'), "ImagePullFailed", "x:1"),
        (waiting("ErrImagePull", "not found"), "ImagePullFailed", "train"),
        (waiting("InvalidImageName"), "ImagePullFailed", "InvalidImageName"),
        (
            waiting("CreateContainerConfigError", 'secret "wandb" not found'),
            "MissingReference",
            'secret "wandb" not found',
        ),
        (
            waiting("CreateContainerConfigError", "container has runAsNonRoot"),
            "ContainerConfigFailed",
            "runAsNonRoot",
        ),
        (ended(1, message="no such file"), "CrashLoop", "exit code 1: no such file"),
        (ended(137, "OOMKilled"), "OutOfMemory", "memory limit"),
        (
            unscheduled('persistentvolumeclaim "ckpt" not found'),
            "MissingReference",
            'persistentvolumeclaim "ckpt"',
        ),
        (unscheduled("0/8 nodes are available"), "Unschedulable", "0/8"),
        (
            {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no devices"},
            "PodRejected",
            "no devices",
        ),
    ],
)
def test_a_pods_problem(status, reason, words):
    (problem,) = observe(UID, [], [pod(**status)]).problems
    assert problem.reason == reason
    assert words in problem.message


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (QUOTA, "QuotaExceeded"),
        (SECURITY, "PodSecurityRefused"),
        (ACCOUNT, "MissingReference"),
        (PRIORITY, "MissingReference"),
        ("something else", "CreateFailed"),
    ],
)
def test_why_no_pod_is_created(message, reason):
    (problem,) = observe(UID, [controller(conditions=[failure(message)])], []).problems
    assert (problem.reason, problem.message) == (reason, message)


def test_a_jobs_event_tells_why_no_pod_is_created():
    event = {"kind": "Event", "metadata": {}, "reason": "FailedCreate", "note": QUOTA}
    (problem,) = observe(UID, [controller("Job"), event], []).problems
    assert problem.reason == "QuotaExceeded"


def test_a_deployment_that_makes_no_progress_says_so_after_what_keeps_its_pods():
    words = 'ReplicaSet "chat-7f" has timed out progressing.'
    stuck = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    deployment = controller(conditions=[{**stuck, "message": words}])
    (problem,) = observe(UID, [deployment], []).problems
    assert (problem.reason, problem.message) == ("ProgressDeadlineExceeded", words)
    problems = observe(UID, [deployment], [pod(**waiting("ErrImagePull"))]).problems
    assert [each.reason for each in problems] == ["ImagePullFailed", "ProgressDeadlineExceeded"]


def test_equal_problems_are_one_with_a_count():
    crashing = [pod(f"p-{n}", **ended(1)) for n in range(64)]
    (problem,) = observe(UID, [], crashing).problems
    assert problem.pods == 64


def test_causes_come_before_consequences():
    seen = observe(UID, [], [pod("a", **unscheduled("0/8")), pod("b", **waiting("ErrImagePull"))])
    assert [problem.reason for problem in seen.problems] == ["ImagePullFailed", "Unschedulable"]


def test_back_off_times_do_not_show():
    (problem,) = observe(UID, [], [pod(**ended(1))]).problems
    assert "5m0s" not in problem.message


def test_problems_are_bounded():
    many = [pod(f"p-{n}", **unscheduled(f"reason {n}")) for n in range(100)]
    assert len(observe(UID, [], many).problems) == PROBLEM_LIMIT


@pytest.mark.parametrize(
    "status", [{}, {"phase": "Succeeded"}, {"phase": "Running", "containerStatuses": []}]
)
def test_nothing_is_wrong(status):
    assert observe(UID, [], [pod(**status)]).problems == ()


def test_pods_that_are_going_are_no_problem():
    going = pod(**ended(1))
    going["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    assert observe(UID, [], [going]).problems == ()


def test_somebody_elses_deployment_is_not_ours():
    assert not observe(UID, [controller(owner="other")], []).exists


def test_ranks_that_are_done_count():
    job = controller("Job")
    job["spec"]["completions"] = 4
    job["status"] = {"ready": 3, "succeeded": 1}
    assert observe(UID, [job], []).are_all_ready
