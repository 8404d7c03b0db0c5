"""How the operator starts: with which rights, where, and with which words it refuses."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.controlplane import namespaces
from e2e.controlplane.client import Client
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.ports import LOOPBACK
from e2e.operator_process import OperatorProcess
from e2e.operator_rights import grant
from tests.apiserver.conftest import NodeFactory
from tests.apiserver.operated import (
    TIMEOUT_SECONDS,
    Operated,
    child,
    condition,
    h100_node,
    training_job,
)

pytestmark = pytest.mark.apiserver

TENANT = "poolwise-tenant"
LEASE = {"POOLWISE_LEASE_NAME": "poolwise-tenant", "POOLWISE_LEADER_ELECTION": "false"}


def run(kubeconfig: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "poolwise", "run", "--kubeconfig", str(kubeconfig)]
    quiet = {"POOLWISE_METRICS_LISTEN": "", "POOLWISE_LIVENESS_LISTEN": ""}
    return subprocess.run(
        command, env=quiet | environment, capture_output=True, text=True, check=False
    )


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    ended = run(tmp_path / "missing")
    assert ended.returncode == 2
    assert ended.stderr == f"poolwise: kubeconfig {tmp_path / 'missing'}: no such file\n"


@pytest.mark.parametrize("variable", ["POOLWISE_METRICS_LISTEN", "POOLWISE_LIVENESS_LISTEN"])
def test_an_address_that_is_taken_is_named(variable: str, tmp_path: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        listen = f"{LOOPBACK}:{taken.getsockname()[1]}"
        ended = run(tmp_path / "missing", **{variable: listen})
    assert ended.returncode == 2
    said = f"environment variable {variable}: '{listen}' cannot be listened on: "
    assert ended.stderr == f"poolwise: {said}address already in use\n"


def test_a_setting_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    ended = run(tmp_path / "missing", POOLWISE_QUEUE_WORKERS="many")
    assert ended.returncode == 2
    assert "POOLWISE_QUEUE_WORKERS: 'many' cannot be used" in ended.stderr


@pytest.fixture
def tenant(
    control_plane: ControlPlane, client: Client, crds: list[str], namespace: str, tmp_path: Path
) -> Iterator[Operated]:
    """An operator that may do its work in one namespace only."""
    grant(client, TENANT, namespace)
    environment = {**LEASE, "POOLWISE_NAMESPACES": namespace}
    kubeconfig = control_plane.kubeconfig_for(TENANT)
    with OperatorProcess(kubeconfig, tmp_path / "tenant.log", environment) as process:
        yield Operated(client, TIMEOUT_SECONDS, control_plane, process)


def test_one_namespace_is_served_with_rights_in_that_one_alone(
    tenant: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    elsewhere = namespaces.create(tenant.client)
    try:
        other = tenant.client.create(training_job(elsewhere, "other", 4))
        job = tenant.client.create(training_job(namespace, "train", 4))
        tenant.wait_condition(job, "PodsReady", "True")
        assert condition(tenant.look(other) or {}, "Accepted") == {}
        assert tenant.look(child(other, "batch/v1", "Job")) is None
    finally:
        namespaces.remove(tenant.client, elsewhere)


def test_health_and_metrics_are_served(operator: Operated) -> None:
    def read(port: int, path: str) -> str:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}{path}", timeout=5) as answer:
            return str(answer.read(), "utf-8")

    assert "watches" in read(operator.process.liveness_port, "/healthz")
    assert read(operator.process.liveness_port, "/readyz") == "ok\n"
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while "poolwise_leader 1.0" not in (metrics := read(operator.process.metrics_port, "/metrics")):
        assert time.monotonic() < deadline, metrics  # the Lease of the last test may still hold
        time.sleep(0.1)
    assert 'poolwise_api_requests_total{code="200",resource="nodes",verb="list"}' in metrics
