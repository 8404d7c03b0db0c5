"""``poolwise explain`` on live objects, also while it has to wait for the operator."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.apiserver.conftest import NodeFactory
from tests.apiserver.operated import Operated, h100_node, training_job

pytestmark = pytest.mark.apiserver


def explain(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "poolwise", "explain", *arguments]
    return subprocess.run(
        [*command, "--kubeconfig", str(kubeconfig)], capture_output=True, text=True, check=False
    )


@contextmanager
def stopped(operator: Operated) -> Iterator[None]:
    """Nobody plans meanwhile."""
    operator.process.stop()
    try:
        yield
    finally:
        operator.process.start()


def test_a_plan_that_comes_is_waited_for_and_printed(
    operator: Operated, kubeconfig: Path, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    operator.client.create(training_job(namespace, "asks", 4, mode="Plan"))
    told = explain(kubeconfig, "tj/asks", "-n", namespace, "--wait", "60")
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("asks is only planned, and would run on ")


def test_a_plan_of_an_earlier_spec_is_none(
    operator: Operated, kubeconfig: Path, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    job = operator.client.create(training_job(namespace, "asks", 4, mode="Plan"))
    operator.wait_condition(job, "Planned", "True")
    with stopped(operator):
        operator.client.patch(job, {"spec": {"accelerators": {"count": 8}}})
        told = explain(kubeconfig, "tj/asks", "-n", namespace, "--wait", "1")
    assert told.returncode == 1
    assert "has not seen its newest spec" in told.stderr


def test_why_there_is_no_plan_is_said_when_the_time_is_over(
    operator: Operated, kubeconfig: Path, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    job = operator.client.create(training_job(namespace, "huge", 4096, mode="Plan"))
    operator.wait_condition(job, "Planned", "False")
    told = explain(kubeconfig, "tj/huge", "-n", namespace, "--wait", "1")
    assert (told.returncode, told.stdout) == (1, "")
    [line] = told.stderr.splitlines()
    said = "poolwise: TrainingJob huge was not planned within 1 s: NoFeasiblePool: "
    assert line.startswith(said)


def test_without_an_operator_it_asks_for_one(
    operator: Operated, kubeconfig: Path, namespace: str
) -> None:
    with stopped(operator):
        operator.client.create(training_job(namespace, "alone", 4))
        told = explain(kubeconfig, "tj/alone", "-n", namespace, "--wait", "1")
    assert told.returncode == 1
    [line] = told.stderr.splitlines()
    assert line.endswith("it has no status yet; is the operator running?")


def test_what_is_not_there_is_not_waited_for(
    kubeconfig: Path, crds: list[str], namespace: str
) -> None:
    told = explain(kubeconfig, "tj/missing", "-n", namespace, "--wait", "60")
    assert told.returncode == 2
    said = f"poolwise: there is no TrainingJob missing in namespace {namespace}\n"
    assert told.stderr == said
