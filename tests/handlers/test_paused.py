"""Objects whose children are not written: by annotation, or since they cannot be made."""

from __future__ import annotations

import pytest

from poolwise.cluster.resources import DEPLOYMENTS, JOBS
from poolwise.plan.names import PAUSED
from tests.handlers.shell import Shell, chat_service, condition, h100_node, training_job


def test_one_that_is_paused_before_its_children_are_written_holds_no_nodes():
    shell, first, second = Shell(), training_job("a", "first", 8), training_job("a", "second", 8)
    shell.put(h100_node(), first)

    def pause_once_told(write):
        if write == "patch status trainingjobs/first":
            shell.kube.after_write = lambda write: None
            live = shell.look(first)
            paused = {**live["metadata"], "annotations": {"poolwise.dev/paused": "true"}}
            shell.put({**live, "metadata": paused})

    shell.kube.after_write = pause_once_told
    shell.run(lambda: shell.put(second))
    assert [job["metadata"]["name"] for job in shell.kube.all(JOBS)] == ["second"]
    assert shell.run() == []


@pytest.mark.parametrize("is_paused", [False, True])
def test_what_runs_and_cannot_be_made_any_more_goes_on_and_says_why(monkeypatch, is_paused):
    """Its pool has come to have other hardware, for which its engine has no image."""
    shell, chat = Shell(), chat_service("a", "chat")
    shell.put(h100_node(), chat)
    shell.run()
    monkeypatch.setattr("poolwise.plan.children.replica.default_image", lambda *about: None)
    live = shell.look(chat)
    if is_paused:
        live["metadata"]["annotations"] = {PAUSED: "true"}
        shell.put(live)
    writes = shell.run()
    told = shell.look(chat)
    assert len(shell.kube.all(DEPLOYMENTS)) == 1
    assert not any("deployments" in each for each in writes)
    if is_paused:
        assert condition(told, "Paused")["status"] == "True"
    else:
        ready = condition(told, "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")
        assert "has no default image" in ready["message"]
