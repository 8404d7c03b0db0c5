"""Queues: the real Kueue decides when, Poolwise where; neither fights the other.

The tests share one Kueue and run in this order: before it comes, while it is there, after it went.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from e2e.controlplane.client import Client, Object
from e2e.kind.figures import Figures
from e2e.kind.images import WORKLOADS
from e2e.kind.integrations import Kubectl
from e2e.suite.doubles import training
from e2e.suite.fleet import H100, nodes_of, places, pool_of, restarts
from e2e.suite.integrated import integrated
from e2e.suite.operator import Operator
from e2e.suite.queues import GPU, H100_LABELS, KUEUE, PRODUCT, Kueue
from e2e.workloads import Observer, condition

pytestmark = pytest.mark.stage(66)

HALF, ALL = 8, 16
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
ADMITTED_BAR_SECONDS = 10.0


@pytest.fixture(scope="module")
def restarted(operator: Operator) -> dict[str, int]:
    """How often each pod of the operator was restarted before Kueue came: tests end them too."""
    return restarts(operator.pods())


@pytest.fixture(scope="module")
def kueue(
    request: pytest.FixtureRequest, client: Client, kubectl: Kubectl, restarted: dict[str, int]
) -> Iterator[Kueue]:
    """It comes after the operator, which finds it without a restart."""
    with ExitStack() as stack:
        stack.enter_context(integrated(request, kubectl, KUEUE))
        found = Kueue(client, kubectl, stack)
        found.flavor("h100", H100_LABELS)
        yield found
        found.remove()


@pytest.fixture
def queue(kueue: Kueue, namespace: str) -> str:
    """A LocalQueue with half of the H100s, in a ClusterQueue of the same name."""
    kueue.cluster_queue(namespace, {"h100": HALF})
    kueue.local_queue(namespace, "research", namespace)
    return "research"


def test_without_kueue_a_job_that_names_a_queue_runs_and_says_so(
    client: Client, observer: Observer, namespace: str
) -> None:
    job = client.create(training(namespace, "early", HALF, 5, queueName="research"))
    seen = observer.wait_condition(job, "PodsReady", "True")
    assert condition(seen, "QuotaReserved")["reason"] == "KueueNotInstalled"
    observer.wait_condition(job, "Complete", "True")
    assert QUEUE_LABEL not in observer.job_of(job)["metadata"]["labels"]


@pytest.mark.usefixtures("kueue")
def test_kueue_that_comes_later_is_found_without_a_restart(
    operator: Operator, restarted: dict[str, int]
) -> None:
    assert restarts(operator.pods()) == restarted


def test_a_queued_job_is_let_in_and_runs_to_its_end(
    client: Client, observer: Observer, queue: str, namespace: str, figures: Figures
) -> None:
    started = time.monotonic()
    job = client.create(training(namespace, "first", HALF, 5, queueName=queue))
    seen = observer.wait_condition(job, "Admitted", "True", "Admitted")
    figures.note("a queued job admitted", time.monotonic() - started, "s", ADMITTED_BAR_SECONDS)
    assert condition(seen, "QuotaReserved")["status"] == "True"
    observer.wait_condition(job, "PodsReady", "True")
    child = observer.job_of(job)
    assert child["metadata"]["labels"][QUEUE_LABEL] == queue
    assert child["spec"]["suspend"] is False, "Kueue's own answer is left alone"
    assert set(places(observer.pods_of(job))) <= nodes_of(client, H100)
    observer.wait_condition(job, "Complete", "True", "Completed")


def test_a_job_without_quota_says_what_kueue_says_and_holds_nothing(
    client: Client, observer: Observer, queue: str, namespace: str
) -> None:
    first = client.create(training(namespace, "first", HALF, 25, queueName=queue))
    observer.wait_condition(first, "PodsReady", "True")
    second = client.create(training(namespace, "second", HALF, queueName=queue))
    waiting = observer.wait(second, lambda seen: "quota" in message(seen, "Placed"))
    placed, reserved = condition(waiting, "Placed"), condition(waiting, "QuotaReserved")
    assert placed["status"] == reserved["status"] == "False"
    assert placed["reason"] == reserved["reason"] == condition(waiting, "Ready")["reason"]
    assert f"planned for {pool_of(client, H100)['metadata']['name']}" in placed["message"]
    assert reserved["message"] in placed["message"]

    # The other half is free for whoever asks without a queue.
    other = client.create(training(namespace, "other", HALF, 1))
    observer.wait_condition(other, "Complete", "True")
    assert condition(observer.look(second) or {}, "Placed")["status"] == "False"
    observer.wait_condition(second, "Complete", "True")


def test_a_queue_that_does_not_exist_is_told_with_the_nearest_one(
    client: Client, observer: Observer, queue: str, namespace: str
) -> None:
    job = client.create(training(namespace, "typo", HALF, queueName="reserch"))
    seen = observer.wait_condition(job, "Placed", "False", "QueueNotFound")
    assert condition(seen, "Placed")["message"] == (
        f"spec.queueName: there is no LocalQueue reserch in namespace {namespace}; "
        f"did you mean {queue}?"
    )
    assert condition(seen, "Stalled")["status"] == "True"


def test_a_queue_whose_flavors_miss_every_pool_is_refused_with_what_would_work(
    client: Client, observer: Observer, kueue: Kueue, namespace: str
) -> None:
    kueue.flavor("nobodys", {"cloud.example.com/pool": "train"})
    kueue.cluster_queue(namespace, {"nobodys": ALL})
    kueue.local_queue(namespace, "blind", namespace)
    job = client.create(training(namespace, "blind", HALF, queueName="blind"))
    seen = observer.wait_condition(job, "Placed", "False", "PoolLabelNotInFlavor")
    told = message(seen, "Placed")
    assert "its flavors go by cloud.example.com/pool" in told
    assert "nobodys wants cloud.example.com/pool=train, its nodes lack that label" in told
    assert f"{PRODUCT}: {H100_LABELS[PRODUCT]}" in told
    assert observer.pods_of(job) == []


def test_more_than_the_quota_is_refused_with_the_numbers(
    client: Client, observer: Observer, queue: str, namespace: str
) -> None:
    job = client.create(training(namespace, "large", ALL, queueName=queue))
    seen = observer.wait_condition(job, "Placed", "False", "ExceedsQuota")
    assert (
        f"queue {queue} may use {HALF} of h100, needs {ALL}" in condition(seen, "Placed")["message"]
    )


def test_a_job_that_kueue_preempts_says_so_and_runs_again(
    client: Client, observer: Observer, kueue: Kueue, namespace: str
) -> None:
    urgent = {"kind": "WorkloadPriorityClass", "metadata": {"name": "urgent"}, "value": 1000}
    client.apply({"apiVersion": "kueue.x-k8s.io/v1beta2", **urgent})
    preemption = {"withinClusterQueue": "LowerPriority"}
    kueue.cluster_queue(namespace, {"h100": HALF}, preemption=preemption)
    kueue.local_queue(namespace, "research", namespace)
    low = client.create(training(namespace, "low", HALF, 20, queueName="research"))
    observer.wait_condition(low, "PodsReady", "True")
    high = training(namespace, "high", HALF, queueName="research", priorityClassName="urgent")
    client.create(high)
    evicted = observer.wait_condition(low, "Placed", "False", "Preempted")
    assert condition(evicted, "Evicted")["status"] == "True"
    observer.wait_condition(high, "Complete", "True")
    assert "priorityClassName" not in observer.job_of(high)["spec"]["template"]["spec"]
    observer.wait_condition(low, "Complete", "True")
    assert condition(observer.look(low) or {}, "Evicted") == {}


def test_our_check_places_a_job_that_we_did_not_make(
    client: Client, observer: Observer, kueue: Kueue, namespace: str
) -> None:
    check = kueue.check("poolwise", "poolwise.dev/placement")
    observer.wait_condition(check, "Active", "True", "Active")
    kueue.flavor("any", {})
    checks = {"admissionChecks": [{"name": "poolwise"}]}
    kueue.cluster_queue(namespace, {"any": 8 * ALL}, admissionChecksStrategy=checks)
    kueue.local_queue(namespace, "checked", namespace)
    fits, waits = foreign_job(namespace, "fits", 2, HALF), foreign_job(namespace, "waits", 3, HALF)
    job = client.create(fits)
    observer.wait(job, lambda seen: seen.get("status", {}).get("succeeded") == 2)
    pods = client.list("v1", "Pod", namespace, "job-name=fits")
    assert places(pods) == sorted(nodes_of(client, H100)) or len(set(places(pods))) == 1
    (state,) = kueue.answers_to(job)
    assert state["state"] == "Ready"
    assert "2 pods in" in state["message"]

    late = client.create(waits)
    observer.until(
        lambda: any(
            "3 pods with 8 x nvidia.com/gpu" in each["message"] for each in kueue.answers_to(late)
        ),
        "nobody has answered for a job that has no room",
    )
    assert client.list("v1", "Pod", namespace, "job-name=waits") == []


def test_our_gate_holds_a_job_back_until_there_is_room(
    client: Client, observer: Observer, kueue: Kueue, queue: str, namespace: str
) -> None:
    """Quota alone is no room: pods outside of any queue hold all nodes."""
    kueue.turn_on("AdmissionGatedBy")  # on by default from Kueue 0.19
    full = client.create(training(namespace, "full", ALL, 15))
    observer.wait_condition(full, "PodsReady", "True")
    gated = client.create(training(namespace, "gated", HALF, queueName=queue))
    seen = observer.wait_condition(gated, "Placed", "False", "AdmissionGated")
    assert "it is held back until there is room" in condition(seen, "Placed")["message"]
    before = observer.job_of(gated)
    observer.wait_condition(gated, "Complete", "True")
    after = observer.job_of(gated)
    assert after["metadata"]["uid"] == before["metadata"]["uid"], "its place in the queue is kept"
    assert "kueue.x-k8s.io/admission-gated-by" not in after["metadata"]["annotations"]


def test_a_job_that_waits_for_a_kueue_that_goes_is_run_without_it(
    client: Client,
    observer: Observer,
    operator: Operator,
    restarted: dict[str, int],
    kueue: Kueue,
    namespace: str,
) -> None:
    kueue.cluster_queue(namespace, {"h100": HALF}, stopPolicy="Hold")
    kueue.local_queue(namespace, "research", namespace)
    job = client.create(training(namespace, "orphan", HALF, queueName="research"))
    held = observer.wait(job, lambda seen: "Kueue: " in message(seen, "Placed"))
    assert condition(held, "Placed")["status"] == "False"
    kueue.remove()
    observer.wait_condition(job, "Complete", "True")
    assert QUEUE_LABEL not in observer.job_of(job)["metadata"]["labels"]
    assert restarts(operator.pods()) == restarted


def message(seen: Object, type_: str) -> str:
    """What a condition says; nothing while there is none."""
    return str(condition(seen, type_).get("message", ""))


def foreign_job(namespace: str, name: str, pods: int, accelerators: int) -> Object:
    """A Job in the queue ``checked`` that Poolwise knows nothing of."""
    container = {
        "name": "main",
        "image": WORKLOADS,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "2"],
        "resources": {"limits": {GPU: str(accelerators)}},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": {QUEUE_LABEL: "checked"}},
        "spec": {"suspend": True, "parallelism": pods, "completions": pods, "template": template},
    }
