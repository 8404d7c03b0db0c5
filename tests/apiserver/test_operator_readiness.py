"""What the operator waits for instead of ending: CRDs, rights, the API server; it says so, and goes
on by itself when they are there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.controlplane.client import Client
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.served import await_served
from e2e.operator_process import OK, OperatorProcess
from e2e.operator_rights import USER, grant
from tests.apiserver.conftest import CRDS, Kubectl, NodeFactory
from tests.apiserver.operated import Operated, chat_service, condition, h100_node, training_job
from tests.apiserver.outage import Line
from tests.apiserver.test_explain import explain

pytestmark = pytest.mark.apiserver

TIMEOUT_SECONDS = 60.0
NOT_READY = 503
ALONE = {"POOLWISE_LEADER_ELECTION": "false", "POOLWISE_PULSE_SECONDS": "0.3"}
RBAC = "rbac.authorization.k8s.io/v1"


def wait_until_it_says(process: OperatorProcess, *words: str) -> None:
    """Return once /readyz is 503 with these words; it lives all the time."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while (answer := process.probe("/readyz"))[0] != NOT_READY or not _has(answer[1], words):
        assert process.is_running, process.log.read_text()
        assert time.monotonic() < deadline, f"{answer}\n{process.log.read_text()}"
        time.sleep(0.1)
    assert "\n" not in answer[1]
    assert process.probe("/healthz")[0] == OK


def _has(text: str, words: tuple[str, ...]) -> bool:
    return all(word in text for word in words)


def times_logged(process: OperatorProcess, words: str) -> int:
    """How many lines of the log have them."""
    return sum(words in line for line in process.log.read_text().splitlines())


Launch = Callable[[Path], OperatorProcess]


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    """Start an operator that need not become ready."""
    launched: list[OperatorProcess] = []

    def start(kubeconfig: Path) -> OperatorProcess:
        process = OperatorProcess(kubeconfig, tmp_path / "operator.log", ALONE)
        process.launch()
        launched.append(process)
        return process

    yield start
    for process in launched:
        process.stop()


Apply = Callable[[], None]


@pytest.fixture
def without_crds(kubectl: Kubectl, crds: list[str], apply_crds: Apply) -> Apply:
    """There are none; what installs them."""
    assert kubectl("delete", "crds", *crds).returncode == 0
    return apply_crds


@pytest.fixture
def apply_crds(kubectl: Kubectl, client: Client, crds: list[str]) -> Iterator[Apply]:
    """Install the CRDs (again), which is done in any case at the end."""

    def apply() -> None:
        assert kubectl("apply", "--server-side", "-f", str(CRDS)).returncode == 0
        await_served(client, crds)

    yield apply
    apply()


@pytest.fixture
def whole(client: Client) -> Iterator[None]:
    """The roles are whole again at the end."""
    grant(client)
    yield
    grant(client)


def role_without(client: Client, kind: str, name: str, resource: str, namespace: str = "") -> None:
    """Take all rights on a resource out of a role."""
    role = client.get(RBAC, kind, name, namespace)
    assert role is not None
    rules = [rule for rule in role["rules"] if resource not in rule["resources"]]
    assert len(rules) < len(role["rules"])
    client.patch(role, {"rules": rules})


# At the start


def test_explain_asks_for_them_too(kubeconfig: Path, without_crds: Apply) -> None:
    told = explain(kubeconfig, "tj/any")
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith("poolwise: CRD trainingjobs.poolwise.dev is not installed: ")


def test_crds_that_come_later(
    control_plane: ControlPlane, without_crds: Apply, whole: None, launch: Launch
) -> None:
    process = launch(control_plane.kubeconfig_for(USER))
    missing = "CRD trainingjobs.poolwise.dev is not installed: helm upgrade with crds.install=true"
    wait_until_it_says(process, missing, "kubectl apply --server-side -f crds/")
    without_crds()
    process.wait_ready()
    assert times_logged(process, missing) == 2  # that it is missing, and that it is there


def test_rights_that_come_later(
    control_plane: ControlPlane, client: Client, crds: list[str], launch: Launch
) -> None:
    user = "poolwise-latecomer"
    process = launch(control_plane.kubeconfig_for(user))
    missing = 'cannot list resource \\"trainingjobs\\"'
    wait_until_it_says(process, missing.replace("\\", ""), "the chart's roles give this right")
    grant(client, user)
    process.wait_ready()
    assert times_logged(process, missing) == 2


def test_an_api_server_that_comes_later(
    control_plane: ControlPlane, crds: list[str], whole: None, launch: Launch, tmp_path: Path
) -> None:
    line = Line(control_plane)
    process = launch(line.kubeconfig_for(USER, tmp_path))
    wait_until_it_says(process, f"the API server {line.url} does not answer")
    with line:
        process.wait_ready()
        assert times_logged(process, "does not answer") == 2


def test_an_operator_that_waits_ends_at_once_when_told(
    control_plane: ControlPlane, crds: list[str], launch: Launch
) -> None:
    process = launch(control_plane.kubeconfig_for("nobody"))
    wait_until_it_says(process, "cannot list")
    process.stop()
    assert process.exit_code == 0
    assert "Traceback" not in process.log.read_text()


# While it runs


@pytest.fixture
def running(
    control_plane: ControlPlane, client: Client, crds: list[str], whole: None, launch: Launch
) -> Operated:
    """An operator that had all it needs."""
    process = launch(control_plane.kubeconfig_for(USER))
    process.wait_ready()
    return Operated(client, TIMEOUT_SECONDS, control_plane, process)


def test_a_right_that_is_taken_away(running: Operated, namespace: str, nodes: NodeFactory) -> None:
    nodes([h100_node()])
    role_without(running.client, "ClusterRole", "poolwise", "pods")
    wait_until_it_says(running.process, "pods is forbidden")  # to list or to watch
    job = running.client.create(training_job(namespace, "train", 4))
    running.wait_condition(job, "Placed", "True")  # the others go on
    grant(running.client)
    running.process.wait_ready()


def test_a_lease_that_may_not_be_used(
    running: Operated, control_plane: ControlPlane, tmp_path: Path
) -> None:
    role_without(running.client, "Role", "poolwise-lease", "leases", "default")
    kubeconfig = control_plane.kubeconfig_for(USER)
    with_lease = OperatorProcess(kubeconfig, tmp_path / "second.log")
    with_lease.launch()
    try:
        wait_until_it_says(with_lease, 'resource "leases"')
        grant(running.client)
        with_lease.wait_ready()
    finally:
        with_lease.stop()


def test_a_crd_that_is_deleted_and_comes_back(
    running: Operated, kubectl: Kubectl, namespace: str, nodes: NodeFactory, apply_crds: Apply
) -> None:
    nodes([h100_node()])
    early = running.client.create(chat_service(namespace, "early"))
    running.wait_condition(early, "Placed", "True")
    gone = "inferenceservices.poolwise.dev"
    assert kubectl("delete", "crd", gone).returncode == 0
    wait_until_it_says(running.process, f"CRD {gone} is not installed")
    job = running.client.create(training_job(namespace, "train", 2))
    running.wait_condition(job, "Placed", "True")
    apply_crds()
    running.process.wait_ready()
    late = running.client.create(chat_service(namespace, "late"))
    running.wait(late, lambda seen: condition(seen, "Placed").get("status") == "True")


def test_an_api_server_that_goes_away(
    control_plane: ControlPlane, crds: list[str], whole: None, launch: Launch, tmp_path: Path
) -> None:
    line = Line(control_plane)
    with line:
        process = launch(line.kubeconfig_for(USER, tmp_path))
        process.wait_ready()
    wait_until_it_says(process, f"the API server {line.url} does not answer")
    with line:
        process.wait_ready()
