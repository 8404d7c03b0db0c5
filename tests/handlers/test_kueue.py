"""Queues in the shell: what is written to whose objects, with a Kueue that the test plays."""

from __future__ import annotations

import asyncio
import copy
import json
import math
from dataclasses import replace

import pytest

from poolwise.cluster.cache import Cache
from poolwise.cluster.clock import utc_now
from poolwise.cluster.resources import ADMISSION_CHECKS, JOBS, QUEUED
from poolwise.cluster.writer import Writer
from poolwise.errors import Conflict, Forbidden
from poolwise.handlers.admissions import Admissions
from poolwise.handlers.planner import KueueObject
from poolwise.plan.kueue.words import CONTROLLER, GATE, PLANNER, QUEUE_LABEL
from poolwise.plan.names import KUEUE, PLACEMENT
from poolwise.plan.observed import CheckAnswer
from tests.fake_kube import FakeKube
from tests.handlers.shell import Shell, condition, h100_node, training_job
from tests.plan.kueue.given import cluster_queue, flavor, local_queue

H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}


@pytest.fixture
def shell():
    shell = Shell(apis={KUEUE: "v1beta2"})
    shell.put(h100_node(), h100_node(), flavor("h100", H100), cluster_queue("all", {"h100": 16}))
    shell.put(local_queue(namespace="a"))
    return shell


def queued_job(name="train", count=8):
    return training_job("a", name, count, queueName="research")


def only_job(shell, name="train"):
    (found,) = [each for each in shell.kube.all(JOBS) if each["metadata"]["name"] == name]
    return found


def workload(job, *conditions, **status):
    """What Kueue makes for a Job."""
    names = ("type", "status", "reason", "message")
    owner = {"kind": "Job", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": f"job-{owner['name']}",
            "namespace": job["metadata"]["namespace"],
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {"podSets": []},
        "status": {
            "conditions": [dict(zip(names, each, strict=True)) for each in conditions],
            **status,
        },
    }


WAITS = ("QuotaReserved", "False", "Pending", "8 more needed")


def test_a_queued_job_is_made_suspended_and_steady_state_does_nothing(shell):
    shell.put(queued_job())
    shell.run()
    job = only_job(shell)
    assert job["spec"]["suspend"] is True
    assert job["metadata"]["labels"][QUEUE_LABEL] == "research"
    assert shell.run() == []
    assert condition(shell.look(queued_job()), "Placed")["status"] == "False"


def test_what_kueue_says_is_told_as_soon_as_it_says_it(shell):
    shell.put(queued_job())
    writes = shell.run(lambda: shell.put(workload(only_job(shell), WAITS)))
    assert writes[-1].startswith(("patch status trainingjobs/train", "create events"))
    told = condition(shell.look(queued_job()), "Placed")
    assert (told["reason"], "8 more needed" in told["message"]) == ("Pending", True)


def test_a_run_that_kueue_let_in_gets_its_record_back_and_one_that_waits_is_made_anew(shell):
    shell.put(queued_job())
    shell.run()
    waiting = only_job(shell)
    bare = {**waiting, "metadata": {**waiting["metadata"], "annotations": {}}}
    shell.run(lambda: shell.put(bare))
    again = only_job(shell)
    assert again["metadata"]["uid"] != waiting["metadata"]["uid"]
    shell.put({**again, "spec": {**again["spec"], "suspend": False}})
    shell.run()
    running = only_job(shell)
    before = running["metadata"]["annotations"][PLACEMENT]
    bare = {**running, "metadata": {**running["metadata"], "annotations": {}}}
    shell.run(lambda: shell.put(bare))
    after = json.loads(only_job(shell)["metadata"]["annotations"][PLACEMENT])
    assert only_job(shell)["metadata"]["uid"] == running["metadata"]["uid"]
    assert after["queue"]["name"] == json.loads(before)["queue"]["name"]
    assert after["queue"].get("selector") == json.loads(before)["queue"].get("selector")
    assert shell.run() == []


def test_what_kueue_changes_when_it_lets_a_job_in_is_left_alone(shell):
    """It unsuspends the Job, and adds labels and tolerations to its pods."""
    shell.put(queued_job())
    shell.run()

    def let_in():
        job = copy.deepcopy(only_job(shell))
        pod = job["spec"]["template"]["spec"]
        job["spec"]["suspend"] = False
        pod["nodeSelector"]["added.by/kueue"] = "x"
        job["metadata"]["labels"]["added.by/kueue"] = "x"
        reserved = ("QuotaReserved", "True", "QuotaReserved", "")
        shell.put(job, workload(job, reserved))

    writes = shell.run(let_in)
    assert not any("jobs/train" in each and "training" not in each for each in writes)
    after = only_job(shell)
    assert after["spec"]["suspend"] is False
    assert after["spec"]["template"]["spec"]["nodeSelector"]["added.by/kueue"] == "x"
    assert shell.run() == []


def full(shell):
    """A job without a queue that holds all nodes."""
    shell.put(training_job("a", "full", 16))
    shell.run()


def test_the_gate_is_put_on_at_creation_and_lifted_in_place(shell):
    full(shell)
    shell.put(queued_job())
    shell.run()
    before = only_job(shell)
    assert before["metadata"]["annotations"][GATE] == PLANNER
    writes = shell.run(lambda: shell.kube.vanish(shell.look(training_job("a", "full", 16))))
    assert "patch jobs/train" in writes
    after = only_job(shell)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert GATE not in after["metadata"]["annotations"]
    assert (
        after["metadata"]["annotations"][PLACEMENT] != before["metadata"]["annotations"][PLACEMENT]
    )
    assert after["spec"]["suspend"] is True, "to start it is Kueue's to say"
    assert shell.run() == []


def test_a_change_that_kueue_was_faster_than_is_not_made(shell):
    """The patch names the version of the Job; a conflict is tried again with what is then."""
    full(shell)
    shell.put(queued_job())
    shell.run()
    versions = []
    patch = shell.kube.patch

    async def conflicting(document, changes, subresource, limit_seconds):
        if document["kind"] == "Job" and "resourceVersion" in changes.get("metadata", {}):
            versions.append(changes["metadata"]["resourceVersion"])
            if len(versions) == 1:
                raise Conflict("the object has been modified")
        return await patch(document, changes, subresource, limit_seconds)

    shell.kube.patch = conflicting
    shell.run(
        lambda: shell.kube.vanish(shell.look(training_job("a", "full", 16))), pause_seconds=0.1
    )
    assert len(versions) == 2
    assert GATE not in only_job(shell)["metadata"]["annotations"]


def test_a_job_that_waits_for_a_kueue_that_is_gone_is_made_anew(shell):
    shell.put(queued_job())
    shell.run()
    before = only_job(shell)
    shell.apis.clear()
    shell.kube.optional.clear()
    shell.run()
    after = only_job(shell)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert "suspend" not in after["spec"]
    assert QUEUE_LABEL not in after["metadata"]["labels"]
    seen = condition(shell.look(queued_job()), "QuotaReserved")
    assert (seen["status"], seen["reason"]) == ("Unknown", "KueueNotInstalled")


def test_a_child_that_takes_time_to_go_is_made_anew_when_it_is_gone(shell):
    shell.put(queued_job())
    shell.run()
    job = only_job(shell)
    deleting = {**job, "metadata": {**job["metadata"], "deletionTimestamp": "2026-11-21T00:00:00Z"}}
    delete = shell.kube.delete

    async def linger(document, limit_seconds):
        if document["kind"] == "Job":
            shell.kube.put(deleting)
        else:
            await delete(document, limit_seconds)

    shell.apis.clear()
    shell.kube.optional.clear()
    shell.kube.delete = linger
    shell.run(lambda: shell.kube.vanish(only_job(shell)))
    assert "suspend" not in only_job(shell)["spec"]


def check(controller=CONTROLLER):
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "AdmissionCheck",
        "metadata": {"name": "poolwise"},
        "spec": {"controllerName": controller},
    }


def guest(pods=1, others=()):
    """A Workload of somebody else's job, which waits for our check."""
    container = {"name": "main", "resources": {"requests": {"nvidia.com/gpu": "8"}}}
    template = {"spec": {"containers": [container]}}
    waits = {"name": "poolwise", "state": "Pending", "message": "", "lastTransitionTime": "x"}
    assigned = {"name": "main", "count": pods, "flavors": {"nvidia.com/gpu": "h100"}}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "guest", "namespace": "b"},
        "spec": {"podSets": [{"name": "main", "count": pods, "template": template}]},
        "status": {
            "conditions": [
                {"type": "QuotaReserved", "status": "True", "reason": "x", "message": ""}
            ],
            "admission": {"podSetAssignments": [assigned]},
            "admissionChecks": [*others, waits],
        },
    }


def test_our_check_is_declared_active_and_answered_once(shell):
    other = {
        "name": "budget",
        "state": "Pending",
        "message": "",
        "podSetUpdates": [{"name": "main"}],
    }
    shell.put(check(), guest(others=(other,)))
    shell.run()
    (declared,) = shell.kube.all(ADMISSION_CHECKS)
    assert condition(declared, "Active")["status"] == "True"
    (answered,) = shell.kube.all(QUEUED)
    before, ours = answered["status"]["admissionChecks"]
    assert before == other, "the answers of others stay as they are"
    assert ours["state"] == "Ready"
    (update,) = ours["podSetUpdates"]
    assert update["annotations"]["poolwise.dev/pool"].startswith("h100")
    assert shell.run() == []


def test_no_room_is_a_retry_with_the_numbers(shell):
    full(shell)
    shell.put(check(), guest())
    shell.run()
    (answered,) = shell.kube.all(QUEUED)
    (ours,) = answered["status"]["admissionChecks"]
    assert (ours["state"], ours["requeueAfterSeconds"]) == ("Retry", 60)
    assert "0 of 16 are free" in ours["message"]


def test_an_answer_that_kueue_was_faster_than_is_not_written_over_it(shell):
    """The list of checks is written whole, and so names the version of the Workload."""
    versions = []
    patch = shell.kube.patch

    async def conflicting(document, changes, subresource, limit_seconds):
        if document["kind"] == "Workload":
            versions.append((changes["metadata"], document["metadata"]["resourceVersion"]))
            if len(versions) == 1:
                raise Conflict("the object has been modified")
        return await patch(document, changes, subresource, limit_seconds)

    shell.kube.patch = conflicting
    shell.put(check(), guest())
    shell.run(lambda: None, pause_seconds=0.1)
    assert len(versions) == 2
    assert all(named == {"resourceVersion": live} for named, live in versions)
    (answered,) = shell.kube.all(QUEUED)
    assert answered["status"]["admissionChecks"][0]["state"] == "Ready"


@pytest.mark.parametrize("state", ["Pending", "Ready", "Retry", "Rejected"])
def test_only_a_check_that_waits_is_answered(shell, state):
    """An answer that the newest pass still has is of before it was given."""
    kube, cache = FakeKube(), Cache()
    document = guest()
    document["status"]["admissionChecks"][0]["state"] = state
    cache.put(QUEUED, kube.put(document))
    answer = CheckAnswer("poolwise", "Ready", "1 pod in h100")
    shell.run()
    planner = shell.engine.planner
    planner.decisions = replace(planner.decisions, answers={("b", "guest"): answer})
    admissions = Admissions(cache, Writer(kube, cache, lambda: math.inf), planner, utc_now)
    asyncio.run(admissions.reconcile(KueueObject("b", "guest")))
    assert kube.writes == (["patch status workloads/guest"] if state == "Pending" else [])


@pytest.mark.parametrize(
    ("plural", "kind"), [("workloads", "Workload"), ("admissionchecks", "AdmissionCheck")]
)
def test_what_kueue_could_not_be_told_is_counted_as_its_own(shell, plural, kind):
    def fail(write):
        if write.startswith(f"patch status {plural}/"):
            raise Forbidden("may not write there")

    shell.kube.before_write = fail
    shell.put(check(), guest())
    shell.run()
    counted = {
        sample.labels["kind"]
        for metric in shell.metrics.registry.collect()
        for sample in metric.samples
        if sample.name == "poolwise_reconcile_failures_total"
    }
    assert counted == {kind}


def test_checks_of_others_are_not_ours_to_declare(shell):
    shell.put(check("somebody.else/check"), guest())
    shell.run()
    (declared,) = shell.kube.all(ADMISSION_CHECKS)
    assert "status" not in declared
    (answered,) = shell.kube.all(QUEUED)
    assert answered["status"]["admissionChecks"][0]["state"] == "Pending"


def test_jobs_of_others_wake_nobody(shell):
    shell.put(queued_job())
    stranger = guest()
    stranger["status"]["admissionChecks"] = []
    passes = []

    def watch():
        plan = shell.engine.planner.plan

        async def counted():
            passes.append(1)
            await plan()

        shell.engine.planner.plan = counted
        shell.put(stranger)

    shell.run(watch)
    assert passes == []
