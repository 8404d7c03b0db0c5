"""A placement that does not start: remembered first, then taken down, then tried elsewhere; also
when the process ends after any single write of it."""

from __future__ import annotations

import copy
import json
from datetime import timedelta
from typing import Any

import pytest

from poolwise.cluster.clock import utc_now
from poolwise.plan.conditions import timestamp
from poolwise.plan.names import PLACEMENT
from tests.handlers.shell import Shell, condition, training_job
from tests.plan.provisioning.given import growing

JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "a"}}


class Crash(BaseException):
    """The process is gone."""


def waiting() -> tuple[Shell, dict[str, Any]]:
    """A job whose pods wait for nodes of the cheaper pool, and half an hour has passed."""
    shell = Shell()
    shell.put(growing("a-spot", price={"perNodeHour": "20"}), growing("b-reserved"))
    job = training_job("a", "train", 16)
    shell.put(job)
    shell.run()
    assert pool_of(shell) == "a-spot"
    made = copy.deepcopy(shell.look(JOB))
    made["metadata"]["creationTimestamp"] = timestamp(utc_now() - timedelta(minutes=31))
    shell.put(made)
    return shell, job


def pool_of(shell: Shell) -> str:
    record = shell.look(JOB)["metadata"]["annotations"][PLACEMENT]
    return str(json.loads(record)["pool"])


def test_it_is_remembered_before_it_is_taken_down_and_then_tried_elsewhere():
    shell, job = waiting()
    writes = [each for each in shell.run() if "events" not in each and "pools" not in each]
    assert pool_of(shell) == "b-reserved"
    deleted = next(n for n, each in enumerate(writes) if each.startswith("delete"))
    told = next(n for n, each in enumerate(writes) if "trainingjobs" in each)
    assert told < deleted
    status = shell.look(job)["status"]
    [given_up] = status["start"]["givenUp"]
    assert (given_up["pool"], given_up["attempts"]) == ("a-spot", 1)
    assert condition(shell.look(job), "Placed")["status"] == "True"
    assert shell.run() == []


def test_one_whose_pool_is_deleted_before_any_pod_has_a_node_goes_elsewhere_at_once():
    shell = Shell()
    spot, job = growing("a-spot", price={"perNodeHour": "20"}), training_job("a", "train", 16)
    shell.put(spot, growing("b-reserved"), job)
    shell.run()
    shell.run(lambda: shell.kube.vanish(shell.look(spot)))
    assert pool_of(shell) == "b-reserved"
    assert "is gone" not in condition(shell.look(job), "Placed")["message"]
    assert shell.run() == []


def test_a_crash_after_any_write_changes_nothing():
    calm, job = waiting()
    writes = calm.run()
    expected = calm.look(job)["status"]["start"]["givenUp"][0]
    for number in range(1, len(writes) + 1):
        shell, job = waiting()
        left = iter(range(number, 0, -1))

        def crash(_: str, left=left) -> None:
            if next(left, 0) == 1:
                raise Crash

        shell.kube.after_write = crash
        with pytest.raises((Crash, BaseExceptionGroup)):
            shell.run()
        shell.kube.after_write = lambda _: None
        shell.run()
        assert pool_of(shell) == "b-reserved", writes[:number]
        found = shell.look(job)["status"]["start"]["givenUp"]
        assert [each["attempts"] for each in found] == [expected["attempts"]], writes[:number]


def test_a_pass_is_due_when_a_pool_may_be_tried_again():
    shell, _ = waiting()
    shell.run()
    due = shell.engine.planner.decisions.look_again_at
    assert due is not None
    assert timedelta(minutes=9) < due - utc_now() < timedelta(minutes=11)
