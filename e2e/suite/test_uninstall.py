"""What goes and what stays when workloads, and when Poolwise itself, are deleted."""

from __future__ import annotations

import pytest

from e2e.controlplane.client import Client
from e2e.kind.release import NAMESPACE, RELEASE
from e2e.suite.doubles import service, training, tuning
from e2e.suite.fleet import restarts
from e2e.suite.operator import CRDS, LEASE, Operator
from e2e.workloads import Observer, child

CHILDREN = (
    ("batch/v1", "Job"),
    ("apps/v1", "Deployment"),
    ("v1", "Service"),
    ("policy/v1", "PodDisruptionBudget"),
    ("v1", "Pod"),
)
PLANS = 60
NAMESPACE_TIMEOUT = "2m"
OURS = "app.kubernetes.io/managed-by=poolwise"
RELEASED = f"app.kubernetes.io/instance={RELEASE}"


@pytest.mark.core
@pytest.mark.stage(65)
def test_deleting_a_workload_deletes_its_children(
    client: Client, observer: Observer, operator: Operator, namespace: str
) -> None:
    job = client.create(tuning(namespace, "job", 2, 300))
    chat = client.create(service(namespace, "chat"))
    for workload in (job, chat):
        observer.wait_condition(workload, "Ready", "True")
    assert kinds_of_children(client, namespace) == {kind for _, kind in CHILDREN}
    operator.command(
        "delete", "trainingjob/job", "inferenceservice/chat", f"--namespace={namespace}"
    )
    observer.until(lambda: not kinds_of_children(client, namespace), "children are still there")


def kinds_of_children(client: Client, namespace: str) -> set[str]:
    """The kinds of which the operator's label is on an object."""
    return {kind[1] for kind in CHILDREN if client.list(*kind, namespace, label_selector=OURS)}


@pytest.mark.stage(65)
def test_a_namespace_goes_with_all_that_is_in_it(
    client: Client, observer: Observer, operator: Operator, namespace: str
) -> None:
    chat = client.create(service(namespace, "chat"))
    plans = client.create_all(
        tuning(namespace, f"plan-{number}", 1, mode="Plan") for number in range(PLANS)
    )
    for workload in (chat, *plans):
        observer.wait_condition(workload, "Ready", "True")
    operator.command("delete", "namespace", namespace, f"--timeout={NAMESPACE_TIMEOUT}")
    log = operator.command(
        "logs", f"--namespace={NAMESPACE}", operator.leader()["metadata"]["name"]
    )
    assert "Traceback" not in log


@pytest.mark.core
@pytest.mark.stage(90)
def test_work_outlives_the_release_and_the_next_one_takes_it_over(
    client: Client, observer: Observer, operator: Operator, namespace: str
) -> None:
    workloads = [
        client.create(training(namespace, "gang", 16, 600)),
        client.create(service(namespace, "chat")),
    ]
    for workload in workloads:
        observer.wait_condition(workload, "Ready", "True")
    before = [restarts(observer.pods_of(workload)) for workload in workloads]

    operator.helm.uninstall()
    # Helm waits for the Deployment; the garbage collector deletes its pods after that.
    observer.until(lambda: not operator.pods(), "the operator's pods are still there")
    late = client.create(tuning(namespace, "late", 1))
    assert [restarts(observer.pods_of(workload)) for workload in workloads] == before

    operator.install()
    observer.wait_condition(late, "Complete", "True")
    for workload in workloads:
        observer.wait_condition(workload, "Ready", "True")
    assert [restarts(observer.pods_of(workload)) for workload in workloads] == before


@pytest.mark.core
@pytest.mark.stage(99)
def test_nothing_is_left_where_nothing_is_to_be_kept(
    client: Client, observer: Observer, operator: Operator, namespace: str
) -> None:
    chat = client.create(service(namespace, "chat"))
    observer.wait_condition(chat, "Ready", "True")
    deployment = child(chat, "apps/v1", "Deployment")
    operator.helm.upgrade(*operator.values, "crds.keep=false")
    operator.helm.uninstall()
    observer.wait_gone(deployment)
    operator.command("wait", "--for=delete", "--timeout=120s", *(f"crd/{name}" for name in CRDS))
    observer.until(lambda: not leftovers(operator), "leftovers")
    assert leftovers(operator) == []
    assert observer.look(LEASE) is None
    assert not operator.kubectl("get", "trainingjobs.poolwise.dev").stdout


def leftovers(operator: Operator) -> list[str]:
    """Every object of any kind that carries the release's label, Events apart."""
    kinds = operator.command("api-resources", "--verbs=list", "--output=name").split()
    asked = ",".join(kind for kind in kinds if not kind.startswith(("events", "componentstatuses")))
    everywhere = operator.command(
        "get", asked, "--all-namespaces", f"--selector={RELEASED}", "-o", "name"
    )
    return everywhere.split()
