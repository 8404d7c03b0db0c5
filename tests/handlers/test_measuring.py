"""The loop on the fake API server: what looks at rank 0 make of a run, and of the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from poolwise.cluster import clock
from poolwise.cluster.resources import JOBS, NODES
from poolwise.cluster.scraping import Target
from poolwise.handlers.turn import LOOKS_UNTIL_TOLD
from poolwise.plan.children.environment import INDEX
from poolwise.plan.history.learned import LEAST_WINDOWS
from poolwise.plan.signals.adapters import Fault
from poolwise.plan.steps.told import model_step_seconds
from tests.handlers.shell import Looking, condition, h100_node, training_job
from tests.plan.steps.given import Loop

PORTS = [{"name": "metrics", "containerPort": 9090}]
LOOK_SECONDS = 15.0
SLOWER = 1.4
LOOKS = 8 + 4 * (LEAST_WINDOWS + 1)
"""Of the warm-up and of windows."""


def run(name: str = "run", count: int = 8, **more: Any) -> dict[str, Any]:
    job = training_job("a", name, count)
    job["spec"]["run"]["ports"] = PORTS
    return {**job, "spec": {**job["spec"], **more}}


ADDRESS = {"podIP": "127.0.0.1"}


class Measured(Looking):
    """A cluster whose runs tell their steps."""

    def __init__(self) -> None:
        super().__init__()
        self.loops: dict[str, Loop | Fault] = {}
        """By the run's name."""
        self.asked: list[Target] = []

    async def tell(self, targets):
        self.asked = list(targets)
        found = {each: self.loops.get(each.replica.rpartition("-")[0]) for each in self.asked}
        return {
            target: loop.go(LOOK_SECONDS).sample() if isinstance(loop, Loop) else loop
            for target, loop in found.items()
        }

    def loop(self, engine):
        return engine.measurer

    def answer(self, node: str, address: Mapping[str, str] = ADDRESS) -> None:
        """Rank 0 of every run runs and has an address."""
        self.start_pods(node)
        for (kind, _, _), pod in list(self.kube.objects.items()):
            if kind.kind == "Pod":
                labels = {**pod["metadata"]["labels"], INDEX: "0"}
                metadata = {**pod["metadata"], "labels": labels}
                self.put({**pod, "metadata": metadata, "status": {**pod["status"], **address}})

    def status(self, job: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self.look(job)["status"]
        return found


@pytest.fixture
def cluster() -> Measured:
    shell = Measured()
    shell.put(h100_node(name="n"), h100_node(name="m"), run())
    shell.run()
    shell.answer("n")
    return shell


def train(cluster: Measured, slower: float = SLOWER, name: str = "run") -> Loop:
    """Looks at a run whose steps take so many times what the model said."""
    modelled = model_step_seconds(cluster.status(run(name))["plan"])
    assert modelled is not None
    now = clock.utc_now().timestamp()
    loop = cluster.loops[name] = Loop(slower * modelled, at_seconds=now - LOOK_SECONDS * LOOKS)
    cluster.looks(LOOKS)
    return loop


def test_a_run_that_tells_its_steps_is_measured(cluster):
    loop = train(cluster)
    status = cluster.status(run())
    assert condition(cluster.look(run()), "MetricsAvailable")["reason"] == "MetricsRead"
    assert status["observed"]["ratio"] == pytest.approx(SLOWER, rel=0.01)
    told = status["observed"]["training"]
    assert told["stepSeconds"] == pytest.approx(loop.step_seconds, rel=0.01)
    assert 0 < told["steps"] < told["ofSteps"]
    assert cluster.asked[0].port == 9090


def test_a_run_that_is_far_from_its_prediction_says_so(cluster):
    train(cluster, slower=1.6)
    cluster.looks(LOOKS * 2)
    found = condition(cluster.look(run()), "AsPlanned")
    assert (found["status"], found["reason"]) == ("False", "Mispredicted")
    assert "spec.training.execution: Eager" in found["message"]


def test_the_next_run_of_the_model_is_predicted_by_it_and_says_so(cluster):
    train(cluster)
    # Long enough for figures to be told with three windows and more.
    cluster.looks(LOOKS * 2)
    same, other = run("same"), run("other", mode="Plan")
    other["spec"]["training"] = {**other["spec"]["training"], "globalBatchSize": 128}
    cluster.put(same, other)
    cluster.run()
    plan, plain = (cluster.status(each)["plan"] for each in (same, run()))
    slower = plan["predicted"]["stepSeconds"] / plain["predicted"]["stepSeconds"]
    assert slower == pytest.approx(SLOWER**0.9, rel=0.02)
    assert plan["correctedFrom"]["training"]["samples"] == 1
    assert f"measured {SLOWER:.2f}x of the model on {plan['pool']}, 1 sample" in plan["reason"]
    factor = cluster.status(other)["plan"]["correctedBy"]["training"]
    assert factor == pytest.approx(SLOWER**0.56, rel=0.02)


def test_another_process_knows_what_the_last_one_told(cluster):
    train(cluster)
    cluster.looks(LOOKS * 2)
    told = cluster.status(run())["observed"]["training"]
    cluster.loops.clear()
    cluster.looks(1)
    assert cluster.status(run())["observed"]["training"] == told
    cluster.put(run("next"))
    cluster.run()
    assert "correctedBy" in cluster.status(run("next"))["plan"]


def test_a_run_without_the_port_is_left_alone(cluster):
    silent = training_job("a", "silent", 8)
    cluster.put(silent)
    cluster.run()
    cluster.answer("m")
    cluster.looks(2)
    found = condition(cluster.look(silent), "MetricsAvailable")
    assert (found["status"], found["reason"]) == ("False", "NoMetricsPort")
    assert "spec.run.ports" in found["message"]
    assert all("silent" not in each.replica for each in cluster.asked)
    assert condition(cluster.look(silent), "Placed")["status"] == "True"


def test_what_was_seen_of_a_run_that_lost_its_job_and_its_place_is_told_no_more(
    cluster, monkeypatch
):
    silent = training_job("a", "silent", 8)
    cluster.put(silent)
    cluster.run()
    cluster.answer("m")
    cluster.looks(2)

    def lose() -> None:
        for each in cluster.kube.all(JOBS):
            if each["metadata"]["name"] == "silent":
                cluster.kube.vanish(each)
        for node in cluster.kube.all(NODES):
            cluster.put({**node, "spec": {"unschedulable": True}})

    waits = iter([lambda: None, lose, lambda: None])
    monkeypatch.setattr(cluster, "wait", lambda: next(waits)())
    cluster.looks(3)
    assert condition(cluster.look(silent), "Placed")["status"] == "False"
    assert condition(cluster.look(silent), "MetricsAvailable")["reason"] == "NotMeasured"


def test_a_rank_that_has_no_address_yet_is_not_asked(cluster):
    cluster.answer("n", {})
    cluster.looks(1)
    assert cluster.asked == []
    cluster.answer("n")
    cluster.looks(1)
    assert [each.address for each in cluster.asked] == [ADDRESS["podIP"]]


def test_one_that_lies_is_told_so_and_nothing_else_happens(cluster):
    train(cluster)
    before = cluster.status(run())
    cluster.loops["run"] = Fault("answers '<html>', which is not Prometheus' text format")
    cluster.looks(LOOKS_UNTIL_TOLD - 1)
    assert condition(cluster.look(run()), "MetricsAvailable")["status"] == "True"
    cluster.looks(LOOKS_UNTIL_TOLD)
    found = condition(cluster.look(run()), "MetricsAvailable")
    assert (found["status"], found["reason"]) == ("False", "MetricsBroken")
    assert "rank 0: answers '<html>'" in found["message"]
    after = cluster.status(run())
    assert after["observed"] == before["observed"]
    ready = [condition({"status": each}, "Ready") for each in (before, after)]
    assert ready[0] == ready[1]


def test_looks_that_say_the_same_write_nothing(cluster):
    train(cluster)
    steady = cluster.looks(1)
    assert steady == []


def test_a_model_that_the_spec_spells_out_is_learned_by_its_shape(cluster):
    shape = {"layers": 16, "hidden": 2048, "ffn": 8192, "heads": 32, "kvHeads": 8, "vocab": 128256}
    own = {"transformer": shape}
    other = {"transformer": {**shape, "layers": 24}}
    cluster.put(run("own", model=own))
    cluster.run()
    cluster.answer("m")
    train(cluster, name="own")
    cluster.looks(LOOKS * 2)
    alike, unlike = run("alike", model=own, mode="Plan"), run("unlike", model=other, mode="Plan")
    cluster.put(alike, unlike)
    cluster.run()
    assert "correctedBy" in cluster.status(alike)["plan"]
    assert "correctedBy" not in cluster.status(unlike)["plan"]
