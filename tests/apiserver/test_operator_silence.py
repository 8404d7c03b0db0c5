"""Converged means silent: with nothing changing the operator writes nothing, restarted or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.controlplane.client import Client
from e2e.controlplane.cluster import ControlPlane
from tests.apiserver.conftest import NodeFactory
from tests.apiserver.operated import (
    FREQUENT_LOOKS,
    Operated,
    chat_service,
    h100_node,
    operated,
    training_job,
    with_environment,
)

pytestmark = pytest.mark.apiserver


@pytest.fixture
def resyncing(
    control_plane: ControlPlane, client: Client, crds: list[str], tmp_path: Path
) -> Iterator[Operated]:
    """An operator that looks at everything again each second."""
    hurry = FREQUENT_LOOKS | {"POOLWISE_RESYNC_SECONDS": "1", "POOLWISE_RELIST_SECONDS": "1"}
    with operated(control_plane, client, tmp_path / "operator.log", hurry) as operator:
        yield operator


@pytest.fixture
def converged(resyncing: Operated, namespace: str, nodes: NodeFactory) -> Operated:
    """One workload of each state that lasts: placed, waiting, ended, rejected, only planned."""
    nodes([h100_node(), h100_node()])
    create = resyncing.client.create
    runs = create(training_job(namespace, "runs", 8))
    resyncing.wait_condition(runs, "PodsReady", "True")
    ends = create(with_environment(training_job(namespace, "ends", 4), FAKE_RUN_SECONDS="0"))
    resyncing.wait_condition(ends, "Complete", "True")
    chat = create(chat_service(namespace, "chat"))
    resyncing.wait_condition(chat, "Ready", "True")
    resyncing.wait_condition(create(training_job(namespace, "waits", 16)), "Placed", "False")
    resyncing.wait_condition(
        create(training_job(namespace, "asks", 8, mode="Plan")), "Planned", "True"
    )
    unknown = training_job(namespace, "unknown", 8, model={"preset": "no-such-model"})
    resyncing.wait_condition(create(unknown), "Accepted", "False")
    resyncing.await_told(runs, chat)
    resyncing.settle()
    return resyncing


def test_nothing_is_written_through_several_resyncs(converged: Operated) -> None:
    assert list(map(str, converged.writes_for(5))) == []


def test_a_restarted_operator_writes_nothing(converged: Operated) -> None:
    mark = converged.mark()
    converged.process.kill()
    converged.resume()
    converged.settle()
    assert list(map(str, converged.writes(mark))) == []
