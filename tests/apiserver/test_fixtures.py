"""The ground that the other tests of this folder stand on."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.controlplane import pods
from e2e.controlplane.audit import AuditLog
from e2e.controlplane.client import Client, Object, Refused
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.supervised import Supervised
from e2e.workloads import condition
from tests.apiserver.conftest import Kubectl, NodeFactory

pytestmark = pytest.mark.apiserver


def node(name: str, **labels: str) -> Object:
    resources = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": resources, "allocatable": resources},
    }


def job(name: str, namespace: str, **environment: str) -> Object:
    container = {
        "name": "main",
        "image": "example",
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "resources": {"limits": {"nvidia.com/gpu": "8"}},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": template, "backoffLimit": 0},
    }


def test_kubectl_is_of_the_version_that_go_mod_pins(kubectl: Kubectl) -> None:
    version = kubectl("version", "-o", "yaml")
    assert version.returncode == 0, version.stderr
    assert version.stdout.count("gitVersion: v1.36.") == 2, version.stdout


def test_a_job_on_a_fake_node_runs_as_long_as_its_environment_says(
    client: Client, namespace: str, nodes: NodeFactory
) -> None:
    nodes([node("one")])
    ends = client.create(job("ends", namespace, FAKE_RUN_SECONDS="0"))
    done = client.wait_for(ends, lambda seen: bool(seen["status"].get("completionTime")))
    assert done["status"]["succeeded"] == 1


def test_a_job_ends_once_its_pods_are_told_to(
    client: Client, namespace: str, nodes: NodeFactory
) -> None:
    nodes([node("one")])
    told = client.create(job("told", namespace))
    client.wait_for(told, lambda seen: seen["status"].get("ready") == 1)
    pods.end(client, client.list("v1", "Pod", namespace))
    client.wait_for(told, lambda seen: bool(condition(seen, "Complete")))


def test_a_job_fails_with_the_exit_code_of_its_environment(
    client: Client, namespace: str, nodes: NodeFactory
) -> None:
    nodes([node("one")])
    fails = client.create(job("fails", namespace, FAKE_RUN_SECONDS="0", FAKE_EXIT_CODE="3"))
    done = client.wait_for(fails, lambda seen: bool(condition(seen, "Failed")))
    assert condition(done, "Failed")["reason"] == "BackoffLimitExceeded"
    [pod] = client.list("v1", "Pod", namespace)
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


def test_a_pod_waits_for_the_reason_of_its_environment(
    client: Client, namespace: str, nodes: NodeFactory
) -> None:
    nodes([node("one")])
    client.create(job("waits", namespace, FAKE_WAITING="ImagePullBackOff"))
    pod = _pod_of(client, "waits", namespace)
    seen = client.wait_for(pod, lambda pod: "containerStatuses" in pod["status"])
    assert seen["status"]["phase"] == "Pending"
    waiting = seen["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] == "ImagePullBackOff"


@pytest.mark.parametrize("environment", [{}, {"FAKE_WAITING": "ImagePullBackOff"}], ids=str)
def test_a_pod_that_is_deleted_ends_before_it_goes(
    client: Client, namespace: str, nodes: NodeFactory, environment: dict[str, str]
) -> None:
    """A Job that replaces only what has failed holds its pods till then, and so their namespace."""
    nodes([node("one")])
    document = job("holds", namespace, **environment)
    document["spec"]["podReplacementPolicy"] = "Failed"
    client.create(document)
    pod = _pod_of(client, "holds", namespace)
    client.wait_for(pod, lambda seen: "containerStatuses" in seen["status"])
    client.delete(pod)
    done = client.wait_for(document, lambda seen: bool(condition(seen, "Failed")))
    assert (done["status"]["failed"], done["status"].get("terminating", 0)) == (1, 0)


def test_pods_do_not_fit_where_no_accelerator_is_left(
    client: Client, namespace: str, nodes: NodeFactory
) -> None:
    nodes([node("one")])
    first = client.create(job("first", namespace))
    client.wait_for(first, lambda seen: seen["status"].get("ready") == 1)
    client.create(job("second", namespace))
    pod = _pod_of(client, "second", namespace)
    seen = client.wait_for(pod, lambda pod: "conditions" in pod["status"])
    assert "Insufficient nvidia.com/gpu" in seen["status"]["conditions"][0]["message"]


def test_a_lost_node_is_not_ready_until_it_heals(client: Client, nodes: NodeFactory) -> None:
    [added] = nodes([node("lost")])
    for ready, status in (("false", "Unknown"), (None, "True")):
        client.patch(added, {"metadata": {"annotations": {"e2e.poolwise.dev/ready": ready}}})
        _await_ready(client, added, status)


def test_a_node_that_is_added_as_lost_stays_lost(client: Client, nodes: NodeFactory) -> None:
    lost = node("lost")
    lost["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    ready = node("ready")
    nodes([lost, ready])
    client.patch(ready, {"metadata": {"annotations": {"e2e.poolwise.dev/ready": "false"}}})
    _await_ready(client, ready, "Unknown")  # kwok has been at work
    _await_ready(client, lost, "Unknown")


def test_the_audit_log_counts_writes_by_user(
    client: Client, audit: AuditLog, namespace: str
) -> None:
    mark = audit.mark()
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "counted", "namespace": namespace},
    }
    client.create(document)
    client.get("v1", "ConfigMap", "counted", namespace)
    client.apply(document)
    ours = {"user": "kubernetes-admin", "resource": "configmaps"}
    writes = audit.writes(since=mark, **ours)
    assert [(write.verb, write.name, write.code) for write in writes] == [
        ("create", "counted", 201),
        ("patch", "counted", 200),
    ]
    assert not audit.writes(since=audit.mark(), **ours)  # controllers write all the time


def test_a_service_account_has_only_what_rbac_grants(cluster: Supervised, namespace: str) -> None:
    kubeconfig = cluster.kubeconfig_for_service_account(namespace, "default")
    refusal = _list_nodes(kubeconfig)
    assert refusal.status == 403
    assert f'User "system:serviceaccount:{namespace}:default" cannot list' in refusal.message


def test_a_user_has_only_what_rbac_grants(control_plane: ControlPlane) -> None:
    refusal = _list_nodes(control_plane.kubeconfig_for("ada@example.org", ["research"]))
    assert (refusal.status, 'User "ada@example.org" cannot list' in refusal.message) == (403, True)


def _list_nodes(kubeconfig: Path) -> Refused:
    user = Client(kubeconfig)
    try:
        with pytest.raises(Refused) as refused:
            user.list("v1", "Node")
    finally:
        user.close()
    return refused.value


def _pod_of(client: Client, name: str, namespace: str) -> Object:
    metadata = {"name": name, "namespace": namespace}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}
    client.wait_for(owner, lambda seen: seen["status"].get("active") == 1)
    return client.list("v1", "Pod", namespace, f"batch.kubernetes.io/job-name={name}")[0]


def _await_ready(client: Client, added: Object, status: str) -> None:
    def is_reached(seen: Object) -> bool:
        conditions = {each["type"]: each["status"] for each in seen["status"]["conditions"]}
        return bool(conditions["Ready"] == status)

    client.wait_for(added, is_reached)
