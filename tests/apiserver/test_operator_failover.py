"""Two operators on one cluster: one writes, and the other takes over when it ends or is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from e2e.controlplane.client import Client
from e2e.controlplane.cluster import ControlPlane
from e2e.operator_process import OK, OperatorProcess
from e2e.operator_rights import USER
from tests.apiserver.conftest import Kubectl, NodeFactory
from tests.apiserver.operated import (
    FREQUENT_LOOKS,
    HOLDER,
    Operated,
    h100_node,
    operated,
    training_job,
)

pytestmark = pytest.mark.apiserver

LEASE = FREQUENT_LOOKS | {
    "POOLWISE_LEASE_SECONDS": "8",
    "POOLWISE_LEASE_RENEW_SECONDS": "7",
    "POOLWISE_LEASE_RETRY_SECONDS": "0.5",
}
"""Soon over when its holder is lost, yet not while a busy machine keeps that from renewing it."""
PATIENCE_SECONDS = 60.0
"""Of which a lost holder's Lease takes eight."""


@pytest.fixture
def leader(
    control_plane: ControlPlane, client: Client, crds: list[str], tmp_path: Path
) -> Iterator[Operated]:
    """The operator that came first."""
    client.delete(HOLDER)  # of an earlier test's operator
    with operated(control_plane, client, tmp_path / "leader.log", LEASE) as operator:
        client.wait_for(HOLDER, lambda lease: bool(lease["spec"]["holderIdentity"]))
        yield operator


@pytest.fixture
def standby(leader: Operated, tmp_path: Path) -> Iterator[OperatorProcess]:
    """The operator that came second."""
    kubeconfig = leader.control_plane.kubeconfig_for(USER)
    with OperatorProcess(kubeconfig, tmp_path / "standby.log", LEASE) as process:
        yield process


def test_a_leader_that_is_told_to_end_hands_the_lease_over(leader: Operated) -> None:
    leader.process.stop()
    assert leader.process.exit_code == 0
    assert (leader.look(HOLDER) or {})["spec"]["holderIdentity"] == ""
    assert "Traceback" not in leader.process.log.read_text()


def test_a_standby_watches_and_does_not_write(
    leader: Operated, standby: OperatorProcess, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    leader.await_idle(1)  # else it may first tell that there is no place
    job = leader.client.create(training_job(namespace, "train", 8))
    leader.wait_condition(job, "PodsReady", "True")
    leader.await_told(job)
    leader.settle()
    told = leader.events_of(job)
    assert sorted(event["reason"] for event in told) == ["NoMetricsPort", "Placed"]
    holder = (leader.look(HOLDER) or {})["spec"]["holderIdentity"]
    assert {event["reportingInstance"] for event in told} == {holder}
    assert "leading" not in standby.log.read_text()
    assert standby.probe("/readyz") == (OK, "ok")


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(OperatorProcess.stop, id="ends"),
        pytest.param(OperatorProcess.kill, id="is-lost"),
    ],
)
def test_the_standby_takes_over(
    leader: Operated, standby: OperatorProcess, namespace: str, nodes: NodeFactory, how
) -> None:
    nodes([h100_node()])
    early = leader.client.create(training_job(namespace, "early", 4))
    leader.wait_condition(early, "PodsReady", "True")
    leader.await_told(early)
    leader.settle()
    job = leader.look(early)
    mark = leader.mark()
    how(leader.process)
    late = leader.client.create(training_job(namespace, "late", 4))
    replace(leader, timeout_seconds=PATIENCE_SECONDS).wait_condition(late, "Placed", "True")
    assert [write for write in leader.writes(mark) if write.name == "early"] == []
    assert leader.look(early) == job


def test_the_api_server_gives_a_write_up_when_it_is_told_to(
    kubectl: Kubectl, client: Client, namespace: str
) -> None:
    """The operator tells it how long it leads: a write must not be made after another took over."""
    written = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}}'
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    refused = kubectl("create", "--raw", f"{path}?timeout=1ns", "-f", "-", stdin=written)
    assert "Timeout" in refused.stderr
    assert client.get("v1", "ConfigMap", "late", namespace) is None
    made = kubectl("create", "--raw", f"{path}?timeout=5000ms", "-f", "-", stdin=written)
    assert made.returncode == 0
