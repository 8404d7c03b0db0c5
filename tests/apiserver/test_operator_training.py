"""The operator on a real API server, with a training loop that tells its steps.

The fake kubelets give pods addresses of 127.0.0.0/8, so a process that listens on all of them
answers for rank 0 of whichever run has its port.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from e2e.controlplane import ports
from e2e.controlplane.client import Object
from e2e.controlplane.supervised import REPOSITORY
from tests.apiserver.conftest import NodeFactory
from tests.apiserver.operated import (
    CHECKPOINT,
    Operated,
    checkpoint_volume,
    condition,
    h100_node,
    training_job,
)

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(900)]

SETTINGS = {"POOLWISE_TRAINING_INTERVAL_SECONDS": "0.5"}
WAIT_SECONDS = 400.0
SLOWER = 1.5
SAVE_STEPS = 10


def job(namespace: str, name: str, port: int, **more: Any) -> Object:
    """Of steps that take half a second, so that a dozen are soon made."""
    made = training_job(namespace, name, 8)
    training = {"globalBatchSize": 8, "sequenceLength": 4096, "tokens": "1G"}
    run = {**made["spec"]["run"], "ports": [{"name": "metrics", "containerPort": port}]}
    made["spec"] |= {"training": training, "run": run, **more}
    return made


@contextmanager
def loop(port: int, step_seconds: float) -> Iterator[None]:
    """A process that trains while the ``with`` lasts."""
    words = [f"--port={port}", f"--step-seconds={step_seconds}", f"--save-every={SAVE_STEPS}"]
    command = [sys.executable, "-m", "e2e.images.trainer", *words]
    process = subprocess.Popen(command, cwd=REPOSITORY)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def wait(operator: Operated, target: Object, until: Callable[[Object], bool]) -> Object:
    return operator.client.wait_for(target, until, WAIT_SECONDS)


def training(seen: Object) -> Object:
    found: Object = seen.get("status", {}).get("observed", {}).get("training", {})
    return found


def plan_of(seen: Object) -> Object:
    found: Object = seen.get("status", {}).get("plan", {})
    return found


def is_so(type_: str, status: str, reason: str) -> Callable[[Object], bool]:
    def holds(seen: Object) -> bool:
        found = condition(seen, type_)
        return (found.get("status"), found.get("reason")) == (status, reason)

    return holds


def test_a_run_is_measured_over_restarts_and_the_next_one_is_predicted_by_it(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node(), h100_node()])
    (port,) = ports.free(1)
    for document in checkpoint_volume(namespace):
        operator.client.create(document)
    rare = {**CHECKPOINT, "interval": "24h"}  # so that they are no part of a predicted step
    run = operator.client.create(job(namespace, "run", port, checkpoint=rare))
    placed = wait(operator, run, is_so("MetricsAvailable", "False", "MetricsBroken"))
    assert "rank 0: cannot be scraped" in condition(placed, "MetricsAvailable")["message"]
    plan = wait(operator, run, lambda seen: condition(seen, "Ready").get("status") == "True")
    predicted = plan["status"]["plan"]["predicted"]["stepSeconds"]

    with loop(port, SLOWER * predicted):
        wait(operator, run, is_so("MetricsAvailable", "True", "MetricsRead"))
        seen = wait(
            operator,
            run,
            lambda seen: (
                training(seen).get("samples", 0) >= 3 and "lastCheckpointSteps" in training(seen)
            ),
        )
        told, observed = training(seen), seen["status"]["observed"]
        assert told["stepSeconds"] >= SLOWER * predicted * 0.99, told  # it sleeps so long at least
        assert observed["ratio"] == pytest.approx(told["stepSeconds"] / predicted, rel=0.01)
        assert 0 < told["lastCheckpointSteps"] <= told["steps"] < told["ofSteps"]

        following = operator.client.create(job(namespace, "next", port, checkpoint=rare))
        after = wait(operator, following, lambda seen: "pool" in plan_of(seen))
        plan = plan_of(after)
        measured = plan["correctedFrom"]["training"]
        assert measured["samples"] == 1
        assert plan["correctedBy"]["training"] == pytest.approx(
            min(measured["ratio"] ** 0.9, 2.0), rel=0.02
        )
        assert plan["predicted"]["stepSeconds"] == pytest.approx(
            predicted * plan["correctedBy"]["training"], rel=0.02
        )
        assert "x of the model on" in plan["reason"]

    silent = wait(operator, run, is_so("MetricsAvailable", "False", "MetricsBroken"))
    assert condition(silent, "Ready")["status"] == "True"
    kept = training(silent)["lastCheckpointSteps"]
    with loop(port, SLOWER * predicted):
        again = wait(operator, run, lambda seen: training(seen).get("stepsBefore", 0) > 0)
        told = training(again)
        assert told["stepsBefore"] >= kept
        assert told["steps"] >= told["stepsBefore"]

        # Another process knows what this one told.
        operator.process.stop()
        operator.process.start()
        operator.settle()
        later = wait(operator, run, lambda seen: training(seen)["steps"] > told["steps"])
        assert training(later)["stepsBefore"] == told["stepsBefore"]

    _goes_on_from_its_checkpoint(operator, run)


def _goes_on_from_its_checkpoint(operator: Operated, run: Object) -> None:
    """Suspended and resumed, it is planned with the steps that its checkpoint lacks."""
    operator.client.patch(run, {"spec": {"suspend": True}})
    stopped = wait(operator, run, is_so("Suspended", "True", "Suspended"))
    told = training(stopped)
    operator.client.patch(run, {"spec": {"suspend": False}})
    resumed = wait(operator, run, is_so("Placed", "True", "Placed"))
    plan = plan_of(resumed)
    ahead = told["ofSteps"] - told["lastCheckpointSteps"]
    assert plan["stepsAhead"] == pytest.approx(ahead, abs=1)
    assert plan["totalSeconds"] == pytest.approx(ahead * plan["predicted"]["stepSeconds"], rel=0.01)
    assert f"last checkpoint, at step {told['lastCheckpointSteps']:,}" in plan["reason"]


def test_a_run_whose_flops_nobody_told_goes_by_runs_of_it(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    (port,) = ports.free(1)
    undescribed = {
        "model": {"custom": {"parameters": "25M", "activationBytesPerSample": "90M"}},
        "accelerators": {"count": 1},
    }
    run = job(namespace, "run", port, **undescribed)
    run["spec"]["training"] = {"globalBatchSize": 256, "samples": "100M"}
    following = {**run, "metadata": {**run["metadata"], "name": "next"}}

    run = operator.client.create(run)
    first = plan_of(wait(operator, run, is_so("MetricsAvailable", "False", "MetricsBroken")))
    assert "estimated from data sheets until a run is measured" in first["reason"]
    seconds = first["predicted"]
    assert seconds["stepSecondsHigh"] > 20 * seconds["stepSeconds"]

    with loop(port, 0.7):
        wait(operator, run, lambda seen: training(seen).get("samples", 0) >= 3)
    # What it told last may be newer than what was seen.
    ended = wait(operator, run, is_so("MetricsAvailable", "False", "MetricsBroken"))
    told = training(ended)["stepSeconds"]
    following = operator.client.create(following)
    plan = plan_of(wait(operator, following, lambda seen: "pool" in plan_of(seen)))
    assert plan["predicted"]["stepSeconds"] == pytest.approx(told, rel=0.05)
    assert plan["predicted"]["stepSecondsHigh"] < 1.3 * told
    assert "its speed is that of one measured run here" in plan["reason"]


def test_a_run_that_tells_nothing_is_as_it_was_without(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    run = operator.client.create(training_job(namespace, "silent", 8))
    seen = wait(operator, run, is_so("MetricsAvailable", "False", "NoMetricsPort"))
    assert "spec.run.ports" in condition(seen, "MetricsAvailable")["message"]
    seen = wait(operator, run, lambda seen: condition(seen, "Ready").get("status") == "True")
    assert "training" not in seen["status"]["observed"]
    operator.settle()
    assert operator.writes_for(4.0) == []
