"""What an operator that runs goes through: an API server that goes away in the middle of a plan, a
network that goes silent, namespaces, rights and CRDs that go and come back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.controlplane import namespaces
from e2e.controlplane.client import Client
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.served import await_served
from e2e.operator_process import OperatorProcess
from e2e.operator_rights import USER, await_right, grant
from tests.apiserver.conftest import CRDS, Kubectl, NodeFactory
from tests.apiserver.operated import (
    API,
    HOLDER,
    TIMEOUT_SECONDS,
    Operated,
    chat_service,
    child,
    condition,
    h100_node,
    training_job,
)
from tests.apiserver.outage import Line
from tests.apiserver.test_operator_failover import LEASE

pytestmark = pytest.mark.apiserver

ALONE = {"POOLWISE_LEADER_ELECTION": "false", "POOLWISE_RETRY_LIMIT_SECONDS": "2"}


@pytest.fixture
def whole(client: Client) -> Iterator[None]:
    """The operator has its rights, and again at the end."""
    grant(client)
    yield
    grant(client)


@pytest.fixture
def line(control_plane: ControlPlane) -> Iterator[Line]:
    """The only way to the API server for operators of a test."""
    with Line(control_plane) as line:
        yield line


Launch = Callable[..., Operated]


@pytest.fixture
def launch(
    control_plane: ControlPlane, client: Client, crds: list[str], whole: None, tmp_path: Path
) -> Iterator[Launch]:
    """Start an operator, with this kubeconfig and these settings."""
    launched: list[OperatorProcess] = []

    def start(kubeconfig: Path | None = None, environment: dict[str, str] = ALONE) -> Operated:
        log = tmp_path / f"operator-{len(launched)}.log"
        kubeconfig = kubeconfig or control_plane.kubeconfig_for(USER)
        process = OperatorProcess(kubeconfig, log, environment)
        process.start()
        launched.append(process)
        return Operated(client, 2 * TIMEOUT_SECONDS, control_plane, process)

    yield start
    for process in launched:
        process.stop()
        assert "Traceback" not in process.log.read_text()


def test_an_api_server_that_goes_in_the_middle_of_a_plan(
    launch: Launch, line: Line, namespace: str, nodes: NodeFactory, tmp_path: Path
) -> None:
    # Two at a time: with all hands the last Job is asked for 0.2 s after the first was seen.
    few = ALONE | {"POOLWISE_QUEUE_WORKERS": "2"}
    operator = launch(line.kubeconfig_for(USER, tmp_path), few)
    nodes([h100_node() for _ in range(5)])
    operator.await_idle(nodes=5)
    jobs = [training_job(namespace, f"train-{number}", 2) for number in range(20)]
    created = operator.client.create_all(jobs)
    operator.until(lambda: operator.client.list("batch/v1", "Job", namespace), "nothing runs")
    line.stop()
    begun = len(operator.client.list("batch/v1", "Job", namespace))
    assert begun < len(jobs)
    time.sleep(2)
    line.start()
    for job in created:
        operator.wait_condition(job, "PodsReady", "True")
    assert len(operator.client.list("batch/v1", "Job", namespace)) == len(jobs)
    assert len(operator.client.list("v1", "Pod", namespace)) == len(jobs)


@pytest.fixture
def leader(
    launch: Launch,
    line: Line,
    client: Client,
    namespace: str,
    nodes: NodeFactory,
    tmp_path: Path,
) -> Operated:
    """One that leads over the line, and has placed a run."""
    client.delete(HOLDER)
    leader = launch(line.kubeconfig_for(USER, tmp_path), LEASE)
    nodes([h100_node()])
    leader.wait_condition(client.create(training_job(namespace, "early", 4)), "PodsReady", "True")
    return leader


def test_a_leader_whose_network_goes_silent_is_replaced_and_ends(
    leader: Operated, launch: Launch, line: Line, client: Client, namespace: str
) -> None:
    first = (leader.look(HOLDER) or {})["spec"]["holderIdentity"]
    standby = launch(environment=LEASE)
    line.silence()
    late = client.create(training_job(namespace, "late", 4))
    standby.wait_condition(late, "PodsReady", "True")
    assert (leader.look(HOLDER) or {})["spec"]["holderIdentity"] != first
    leader.until(lambda: not leader.process.is_running, "the first one runs")
    assert leader.process.exit_code not in (0, None)
    assert "the Lease was lost" in leader.process.log.read_text()


def test_a_leader_that_is_told_to_end_while_nobody_answers_ends(
    leader: Operated, line: Line
) -> None:
    """Before it is ended by force, as by a kubelet: the Lease that it cannot hand over runs out."""
    line.silence()
    leader.process.stop()
    assert leader.process.exit_code == 0


def test_a_namespace_that_is_deleted_while_its_workloads_are_placed(
    launch: Launch, client: Client, namespace: str, nodes: NodeFactory
) -> None:
    operator = launch()
    nodes([h100_node() for _ in range(2)])
    operator.await_idle(nodes=2)
    doomed = namespaces.create(client)
    client.create_all([training_job(doomed, f"train-{number}", 2) for number in range(6)])
    client.create_all([chat_service(doomed, f"chat-{number}") for number in range(2)])
    operator.until(lambda: client.list("batch/v1", "Job", doomed), "nothing runs")
    namespaces.remove(client, doomed)
    kept = client.create(training_job(namespace, "kept", 16))
    operator.wait_condition(kept, "PodsReady", "True")
    operator.settle()


WRITES = {"create", "patch", "update", "delete"}


def only_read(client: Client) -> None:
    """Leave the operator the right to tell, and to look at what it does; from now on."""
    role = client.get("rbac.authorization.k8s.io/v1", "ClusterRole", "poolwise")
    assert role is not None
    for rule in role["rules"]:
        if not any("status" in each or each == "events" for each in rule["resources"]):
            rule["verbs"] = [verb for verb in rule["verbs"] if verb not in WRITES]
    client.patch(role, {"rules": [rule for rule in role["rules"] if rule["verbs"]]})
    await_right(client, USER, False, verb="patch", group="batch", resource="jobs")


def test_the_right_to_write_that_is_taken_away_and_given_back(
    launch: Launch, client: Client, namespace: str, nodes: NodeFactory
) -> None:
    operator = launch()
    nodes([h100_node()])
    runs = client.create(chat_service(namespace, "runs"))
    operator.wait_condition(runs, "Ready", "True")
    only_read(client)
    waits = client.create(training_job(namespace, "waits", 2))
    refused = operator.wait(waits, lambda seen: "Forbidden" in str(seen.get("status")))
    assert "cannot" in condition(refused, "Placed")["message"]
    client.delete(child(runs, "v1", "Service"))
    time.sleep(2)
    assert operator.look(child(runs, "v1", "Service")) is None
    grant(client)
    operator.wait_condition(waits, "PodsReady", "True")
    operator.wait(child(runs, "v1", "Service"), lambda _: True)
    operator.wait_condition(runs, "Ready", "True")


def test_all_crds_that_are_deleted_and_applied_again(
    launch: Launch, client: Client, crds: list[str], kubectl: Kubectl, nodes: NodeFactory
) -> None:
    operator = launch()
    namespace = namespaces.create(client)
    nodes([h100_node()])
    try:
        early = client.create(training_job(namespace, "early", 8))
        operator.wait_condition(early, "PodsReady", "True")
        assert kubectl("delete", "crds", *crds).returncode == 0
    finally:
        assert kubectl("apply", "--server-side", "-f", str(CRDS)).returncode == 0
        await_served(client, crds)
    operator.until(lambda: client.list(API, "AcceleratorPool"), "no pool is told")
    late = client.create(training_job(namespace, "late", 8))
    operator.wait_condition(late, "PodsReady", "True")
    namespaces.remove(client, namespace)
