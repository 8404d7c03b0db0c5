"""Gangs that JobSet runs: its real controller makes the pods, and they really meet."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from e2e.controlplane.client import Client, Object
from e2e.kind.integrations import JOB_SET, Kubectl
from e2e.suite.doubles import training
from e2e.suite.fleet import H100, nodes_of, places, pool_of
from e2e.suite.integrated import integrated
from e2e.workloads import Observer, child, condition

pytestmark = pytest.mark.stage(62)

ALL = 16
API = "jobset.x-k8s.io/v1alpha2"


@pytest.fixture(scope="module", autouse=True)
def job_set_is_installed(request: pytest.FixtureRequest, kubectl: Kubectl) -> Iterator[None]:
    """It comes after the operator, which finds it without a restart."""
    with integrated(request, kubectl, JOB_SET):
        yield


def job_set_of(observer: Observer, job: Object) -> Object:
    """The JobSet of a TrainingJob, once it is there."""
    return observer.wait(child(job, API, "JobSet"), lambda _: True)


def test_a_gang_meets_under_the_names_that_job_set_gives(
    client: Client, observer: Observer, namespace: str
) -> None:
    job = client.create(training(namespace, "gang", ALL, 10))
    running = observer.wait_condition(job, "PodsReady", "True")
    assert running["status"]["observed"]["pods"]["ready"] == 2
    pods = observer.pods_of(job)
    assert places(pods) == sorted(nodes_of(client, H100))
    assert {pod["spec"]["subdomain"] for pod in pods} == {"gang-ranks"}
    job_set = job_set_of(observer, job)
    assert observer.look(child(job, "batch/v1", "Job")) is None, "one kind of child, not two"

    done = observer.wait_condition(job, "Complete", "True", "Completed")
    assert condition(done, "Complete")["message"].startswith("AllJobsCompleted")
    assert done["status"]["observed"]["completionTime"]
    observer.wait(pool_of(client, H100), lambda seen: seen["status"]["free"] == ALL)
    client.delete(job)
    observer.wait_gone(job_set)
    observer.until(lambda: not observer.pods_of(job), "its pods are still there")


def test_a_rank_that_fails_restarts_all(client: Client, observer: Observer, namespace: str) -> None:
    job = training(namespace, "flaky", ALL)
    job["spec"]["run"]["env"] += [
        {"name": "E2E_FAIL_RANK", "value": "9"},
        {"name": "E2E_FAIL_ATTEMPTS", "value": "1"},
    ]
    client.create(job)
    observer.wait_condition(job, "Complete", "True")
    status = job_set_of(observer, job)["status"]
    assert (status["restarts"], status["restartsCountTowardsMax"]) == (1, 1)


def test_a_job_whose_retries_are_spent_repeats_what_job_set_says(
    client: Client, observer: Observer, namespace: str
) -> None:
    failing = training(namespace, "failing", ALL, backoffLimit=1)
    failing["spec"]["run"] |= {"command": ["sh", "-c", "echo no data; exit 3"]}
    job = client.create(failing)
    failed = observer.wait_condition(job, "Failed", "True")
    assert "ReachedMaxRestarts" in condition(failed, "Failed")["message"]
    assert condition(failed, "Ready")["reason"] == "Failed"
    assert job_set_of(observer, job)["status"]["restartsCountTowardsMax"] == 1
    observer.wait(pool_of(client, H100), lambda seen: seen["status"]["free"] == ALL)


def test_a_disruption_costs_no_retry(
    client: Client, observer: Observer, kubectl: Kubectl, namespace: str
) -> None:
    job = client.create(training(namespace, "evicted", ALL, 600, backoffLimit=0))
    observer.wait_condition(job, "PodsReady", "True")
    before = {pod["metadata"]["uid"] for pod in observer.pods_of(job)}
    evict(kubectl, observer.pods_of(job)[1])
    observer.until(
        lambda: not before & {pod["metadata"]["uid"] for pod in observer.pods_of(job)},
        "pods of the first attempt are still there",
    )
    observer.wait_condition(job, "PodsReady", "True")
    status = job_set_of(observer, job)["status"]
    assert status["restarts"] == 1
    assert status.get("restartsCountTowardsMax", 0) == 0


def test_one_pod_needs_no_set(client: Client, observer: Observer, namespace: str) -> None:
    job = client.create(training(namespace, "lone", 8))
    observer.wait_condition(job, "Complete", "True")
    assert observer.job_of(job)["spec"]["completions"] == 1
    assert observer.look(child(job, API, "JobSet")) is None


def evict(kubectl: Kubectl, pod: Object) -> None:
    """As a drain does it."""
    metadata = {key: pod["metadata"][key] for key in ("name", "namespace")}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    path = "/api/v1/namespaces/{namespace}/pods/{name}/eviction".format(**metadata)
    done = kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))
    assert done.returncode == 0, done.stderr
