"""Whether updates start before they stop, told and carried out while room comes and goes."""

from __future__ import annotations

from tests.handlers.shell import Shell, chat_service, h100_node, training_job

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
