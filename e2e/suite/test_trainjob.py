"""Runs that Kubeflow Trainer starts: its real controller, its webhooks, and JobSet below it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from e2e.controlplane.client import Client, Object
from e2e.kind.images import WORKLOADS
from e2e.kind.integrations import JOB_SET, TRAINER, Kubectl
from e2e.suite.doubles import training
from e2e.suite.fleet import H100, nodes_of, places, pool_of
from e2e.suite.integrated import integrated
from e2e.workloads import Observer, child, condition

# The first of them builds Kubeflow Trainer, where there is no manifest of it.
pytestmark = [pytest.mark.stage(64), pytest.mark.timeout(2400)]

ALL = 16
API = "trainer.kubeflow.org/v1alpha1"
TORCH = "e2e-torch"
STEP = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}


@pytest.fixture(scope="module", autouse=True)
def trainer_is_installed(request: pytest.FixtureRequest, kubectl: Kubectl) -> Iterator[None]:
    """With JobSet, which it starts."""
    with integrated(request, kubectl, JOB_SET, TRAINER):
        yield


@pytest.fixture(scope="module")
def torch(client: Client) -> Iterator[None]:
    """A runtime as Trainer ships it for PyTorch, with the suite's image."""
    made = client.create(runtime(TORCH))
    yield
    client.delete(made)


def runtime(name: str) -> Object:
    """A ClusterTrainingRuntime whose nodes torchrun starts, and whose retries are spent at once."""
    container = {"name": "node", "image": WORKLOADS, "imagePullPolicy": "IfNotPresent"}
    pod = {"containers": [container], "restartPolicy": "Never"}
    job = {"backoffLimit": 0, "template": {"spec": pod}}
    node = {"name": "node", "template": {"metadata": {"labels": STEP}, "spec": job}}
    return {
        "apiVersion": API,
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {"spec": {"failurePolicy": {"maxRestarts": 1}, "replicatedJobs": [node]}},
        },
    }


def training_by(name: str, namespace: str, **more: Any) -> Object:
    """A run of all H100 that Trainer starts."""
    return training(namespace, "run", ALL, 5, runtimeRef={"name": name}, **more)


def test_a_run_meets_and_ends_well(
    client: Client, observer: Observer, namespace: str, torch: None
) -> None:
    job = client.create(training_by(TORCH, namespace))
    running = observer.wait_condition(job, "PodsReady", "True")
    assert running["status"]["observed"]["pods"]["ready"] == 2
    assert places(observer.pods_of(job)) == sorted(nodes_of(client, H100))
    train_job = observer.wait(child(job, API, "TrainJob"), lambda _: True)
    patches = train_job["spec"]["runtimePatches"]
    assert [patch["manager"] for patch in patches] == ["poolwise.dev/planner"]

    observer.wait_condition(job, "Complete", "True", "Completed")
    observer.wait(pool_of(client, H100), lambda seen: seen["status"]["free"] == ALL)
    client.delete(job)
    observer.wait_gone(train_job)
    observer.until(lambda: not observer.pods_of(job), "its pods are still there")


def test_a_run_that_fails_repeats_what_trainer_says(
    client: Client, observer: Observer, namespace: str, torch: None
) -> None:
    failing = training_by(TORCH, namespace)
    failing["spec"]["run"] |= {"command": ["sh", "-c", "echo no data; exit 3"]}
    job = client.create(failing)
    failed = observer.wait_condition(job, "Failed", "True")
    assert "ReachedMaxRestarts" in condition(failed, "Failed")["message"]
    observer.wait(pool_of(client, H100), lambda seen: seen["status"]["free"] == ALL)


def test_a_runtime_that_comes_late_is_waited_for(
    client: Client, observer: Observer, namespace: str
) -> None:
    job = client.create(training_by("late", namespace))
    refused = observer.wait_condition(job, "Accepted", "False", "InvalidSpec")
    assert (
        "names ClusterTrainingRuntime late, which does not exist"
        in (condition(refused, "Accepted")["message"])
    )
    late = client.create(runtime("late"))
    try:
        observer.wait_condition(job, "Complete", "True")
    finally:
        client.delete(late)
