"""Whether updates start before they stop, told and carried out while room comes and goes."""

from __future__ import annotations

from tests.handlers.shell import Shell, chat_service, condition, h100_node, training_job

CHAT = chat_service("a", "chat")


def told(shell: Shell) -> tuple[str, int]:
    """In the status, and by how many pods the Deployment surges."""
    metadata = {"name": "chat", "namespace": "a"}
    live = shell.look({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata})
    surge = live["spec"]["strategy"]["rollingUpdate"]["maxSurge"]
    return shell.look(CHAT)["status"]["plan"]["rollout"], surge


def test_the_strategy_follows_the_room_and_rests_with_it():
    shell = Shell()
    shell.put(h100_node(name="n"), CHAT)
    shell.run()
    assert told(shell) == ("StartFirst", 1)
    job = training_job("a", "job", 7)
    shell.put(job)
    shell.run()
    assert told(shell) == ("StopFirst", 0)
    assert shell.run() == []
    suspended = {**shell.look(job), "spec": {**job["spec"], "suspend": True}}
    suspended["metadata"] = {**suspended["metadata"], "generation": 2}
    shell.put(suspended)
    shell.run()
    assert told(shell) == ("StartFirst", 1)
    assert shell.run() == []


def test_the_strategy_does_not_turn_with_attempts_of_what_cannot_be_made():
    shell = Shell()
    shell.put(h100_node(name="n"), CHAT)
    shell.run()
    theirs = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job", "namespace": "a"},
    }
    shell.put({**theirs, "spec": {"template": {"spec": {}}}}, training_job("a", "job", 7))
    writes = shell.run()
    assert condition(shell.look(training_job("a", "job", 7)), "Placed")["reason"] == "NameConflict"
    assert not any("deployments" in each for each in writes)
    assert told(shell) == ("StartFirst", 1)
