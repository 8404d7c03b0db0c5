"""The chart in a real cluster: it is taken, becomes ready, and gives the operator what it needs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from e2e.controlplane.client import Object
from e2e.operator_process import OperatorProcess
from tests.apiserver.operated import condition, training_job
from tests.chart.cases import CASES
from tests.chart.cluster import Cluster, as_text
from tests.chart.rendering import NAMESPACE, RELEASE, having

pytestmark = [pytest.mark.apiserver, pytest.mark.tools("helm")]

ACCOUNT = "poolwise"
POLICY = ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy")
TEST = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "poolwise-test", "namespace": NAMESPACE},
}


def test_it_is_ready_where_only_restricted_pods_may_run(release: Cluster) -> None:
    deployment = release.client.get("apps/v1", "Deployment", "poolwise", NAMESPACE)
    assert deployment and deployment["status"]["readyReplicas"] == 2
    pods = release.client.list("v1", "Pod", NAMESPACE)
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 2


@pytest.mark.parametrize("name", CASES)
def test_the_api_server_takes_all_manifests(release: Cluster, name: str) -> None:
    if release.client.get("v1", "Namespace", "research") is None:
        release.create_namespace("research")
    # The test's pod wants a service account that a dry run does not make; it is created below.
    wanted = having(CASES[name], lambda each: each["kind"] != "Pod")
    arguments = ("apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f=-")
    done = release.kubectl(*arguments, stdin=as_text(wanted))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(wanted)
    assert "Warning" not in done.stderr


def test_the_policies_agree_with_the_types_that_they_check(release: Cluster) -> None:
    def is_checked(policy: Object) -> bool:
        return "typeChecking" in policy.get("status", {})

    policies = release.client.list(*POLICY)
    assert len(policies) == 6
    for policy in policies:
        checked = release.client.wait_for(policy, is_checked)
        assert checked["status"]["typeChecking"] == {}, policy["metadata"]["name"]


@pytest.fixture(scope="module")
def operator(
    release: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """The operator with a token of the service account that the chart made, and nothing more."""
    kubeconfig = release.control_plane.kubeconfig_for_service_account(NAMESPACE, ACCOUNT)
    environment = {"POOLWISE_LEASE_NAMESPACE": NAMESPACE, "POOLWISE_STATUS_SECONDS": "0"}
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    with OperatorProcess(kubeconfig, log, environment) as process:
        yield process


def test_the_operator_needs_no_more_than_the_chart_gives_it(
    release: Cluster, operator: OperatorProcess, namespace: str
) -> None:
    job = release.client.create(training_job(namespace, "train", 4))
    release.client.wait_for(job, lambda seen: is_true(seen, "PodsReady"), 30)
    release.client.delete(job)
    log = operator.log.read_text()
    assert "forbidden" not in log.lower(), log
    assert "ValidatingAdmissionPolicy" not in log
    lease = release.client.get("coordination.k8s.io/v1", "Lease", "poolwise", NAMESPACE)
    assert lease and lease["spec"]["holderIdentity"]


def is_true(seen: Object, type_: str) -> bool:
    return bool(condition(seen, type_).get("status") == "True")


def test_the_helm_test_waits_for_a_plan_with_its_own_few_rights(
    release: Cluster, operator: OperatorProcess
) -> None:
    """Its pod is run here, by its own arguments and token, since fake nodes run nothing."""
    with ThreadPoolExecutor(1) as pool:
        tested = pool.submit(release.helm, "test", RELEASE, "--timeout=90s")
        pod = release.client.wait_for(TEST, lambda seen: "nodeName" in seen["spec"], 60)
        done = run_pod(release, pod)
        phase = "Failed" if done.returncode else "Succeeded"
        release.client.patch(TEST, {"status": {"phase": phase}}, "status")
        result = tested.result()
    assert done.returncode == 0, done.stderr
    assert result.returncode == 0, result.stdout + result.stderr
    assert release.client.get("v1", "Pod", "poolwise-test", NAMESPACE) is None
    assert "poolwise-test is only planned, and would run on" in done.stdout


def run_pod(release: Cluster, pod: Object) -> subprocess.CompletedProcess[str]:
    """The pod's own command, under its own account."""
    account = pod["spec"]["serviceAccountName"]
    kubeconfig = release.control_plane.kubeconfig_for_service_account(NAMESPACE, account)
    [container] = pod["spec"]["containers"]
    command = [sys.executable, "-m", "poolwise", *container["args"], f"--kubeconfig={kubeconfig}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)
