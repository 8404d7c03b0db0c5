"""Workloads that are deleted and made anew under their name: nothing of the first goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from poolwise.cluster.resources import PODS
from poolwise.plan.scaling import controller
from tests.handlers.shell import Looking, chat_service, h100_node
from tests.handlers.test_measuring import Measured, run, train
from tests.handlers.test_scaling import Scaled, decided, deployment, settled


class Interrupted(Looking):
    """One process that looks, and then sees something happen before it looks again."""

    def look_and_then(self, looks: int, step: Callable[[], Any]) -> None:
        asyncio.run(self._look_and_then(looks, step))

    async def _look_and_then(self, looks: int, step: Callable[[], Any]) -> None:
        await self._looks(looks)
        step()
        await self.engine.settle()


def end(shell: Looking, document: dict[str, Any]) -> None:
    """With all that it owns."""
    shell.kube.vanish(shell.look(document))
    for pod in shell.kube.all(PODS):
        shell.kube.vanish(pod)


def make_anew(shell: Looking, document: dict[str, Any]) -> None:
    """As ``kubectl replace --force`` does."""
    end(shell, document)
    shell.put(document)


class Service(Interrupted, Scaled):
    """Of a service."""


class Run(Interrupted, Measured):
    """Of a run."""

    meanwhile: Callable[[], Any] | None = None
    """Happens while the run is asked."""

    async def tell(self, targets):
        told = await super().tell(targets)
        if self.meanwhile is not None:
            self.meanwhile()
        return told


@pytest.fixture
def shell() -> Service:
    made, chat = Service(), scaled()
    made.put(h100_node(name="n"), chat)
    made.run()
    made.answer("n")
    return made


def scaled() -> dict[str, Any]:
    chat = chat_service("a", "chat")
    chat["spec"]["scaling"] = {"minReplicas": 1, "maxReplicas": 8}
    return chat


def test_a_service_that_is_made_anew_has_its_own_number_of_replicas(shell, monkeypatch):
    decided(monkeypatch, chat=3)
    shell.looks()
    assert deployment(shell)["spec"]["replicas"] == 3
    shell.look_and_then(3, lambda: make_anew(shell, scaled()))
    assert deployment(shell)["spec"]["replicas"] == 1


def test_what_is_decided_for_a_service_that_went_meanwhile_is_not_for_the_next(shell, monkeypatch):
    looks = 0

    def decide(service, memory, seen):
        nonlocal looks
        looks += 1
        if looks == 4:
            make_anew(shell, scaled())
        return replace(settled(controller.decide(service, memory, seen)), replicas=3)

    monkeypatch.setattr("poolwise.handlers.scaling.decide", decide)
    shell.looks(4)
    assert looks == 4
    assert deployment(shell)["spec"]["replicas"] == 1


@pytest.fixture
def trained() -> Run:
    made = Run()
    made.put(h100_node(name="n"), run())
    made.run()
    made.answer("n")
    train(made)
    assert made.status(run())["observed"]["training"]["steps"] > 0
    return made


def test_a_run_that_is_made_anew_has_done_no_step(trained):
    trained.look_and_then(3, lambda: make_anew(trained, run()))
    assert "training" not in trained.status(run()).get("observed", {})


def test_what_a_run_told_that_went_meanwhile_is_not_of_the_next(trained):
    trained.meanwhile = lambda: make_anew(trained, run())
    trained.looks(1)
    assert "training" not in trained.status(run()).get("observed", {})
