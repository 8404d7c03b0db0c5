"""A pool that a person declared loses its last node: what runs there keeps its devices."""

from __future__ import annotations

import pytest

from poolwise.cluster.resources import DEPLOYMENTS, NODES
from poolwise.plan.conditions import Reason
from tests.handlers.histories import documents
from tests.handlers.shell import Shell, chat_service, condition

H100S = documents.declared_pool("mine", nodeSelector={"example.com/group": "h"})
OWN_IMAGE = {"run": {"image": "registry.example/vllm:1"}}


@pytest.fixture
def shell():
    shell = Shell()
    shell.put(documents.node("h0"))
    return shell


def emptied(shell):
    for node in shell.kube.all(NODES):
        shell.kube.vanish(node)


def asked(runner):
    (container,) = runner["spec"]["template"]["spec"]["containers"]
    return container["resources"]["limits"]


@pytest.mark.parametrize("spec", [{}, OWN_IMAGE], ids=["our image", "own image"])
def test_a_service_is_left_as_it_is_and_is_not_told_that_its_spec_is_wrong(shell, spec):
    chat = chat_service("a", "chat", **spec)
    shell.put(H100S, chat)
    shell.run()
    (before,) = shell.kube.all(DEPLOYMENTS)
    emptied(shell)
    shell.run()
    assert shell.kube.all(DEPLOYMENTS) == [before]
    assert asked(before) == {"nvidia.com/gpu": "1"}
    assert condition(shell.look(chat), "Ready")["reason"] != Reason.INVALID_SPEC
