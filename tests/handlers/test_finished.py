"""Runs that are over are never run again, however soon what ran them is deleted."""

from __future__ import annotations

from typing import Any

import pytest

from poolwise.cluster.resources import EVENTS, JOBS
from poolwise.plan.names import PAUSED
from tests.handlers.shell import Shell, condition, h100_node, training_job

TTL = "ttlSecondsAfterFinished"


class Finishing(Shell):
    """A cluster with one TrainingJob, whose Job ends and is deleted when the test says."""

    def __init__(self, ttl_seconds: int = 0) -> None:
        super().__init__()
        self.run_of = training_job("a", "run", 8)
        self.run_of["spec"][TTL] = ttl_seconds
        self.put(h100_node(), self.run_of)

    def job(self) -> dict[str, Any]:
        (job,) = self.kube.all(JOBS)
        return job

    def end(self, type_: str = "Complete") -> None:
        told = {"type": type_, "status": "True", "reason": "Told", "message": "m"}
        self.put({**self.job(), "status": {"conditions": [told]}})

    def expire(self) -> None:
        """What the controller does that deletes finished Jobs."""
        for job in self.kube.all(JOBS):
            if TTL in job["spec"]:
                self.kube.vanish(job)

    def annotate(self, **annotations: str) -> None:
        live = self.look(self.run_of)
        self.put({**live, "metadata": {**live["metadata"], "annotations": annotations}})

    def edit_job(self, **spec: object) -> None:
        self.put({**self.job(), "spec": {**self.job()["spec"], **spec}})

    def lose(self) -> None:
        self.kube.vanish(self.job())

    def is_over(self, type_: str = "Complete") -> bool:
        told = condition(self.look(self.run_of), type_)
        return bool(told and told["status"] == "True" and not self.kube.all(JOBS))

    def warnings(self) -> list[str]:
        return [each["note"] for each in self.kube.all(EVENTS) if each["type"] == "Warning"]


@pytest.mark.parametrize("type_", ["Complete", "Failed"])
def test_its_job_goes_once_the_end_is_told(type_):
    shell = Finishing()
    shell.run(lambda: None)
    assert TTL not in shell.job()["spec"]
    shell.run(lambda: shell.end(type_), shell.expire)
    assert shell.is_over(type_)
    assert not any("jobs/run" in each for each in shell.run() if each.startswith("apply"))


def test_one_that_ends_while_nobody_looks_is_told_later():
    shell = Finishing()
    shell.run()
    shell.end()
    shell.expire()
    shell.run(shell.expire)
    assert shell.is_over()


def test_one_that_ends_while_it_is_paused_is_told_once_it_goes_on():
    shell = Finishing()
    shell.run(lambda: shell.annotate(**{PAUSED: "true"}), shell.end, shell.expire)
    assert TTL not in shell.job()["spec"]
    shell.run(lambda: shell.annotate(**{PAUSED: "false"}), shell.expire)
    assert shell.is_over()


def test_what_an_older_version_told_the_job_at_its_start_is_taken_back():
    shell = Finishing()
    shell.run()
    shell.edit_job(ttlSecondsAfterFinished=0)
    shell.run()
    assert TTL not in shell.job()["spec"]


@pytest.mark.parametrize("is_paused", [False, True])
def test_a_job_that_goes_with_its_end_is_not_made_again(is_paused):
    """Somebody deletes it, before the status can tell of the end; the event has its last state."""
    shell = Finishing()

    def end_and_go() -> None:
        shell.end()
        shell.lose()

    shell.run(
        lambda: shell.annotate(**{PAUSED: str(is_paused).lower()}),
        end_and_go,
        lambda: shell.annotate(**{PAUSED: "false"}),
    )
    assert shell.is_over()
    assert condition(shell.look(shell.run_of), "Complete")["message"] == "Told: m"
    assert shell.warnings() == []


def test_one_of_its_name_that_is_made_later_runs():
    shell = Finishing()

    def end_go_and_come_again() -> None:
        shell.end()
        shell.kube.vanish(shell.look(shell.run_of))
        shell.put(shell.run_of)

    shell.run(end_go_and_come_again)
    assert shell.job()["metadata"]["name"] == "run"
