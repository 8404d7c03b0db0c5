"""The operator on a real API server behind inference gateways whose endpoint pickers are played:
services fall asleep, wake on a held request, and come back where nothing holds any."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from e2e.controlplane.client import Client, Object
from e2e.controlplane.served import await_served
from poolwise.cluster.metric_table import SERVICE_HELD
from tests.apiserver import gateway
from tests.apiserver.conftest import Kubectl, NodeFactory
from tests.apiserver.engines import Engines, answering, engines
from tests.apiserver.gateway import Picker
from tests.apiserver.operated import Operated, condition, h100_node
from tests.apiserver.test_operator_metrics import scrape
from tests.apiserver.test_operator_scaling import (
    as_known_for_an_hour,
    chat,
    reasons,
    replicas,
    scaling,
    wait_replicas,
)

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(900)]

SETTINGS = {"POOLWISE_SCALING_INTERVAL_SECONDS": "2", "POOLWISE_DISCOVERY_SECONDS": "0.5"}
PATIENCE_SECONDS = 60.0
"""An API that has just come is noticed, read and looked at in rounds: 10 s on a busy machine."""


@pytest.fixture
def fleet() -> Iterator[Engines]:
    with engines() as found:
        yield found


@pytest.fixture(params=[gateway.GROUP])
def api(request: pytest.FixtureRequest, kubectl: Kubectl, client: Client) -> Iterator[str]:
    """Installed while the operator runs, and gone at the end."""
    crd = gateway.crd(request.param)
    applied = kubectl("apply", "--server-side", "-f", "-", stdin=crd)
    assert applied.returncode == 0, applied.stderr
    name = crd["metadata"]["name"]
    await_served(client, [name])
    yield request.param
    kubectl("delete", "--ignore-not-found", "crd", name)


class Fronted:
    """Services that may sleep in one namespace, each with a gateway before it."""

    def __init__(self, client: Client, namespace: str, fleet: Engines, api: str) -> None:
        self.client, self.namespace, self.fleet, self.api = client, namespace, fleet, api
        self.stack = ExitStack()

    def service(self, name: str) -> tuple[Object, Picker]:
        """A new one, and its endpoint picker."""
        found = Picker(name)
        port = self.stack.enter_context(answering(found.answer))
        for each in gateway.picker(self.namespace, name, port):
            self.client.create(each)
        self.client.create(self.pool(name))
        return self.client.create(self.alone(name)), found

    def pool(self, name: str) -> Object:
        """Its InferencePool."""
        return gateway.inference_pool(self.namespace, name, self.api)

    def alone(self, name: str) -> Object:
        """The service itself."""
        wishes = {"minReplicas": 0, "scaleToZero": True, "maxReplicas": 2}
        return chat(self.namespace, self.fleet, name, **wishes)


@pytest.fixture
def fronted(client: Client, namespace: str, fleet: Engines, api: str) -> Iterator[Fronted]:
    found = Fronted(client, namespace, fleet, api)
    with found.stack:
        yield found


def signals(operator: Operated, service: Object) -> list[Object]:
    """What is told of the gateway's queue."""
    found: list[Object] = scaling(operator, service).get("gateway", {}).get("signals", [])
    return found


def test_services_sleep_wake_on_a_held_request_and_come_back_without_a_gateway(
    operator: Operated, nodes: NodeFactory, fleet: Engines, fronted: Fronted
) -> None:
    nodes([h100_node()])
    fleet.requests_per_second = 0.5
    names = ("waited-for", "poolless", "unheard")
    made = {name: fronted.service(name) for name in names}
    for service, _ in made.values():
        operator.wait_condition(service, "ScalesToZero", "True", "HoldsRequests")
        operator.wait_condition(service, "MetricsAvailable", "True")
        operator.client.wait_for(service, lambda seen: "memory" in seen["status"]["scaling"], 60)
    operator.process.stop()
    for service, _ in made.values():
        as_known_for_an_hour(operator, service)
    fleet.requests_per_second = 0.0
    operator.process.start()

    for service, _ in made.values():
        wait_replicas(operator, service, 0, 0)
        seen = operator.wait_condition(service, "ScalesToZero", "True", "Asleep")
        assert condition(seen, "Ready")["reason"] == "ScaledToZero"
        assert seen["status"]["scaling"]["gateway"]["inferencePool"] == service["metadata"]["name"]
    operator.settle()
    assert operator.writes_for(5.0) == []

    service, picker = made["waited-for"]
    picker.held = 2
    operator.client.wait_for(
        operator.deployment_of(service), lambda seen: seen["spec"]["replicas"] == 1, 30
    )
    operator.until(lambda: "ScaledUp" in reasons(operator, service), "it was not told")
    picker.held = 0
    operator.wait_condition(service, "Ready", "True", "Running")

    alone, _ = made["poolless"]
    operator.client.delete(fronted.pool("poolless"))
    wait_replicas(operator, alone, 1, 1)
    operator.wait_condition(alone, "ScalesToZero", "False", "NothingHoldsRequests")

    deaf, silent = made["unheard"]
    silent.is_silent = True
    wait_replicas(operator, deaf, 1, 1)
    operator.wait_condition(deaf, "ScalesToZero", "False", "EndpointPickerSilent")
    operator.until(lambda: "EndpointPickerSilent" in reasons(operator, deaf), "it was not told")


@pytest.mark.parametrize("api", [gateway.OLD_GROUP], indirect=True)
def test_the_older_api_is_spoken_and_nonsense_blocks_nobody(
    operator: Operated, nodes: NodeFactory, fleet: Engines, fronted: Fronted
) -> None:
    operator = replace(operator, timeout_seconds=PATIENCE_SECONDS)
    nodes([h100_node()])
    fleet.requests_per_second = 0.5
    service, picker = fronted.service("chat")
    picker.passes_on = 2000
    odd = fronted.pool("odd")
    odd["spec"]["extensionRef"]["kind"] = "Gadget"
    operator.client.create(odd)
    other = operator.client.create(fronted.alone("odd"))
    operator.wait_condition(service, "ScalesToZero", "True", "HoldsRequests")
    seen = operator.wait_condition(other, "ScalesToZero", "False", "NoEndpointPicker")
    assert "the Gadget odd-epp" in condition(seen, "ScalesToZero")["message"]
    of_chat = frozenset({("namespace", fronted.namespace), ("name", "chat")})
    operator.until(lambda: scrape(operator)[1].get((SERVICE_HELD.full_name, of_chat)) == 0.0,
                   "what the gateway holds is no metric")  # fmt: skip
    operator.until(
        lambda: {each["metric"] for each in signals(operator, service)} == {"TTFT", "Queue"},
        "a gateway that passes requests on has not both signals",
    )
    assert all(each["highSeconds"] == 0.5 for each in signals(operator, service))
    assert replicas(operator, other) == 1
    assert operator.process.is_running
