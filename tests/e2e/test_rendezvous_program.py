"""The played torchrun as a program: one process for each node of a job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from e2e.controlplane import ports

TORCHRUN = Path(__file__).parents[2] / "e2e" / "images" / "bin" / "torchrun"


class Node:
    """One node's torchrun, as a process."""

    def __init__(self, settings: Mapping[str, str], node_rank: int) -> None:
        environment = {**os.environ, **settings, "PET_NODE_RANK": str(node_rank)}
        command = [sys.executable, "-IB", str(TORCHRUN), "--no-python", "train"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, env=environment, stdout=pipe, stderr=pipe, text=True
        )

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def wait(self) -> tuple[int, str, str]:
        """Its exit status and what it wrote."""
        output, errors = self.process.communicate(timeout=60)
        return self.process.returncode, output, errors


@pytest.fixture
def job() -> Mapping[str, str]:
    (port,) = ports.free(1)
    return {
        "PET_NNODES": "2",
        "PET_NPROC_PER_NODE": "2",
        "PET_RDZV_ENDPOINT": f"localhost:{port}",
        "E2E_RENDEZVOUS_TIMEOUT_SECONDS": "60",
    }


@pytest.fixture
def nodes() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_two_nodes_meet_and_each_prints_one_line(job: Mapping[str, str], nodes: ExitStack) -> None:
    started = [nodes.enter_context(Node(job, number)) for number in (1, 0)]
    for node, local in zip(started, ([2, 3], [0, 1]), strict=True):
        status, output, errors = node.wait()
        assert status == 0, errors
        report = json.loads(output)
        assert report["result"] == "met"
        assert report["ranks"] == [0, 1, 2, 3]
        assert report["localRanks"] == local
        assert report["worldSize"] == 4


def test_a_rank_that_fails_ends_its_node_and_its_next_attempt_joins(
    job: Mapping[str, str], nodes: ExitStack
) -> None:
    """As Kubernetes restarts the pod of one index; the other node's pod goes on."""
    job = {**job, "E2E_FAIL_RANK": "2"}
    first = nodes.enter_context(Node(job, 0))
    status, _, errors = nodes.enter_context(Node(job, 1)).wait()
    assert status == 1
    assert "torchrun: node 1, rank 2: fails in attempt 0, as E2E_FAIL_RANK=2 asks for" in errors
    again = nodes.enter_context(Node({**job, "POOLWISE_ATTEMPT": "1"}, 1))
    assert again.wait()[0] == 0
    status, output, _ = first.wait()
    assert status == 0
    assert json.loads(output)["rounds"] == 2


def test_nodes_that_disagree_on_the_size_fail_at_once(
    job: Mapping[str, str], nodes: ExitStack
) -> None:
    nodes.enter_context(Node(job, 0))
    status, output, errors = nodes.enter_context(Node({**job, "PET_NNODES": "3"}, 1)).wait()
    assert (status, output) == (1, "")
    assert "expects 6 ranks, node 0 expects 4" in errors


def test_sigterm_ends_a_node_that_waits(job: Mapping[str, str], nodes: ExitStack) -> None:
    node = nodes.enter_context(Node(job, 0))
    assert node.process.stderr is not None
    assert "node 0 of 2" in node.process.stderr.readline()
    node.process.send_signal(signal.SIGTERM)
    assert node.wait()[0] == 128 + signal.SIGTERM


def test_bad_settings_end_the_program_with_one_line(nodes: ExitStack) -> None:
    status, output, errors = nodes.enter_context(Node({"PET_NNODES": "two"}, 0)).wait()
    assert (status, output) == (1, "")
    assert errors == "torchrun: PET_NNODES=two: must be a whole number\n"
