"""The loop as a whole: what it writes, what it does not, and what stops it (nothing)."""

from __future__ import annotations

import asyncio
import json

import pytest

from poolwise.cluster.clock import utc_now
from poolwise.cluster.resources import (
    ACCELERATOR_POOLS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    SERVICES,
)
from poolwise.errors import Conflict, Forbidden, NamespaceEnds, Refused, Unavailable
from poolwise.plan.conditions import timestamp
from poolwise.plan.names import PAUSED
from poolwise.plan.observed import Observed
from poolwise.settings import Settings
from tests.handlers.shell import Shell, chat_service, condition, h100_node, training_job


@pytest.fixture
def shell():
    shell = Shell()
    shell.put(h100_node(), h100_node())
    return shell


def test_steady_state_does_nothing(shell):
    shell.put(training_job("a", "train", 8), chat_service("a", "chat"))
    assert shell.run() != []
    assert shell.run() == []


def test_a_job_is_told_before_it_is_made(shell):
    shell.put(training_job("a", "train", 8))
    writes = [write for write in shell.run() if "pools" not in write and "events" not in write]
    assert writes[:3] == [
        "patch status trainingjobs/train",
        "apply services/train-ranks",
        "apply jobs/train",
    ]


def test_an_edit_is_carried_out_at_once_however_lately_its_status_was_written(shell, monkeypatch):
    """A plan on the same pool for the same reason is no news, but children wait for its story."""
    monkeypatch.setattr("tests.handlers.shell.SETTINGS", Settings(status_seconds=3600))
    times, now = [], utc_now()

    def looked_at_the_clock():
        times.append(now)
        if len(times) > 100:
            raise AssertionError("it does nothing but ask what time it is")
        return now

    monkeypatch.setattr("poolwise.handlers.story.utc_now", looked_at_the_clock)
    shell.put(chat_service("a", "chat"))

    def edit():
        live = shell.look(chat_service("a", "chat"))
        env = {"env": [{"name": "A", "value": "b"}]}
        shell.put({**live, "spec": {**live["spec"], "run": env}})

    shell.run(edit)
    [deployment] = shell.kube.all(DEPLOYMENTS)
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert {"name": "A", "value": "b"} in container["env"]
    assert len(times) < 20


def test_two_jobs_that_want_the_last_nodes_never_both_get_them(shell):
    shell.put(*(training_job("a", f"train-{number}", 16) for number in range(3)))
    shell.run()
    assert len(shell.kube.all(JOBS)) == 1


def test_what_is_being_written_counts_in_the_next_pass(shell):
    """A second job arrives while the first one's Job is on its way to the API server."""
    shell.put(training_job("a", "first", 16))
    urgent = training_job("a", "second", 16)
    urgent["spec"]["priorityClassName"] = "high"
    shell.put(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1000,
        }
    )

    def arrive(write):
        if write == "apply services/first-ranks":
            shell.kube.before_write = lambda write: None
            shell.put(urgent)

    shell.kube.before_write = arrive
    shell.run()
    assert [job["metadata"]["name"] for job in shell.kube.all(JOBS)] == ["first"]
    assert condition(shell.look(urgent), "Placed")["reason"] == "InsufficientCapacity"


def test_a_run_that_is_edited_before_it_is_made_is_planned_by_its_new_spec(shell):
    """What the pass had placed counts as there until it is written, and is no run to go on with."""
    job = training_job("a", "edited", 8)
    shell.put(job)

    def edit_before_it_is_told(write):
        if write.startswith("create events/edited."):
            shell.kube.after_write = lambda write: None
            live = shell.look(job)
            asked = {**live["spec"]["accelerators"], "products": ["A100"]}
            shell.put({**live, "spec": {**live["spec"], "accelerators": asked}})

    shell.kube.after_write = edit_before_it_is_told
    shell.run()
    assert shell.kube.all(JOBS) == []
    placed = condition(shell.look(job), "Placed")
    assert (placed["status"], placed["reason"]) == ("False", "NoFeasiblePool")
    assert shell.run() == []


def test_a_name_that_is_taken_blocks_nobody_and_is_tried_again(shell):
    taken = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "chat", "namespace": "a"},
        "spec": {},
    }
    service = chat_service("a", "chat")
    shell.put(taken, service, training_job("a", "train", 16))
    shell.run(
        lambda: None,
        lambda: shell.kube.vanish(taken),
        lambda: shell.kube.vanish(training_job("a", "train", 16)),
        pause_seconds=0.2,
    )
    assert condition(shell.look(service), "Placed")["status"] == "True"
    assert [each["metadata"]["name"] for each in shell.kube.all(SERVICES)] == ["chat"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(Forbidden("may not create jobs"), "Forbidden", id="forbidden"),
        pytest.param(Refused("spec.template is invalid"), "ChildRefused", id="refused"),
        pytest.param(ZeroDivisionError("oh"), "InternalError", id="unexpected"),
    ],
)
def test_a_workload_that_cannot_be_made_says_so_and_gives_its_place_to_others(shell, error, reason):
    def fail(write):
        if write == "apply jobs/bad":
            # A new one each time: one that is raised again keeps the frames of all its raises.
            raise type(error)(str(error))

    shell.kube.before_write = fail
    bad, good = training_job("a", "bad", 16), training_job("a", "good", 16)
    shell.put(bad)
    shell.run()
    assert condition(shell.look(bad), "Placed")["reason"] == reason
    assert str(error) in condition(shell.look(bad), "Placed")["message"]
    assert condition(shell.look(bad), "Stalled")["status"] == "True"
    shell.put(good)
    shell.run()
    assert condition(shell.look(good), "Placed")["status"] == "True"
    assert [job["metadata"]["name"] for job in shell.kube.all(JOBS)] == ["good"]


def test_a_namespace_that_is_being_deleted_is_no_failure(shell, log):
    """Its workloads live until its pods have drained, and nothing can be made for them: one that
    was tried again and again would take and leave its place each time."""
    tried = []

    def fail(write):
        if write == "apply jobs/ends":
            tried.append(write)
            raise NamespaceEnds("apply jobs/ends: unable to create new content in namespace a")

    shell.kube.before_write = fail
    ends, good = training_job("a", "ends", 16), training_job("b", "good", 16)
    shell.put(ends)
    start = len(log.getvalue())
    shell.run(lambda: shell.put(good), lambda: None, pause_seconds=0.1)
    assert len(tried) == 1
    assert condition(shell.look(ends), "Placed")["reason"] == "ChildRefused"
    assert condition(shell.look(good), "Placed")["status"] == "True"
    told = [json.loads(line) for line in log.getvalue()[start:].splitlines()]
    assert {line["level"] for line in told} == {"info"}
    failures = next(iter(shell.metrics.failures.collect()))
    assert failures.samples == []


def test_a_spec_that_cannot_be_run_is_its_owners_to_mend_and_no_failure(shell, log):
    """The alert on failures is for who runs Poolwise, and no retry of ours gives it an image."""
    job, start = training_job("a", "bare", 16), len(log.getvalue())
    del job["spec"]["run"]["image"]
    shell.put(job)
    shell.run()
    assert condition(shell.look(job), "Stalled")["reason"] == "InvalidSpec"
    told = [json.loads(line) for line in log.getvalue()[start:].splitlines()]
    assert {line["level"] for line in told} == {"info"}
    failures = next(iter(shell.metrics.failures.collect()))
    assert failures.samples == []


@pytest.mark.parametrize("is_paused", [False, True])
@pytest.mark.parametrize(
    ("answer", "phase", "is_deleted"),
    [
        (NamespaceEnds("create jobs: unable to create new content in namespace a"), "Failed", True),
        (
            NamespaceEnds("create jobs: unable to create new content in namespace a"),
            "Running",
            False,
        ),
        (Forbidden("create jobs: exceeded quota"), "Failed", False),
        (None, "Failed", False),
    ],
    ids=["ends", "runs", "full", "stays"],
)
def test_a_job_whose_deleted_pod_would_keep_its_namespace_is_deleted(
    shell, monkeypatch, answer, phase, is_deleted, is_paused
):
    """Kubernetes keeps such a pod until another replaces it, which none can there any more."""
    job, create = training_job("a", "train", 8), shell.kube.create

    async def created(document, limit_seconds):
        if answer is not None and document["kind"] == "Job":
            raise answer
        return await create(document, limit_seconds)

    monkeypatch.setattr(shell.kube, "create", created)
    shell.put(job)
    shell.run(lambda: shell.start_pods(shell.kube.all(NODES)[0]["metadata"]["name"]))
    if is_paused:
        live = shell.look(job)
        shell.put({**live, "metadata": {**live["metadata"], "annotations": {PAUSED: "true"}}})
    [pod] = shell.kube.all(PODS)
    deleted = {**pod["metadata"], "deletionTimestamp": timestamp(utc_now())}
    shell.put({**pod, "metadata": deleted, "status": {**pod["status"], "phase": phase}})
    writes = shell.run()
    assert ("delete jobs/train" in writes) == is_deleted
    assert "create jobs/train" not in writes
    reasons = {each["reason"] for each in shell.look(job)["status"]["conditions"]}
    assert not reasons & {"ChildRefused", "Forbidden"}


def test_a_namespace_that_is_made_again_has_new_workloads(shell):
    ends = training_job("a", "train", 16)
    may_begin = asyncio.Event()

    def fail(write):
        if write == "apply jobs/train" and not may_begin.is_set():
            raise NamespaceEnds("apply jobs/train: unable to create new content in namespace a")

    def again():
        may_begin.set()
        shell.kube.vanish(shell.look(ends))
        shell.put(ends)

    shell.kube.before_write = fail
    shell.put(ends)
    shell.run(again)
    assert condition(shell.look(ends), "Placed")["status"] == "True"
    assert [job["metadata"]["name"] for job in shell.kube.all(JOBS)] == ["train"]


def test_a_workload_that_keeps_failing_does_not_flicker(shell):
    attempts = []

    def fail(write):
        if write == "apply jobs/bad":
            attempts.append(write)
            raise Refused("no")

    shell.kube.before_write = fail
    shell.put(training_job("a", "bad", 16))
    shell.run()
    attempts.clear()
    later = shell.run(lambda: None, lambda: None, pause_seconds=0.3)
    assert len(attempts) > 1, "it is tried again and again"
    assert [write for write in later if "status trainingjobs" in write] == []


@pytest.mark.parametrize(
    "error",
    [Unavailable("503"), Unavailable("429", retry_after_seconds=0.01), Conflict("changed")],
    ids=["unavailable", "retry-after", "conflict"],
)
def test_what_may_pass_is_tried_again(shell, error):
    failures = [error, error, error]

    def fail(write):
        if failures and "train" in write:
            raise failures.pop()

    shell.kube.before_write = fail
    job = training_job("a", "train", 8)
    shell.put(job)
    shell.run(lambda: None, lambda: None, lambda: None, pause_seconds=0.2)
    assert failures == []
    assert condition(shell.look(job), "Placed")["status"] == "True"
    assert len(shell.kube.all(JOBS)) == 1


def test_writes_that_a_late_renewal_holds_up_are_made_after_it_without_a_word(
    shell, log, monkeypatch
):
    """The Lease tells of it once, and not each of a hundred workloads."""
    jobs = [training_job("a", "one", 8), training_job("a", "other", 8)]
    shell.put(*jobs)
    start = len(log.getvalue())

    async def run() -> None:
        engine, lead_seconds = await shell._start(), [0.0]
        monkeypatch.setattr(engine._pools._writer, "_lead_seconds", lambda: lead_seconds[0])
        await engine.settle()
        assert shell.kube.writes == []
        lead_seconds[0] = 15.0
        while len(shell.kube.all(JOBS)) < len(jobs):
            await asyncio.sleep(0.01)
            await engine.settle()

    asyncio.run(run())
    assert {condition(shell.look(job), "Placed")["status"] for job in jobs} == {"True"}
    assert '"warning"' not in log.getvalue()[start:]
    failures = next(iter(shell.metrics.failures.collect()))
    assert failures.samples == []


def test_a_planner_that_breaks_on_one_object_still_serves_the_others(shell):
    sound = shell.decide

    def breaks(observed: Observed):
        if any(each["metadata"]["name"] == "bad" for each in observed.training_jobs):
            raise KeyError("spec")
        return sound(observed)

    shell.decide = breaks
    bad, good = training_job("a", "bad", 8), training_job("a", "good", 8)
    shell.put(bad, good)
    shell.run()
    assert condition(shell.look(bad), "Accepted")["reason"] == "InternalError"
    assert condition(shell.look(good), "Placed")["status"] == "True"
    assert shell.run() == []


def test_a_deleted_child_is_made_again_from_its_record(shell):
    service = chat_service("a", "chat")
    shell.put(service)
    shell.run()
    [deployment] = shell.kube.all(DEPLOYMENTS)
    shell.run(lambda: shell.kube.vanish(deployment))
    [again] = shell.kube.all(DEPLOYMENTS)
    assert again["metadata"]["uid"] != deployment["metadata"]["uid"]
    assert again["spec"] == deployment["spec"]


def test_a_run_that_lost_its_record_goes_on_and_gets_it_back(shell):
    """No room is left beside its own pods, which a new plan would not find."""
    job = training_job("a", "train", 8)
    shell.kube.vanish(shell.kube.all(NODES)[0])
    shell.put(job)
    shell.run()
    [child] = shell.kube.all(JOBS)
    shell.start_pods(shell.kube.all(NODES)[0]["metadata"]["name"])
    shell.run()
    bare = {**child, "metadata": {**child["metadata"], "annotations": {}}}
    writes = shell.run(lambda: shell.put(bare))
    assert "patch jobs/train" in writes
    assert shell.kube.all(JOBS)[0]["metadata"]["annotations"] == child["metadata"]["annotations"]
    assert condition(shell.look(job), "Placed")["reason"] == "Placed"
    assert shell.run() == []


def test_a_child_that_somebody_takes_away_from_its_workload_is_missed_at_once(shell):
    """Its event names nobody any more, and the resync is minutes away."""
    service = chat_service("a", "chat")
    shell.put(service)
    shell.run()
    [child] = shell.kube.all(SERVICES)
    orphan = {**child, "metadata": {**child["metadata"], "ownerReferences": []}}
    shell.run(lambda: shell.put(orphan))
    assert condition(shell.look(service), "Ready")["reason"] == "NameConflict"


def test_children_of_a_deleted_workload_are_left_to_the_garbage_collector(shell):
    job = training_job("a", "train", 8)
    shell.put(job)
    writes = shell.run(lambda: shell.kube.vanish(job))
    assert [write for write in writes if write.startswith("delete")] == []
    assert shell.kube.all(JOBS) == []
    assert shell.run() == []


def test_the_same_name_again_is_a_new_object(shell):
    job = training_job("a", "train", 8)
    shell.put(job)
    shell.run()
    [first] = shell.kube.all(JOBS)

    def replace():
        shell.kube.vanish(job)
        shell.put(job)

    shell.run(replace)
    [second] = shell.kube.all(JOBS)
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


def test_pools_that_nobody_declared_go_with_their_nodes(shell):
    shell.run()
    [pool] = shell.kube.all(ACCELERATOR_POOLS)
    assert pool["status"]["free"] == 16
    writes = shell.run(
        *[lambda node=node: shell.kube.vanish(node) for node in shell.kube.all(NODES)]
    )
    assert shell.kube.all(ACCELERATOR_POOLS) == []
    assert f"delete acceleratorpools/{pool['metadata']['name']}" in writes


def declared(name, **labels):
    """A pool that somebody made, of nodes with these labels."""
    return {
        "apiVersion": "poolwise.dev/v1alpha1",
        "kind": "AcceleratorPool",
        "metadata": {"name": name},
        "spec": {"nodeSelector": labels},
    }


def test_a_pool_that_somebody_made_keeps_the_name_of_one_that_is_found(shell):
    shell.run()
    [found] = shell.kube.all(ACCELERATOR_POOLS)
    name = found["metadata"]["name"]
    other = Shell()
    other.put(h100_node(), h100_node(), declared(name, of="nobody"))
    other.run()
    [kept] = [
        each for each in other.kube.all(ACCELERATOR_POOLS) if each["metadata"]["name"] == name
    ]
    assert kept["spec"] == {"nodeSelector": {"of": "nobody"}}


def test_a_pool_that_somebody_made_outlives_its_nodes(shell):
    shell.put(declared("mine", **{"nvidia.com/gpu.present": "true"}))
    shell.run()
    shell.run(*[lambda node=node: shell.kube.vanish(node) for node in shell.kube.all(NODES)])
    assert "mine" in [each["metadata"]["name"] for each in shell.kube.all(ACCELERATOR_POOLS)]


def test_of_what_is_suspended_a_run_that_has_ended_stays(shell):
    ended, running = training_job("a", "ended", 8), training_job("a", "running", 8)
    shell.put(ended, running)
    shell.run()
    for job in shell.kube.all(JOBS):
        if job["metadata"]["name"] == "ended":
            shell.put({**job, "status": {"conditions": [{"type": "Complete", "status": "True"}]}})

    def suspend():
        for each in (ended, running):
            live = shell.look(each)
            shell.put({**live, "spec": {**live["spec"], "suspend": True}})

    shell.run(suspend)
    assert [job["metadata"]["name"] for job in shell.kube.all(JOBS)] == ["ended"]


def test_a_running_workload_tells_what_is_refused_and_goes_on(shell):
    service = chat_service("a", "chat")
    shell.put(service)
    shell.run()
    [deployment] = shell.kube.all(DEPLOYMENTS)

    def forbid(write):
        if write == "apply services/chat":
            raise Forbidden("services is forbidden: cannot patch resource")

    def lose_service():
        shell.kube.before_write = forbid
        shell.kube.vanish(shell.kube.all(SERVICES)[0])

    shell.run(lose_service)
    ready = condition(shell.look(service), "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "Forbidden")
    assert "cannot patch resource" in ready["message"]
    assert condition(shell.look(service), "Placed")["status"] == "True"
    assert shell.kube.all(DEPLOYMENTS) == [deployment]

    def allow():
        shell.kube.before_write = lambda write: None

    shell.run(allow, pause_seconds=0.1)
    assert condition(shell.look(service), "Ready")["reason"] != "Forbidden"
    assert len(shell.kube.all(SERVICES)) == 1
