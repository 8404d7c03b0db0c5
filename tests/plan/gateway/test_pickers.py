"""Endpoint pickers: whose pods are asked, and where."""

import pytest

from poolwise.plan.gateway.pickers import MOST_PICKERS, Picker, pickers
from poolwise.plan.gateway.pools import inference_pool
from tests.handlers.gateway import inference_pool as written
from tests.handlers.gateway import picker_pod, picker_service

POOL = inference_pool(written())


def pod(name="chat-epp-0", **more):
    found = picker_pod(name, **more)
    found["metadata"]["uid"] = name
    return found


def asked(pods) -> tuple[Picker, ...]:
    found = pickers(POOL, picker_service(), pods)
    assert not isinstance(found, str), found
    return found


def test_ready_pods_of_its_service_are_asked_on_their_metrics_port():
    other = pod("other")
    other["metadata"]["labels"] = {"app": "else"}
    found = asked([pod(port=9191), pod("b", is_ready=False), other])
    assert [(each.name, each.address, each.port) for each in found] == [
        ("chat-epp-0", "127.0.0.2", 9191)
    ]


@pytest.mark.parametrize(
    "ports",
    [
        [],
        None,
        [{"name": "grpc", "containerPort": 9002}],
        [{"name": "metrics", "containerPort": "9"}],
        [{"name": "metrics", "containerPort": 70000}],
    ],
)
def test_without_a_port_of_that_name_the_default_is_taken(ports):
    one = pod()
    one["spec"]["containers"][0]["ports"] = ports
    (found,) = asked([one])
    assert found.port == 9090


def without_address():
    found = pod()
    del found["status"]["podIP"]
    return found


def leaving():
    found = pod()
    found["metadata"]["deletionTimestamp"] = "2026-11-24T00:00:00Z"
    return found


@pytest.mark.parametrize(
    ("service", "pods", "told"),
    [
        (None, [pod()], "Service chat-epp, which InferencePool chat names, does not exist"),
        ({"metadata": {"name": "x"}, "spec": {}}, [pod()], "selects no pods"),
        ({"metadata": {"name": "x"}}, [pod()], "selects no pods"),
        (picker_service(), [], "no pod of Service chat-epp is ready"),
        (picker_service(), [pod(is_ready=False)], "is ready"),
        (picker_service(), [without_address()], "is ready"),
        (picker_service(), [leaving()], "is ready"),
        (
            picker_service(),
            [pod(f"p{number}") for number in range(MOST_PICKERS + 1)],
            "selects 9 ready pods, more than 8",
        ),
    ],
)
def test_nobody_to_ask_is_one_sentence(service, pods, told):
    assert told in pickers(POOL, service, pods)
