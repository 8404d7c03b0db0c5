"""The operator on a real API server, with engines that answer: replicas follow the load."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from e2e.controlplane.client import Object
from poolwise.plan.live.remembering import read, written
from tests.apiserver.conftest import NodeFactory
from tests.apiserver.engines import Engines, engines
from tests.apiserver.operated import Operated, chat_service, child, condition, h100_node

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(720)]

SETTINGS = {"POOLWISE_SCALING_INTERVAL_SECONDS": "1"}
WAIT_SECONDS = 480
"""Nothing is decided in the first half minute of looks, and a number goes down only once it was not
needed for minutes."""


RECALLED = "goes on with what was learned"


@pytest.fixture
def fleet() -> Iterator[Engines]:
    with engines() as found:
        yield found


def chat(namespace: str, fleet: Engines, name: str = "chat", **scaling: object) -> Object:
    service = chat_service(namespace, name)
    service["spec"]["engine"] = {"type": "vllm", "metricsPort": fleet.port}
    service["spec"]["scaling"] = {"minReplicas": 1, "maxReplicas": 8, **scaling}
    return service


def replicas(operator: Operated, service: Object) -> int:
    return int(operator.deployment_of(service)["spec"]["replicas"])


def reasons(operator: Operated, service: Object) -> set[str]:
    return {event["reason"] for event in operator.events_of(service)}


def scaling(operator: Operated, service: Object) -> Object:
    found: Object = (operator.look(service) or {}).get("status", {}).get("scaling", {})
    return found


def last_change(operator: Operated, service: Object) -> int:
    """By how many replicas the newest decision in the status differs from the one before."""
    newest: Object = scaling(operator, service)["decisions"][0]
    return int(newest["to"]) - int(newest["from"])


def log_of(operator: Operated) -> str:
    return operator.process.log.read_text(encoding="utf-8")


def wait_replicas(operator: Operated, service: Object, at_least: int, at_most: int) -> Object:
    target = child(service, "apps/v1", "Deployment")
    return operator.client.wait_for(
        target, lambda seen: at_least <= seen["spec"]["replicas"] <= at_most, WAIT_SECONDS
    )


def as_known_for_an_hour(operator: Operated, service: Object) -> None:
    """What the operator wrote of the service, as if it had begun an hour ago: of one that it has
    just met it takes nothing away for five minutes."""
    now = time.time()
    found = read(scaling(operator, service)["memory"], now)
    assert found is not None
    memory, watch = found
    old = written(replace(memory, since_seconds=now - 3600.0), watch, now)
    operator.client.patch(service, {"status": {"scaling": {"memory": old}}}, "status")


def test_replicas_follow_the_load_up_over_a_restart_and_down(
    operator: Operated, namespace: str, nodes: NodeFactory, fleet: Engines
) -> None:
    nodes([h100_node()])
    fleet.requests_per_second = 1.0
    service = operator.client.create(chat(namespace, fleet))
    before = operator.wait_condition(service, "MetricsAvailable", "True")
    template = operator.deployment_of(service)["spec"]["template"]
    rate = scaling(operator, before)["requestsPerSecondPerReplica"]
    fleet.requests_per_second = 3.5 * rate
    grown = wait_replicas(operator, service, 4, 8)["spec"]["replicas"]
    operator.until(lambda: "ScaledUp" in reasons(operator, service), "it was not told")
    operator.process.stop()
    as_known_for_an_hour(operator, service)
    operator.process.start()
    operator.settle()
    assert replicas(operator, service) >= min(grown, 4)
    operator.until(lambda: RECALLED in log_of(operator), "it does not go on with what was learned")
    fleet.requests_per_second = 0.2 * rate
    after = wait_replicas(operator, service, 1, grown - 1)
    assert after["spec"]["template"] == template
    operator.until(lambda: "ScaledDown" in reasons(operator, service), "it was not told")
    # An Event is recorded before the status that tells the same.
    operator.until(lambda: last_change(operator, service) < 0, "its status tells no fall")
    assert "not marked" not in log_of(operator)  # who leaves


def test_what_lies_holds_its_own_service_and_no_other(
    operator: Operated, namespace: str, nodes: NodeFactory, fleet: Engines
) -> None:
    nodes([h100_node(), h100_node()])
    with engines() as others:
        fleet.requests_per_second = others.requests_per_second = 1.0
        service = operator.client.create(chat(namespace, fleet))
        other = operator.client.create(chat(namespace, others, "other"))
        for each in (service, other):
            operator.wait_condition(each, "MetricsAvailable", "True")
        held = replicas(operator, service)
        fleet.lies["*"] = lambda: (200, "text/html", "<html><h1>It works!</h1></html>")
        seen = operator.wait_condition(service, "MetricsAvailable", "False")
        assert "answers '<html>" in condition(seen, "MetricsAvailable")["message"]
        rate = scaling(operator, other)["requestsPerSecondPerReplica"]
        others.requests_per_second = 2.5 * rate
        wait_replicas(operator, other, 3, 8)
        assert replicas(operator, service) == held
        assert condition(operator.look(other) or {}, "MetricsAvailable")["status"] == "True"
        fleet.lies.clear()
        operator.wait_condition(service, "MetricsAvailable", "True")
    # The other service's engines are gone now: nobody answers, and its replicas hold.
    grown = replicas(operator, other)
    seen = operator.wait_condition(other, "MetricsAvailable", "False")
    assert "cannot be scraped" in condition(seen, "MetricsAvailable")["message"]
    assert replicas(operator, other) >= grown


def test_counters_that_go_back_are_no_load(
    operator: Operated, namespace: str, nodes: NodeFactory, fleet: Engines
) -> None:
    nodes([h100_node()])
    service = operator.client.create(chat(namespace, fleet))
    operator.wait_condition(service, "MetricsAvailable", "True")
    told = [1_000_000]

    def fall() -> tuple[int, str, str]:
        told.append(told[-1] - 100)
        counters = f"vllm:request_success_total {told[-1]}\nvllm:num_requests_running 1\n"
        return 200, "text/plain", counters

    fleet.lies["*"] = fall
    operator.until(lambda: len(told) > 5, "nobody asks")
    assert replicas(operator, service) == 1


def test_a_second_autoscaler_is_refused(
    operator: Operated, namespace: str, nodes: NodeFactory, fleet: Engines
) -> None:
    nodes([h100_node()])
    service = operator.client.create(chat(namespace, fleet))
    operator.wait_condition(service, "ScalingActive", "True")
    name = operator.deployment_of(service)["metadata"]["name"]
    hpa = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "theirs", "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "maxReplicas": 5,
        },
    }
    operator.client.create(hpa)
    seen = operator.wait_condition(service, "ScalingActive", "False", "AutoscalerConflict")
    assert "HorizontalPodAutoscaler theirs" in condition(seen, "ScalingActive")["message"]
    fleet.requests_per_second = 200.0
    operator.client.delete(hpa)
    operator.wait_condition(service, "ScalingActive", "True")
    wait_replicas(operator, service, 2, 8)


def test_external_tells_the_number_and_follows_the_spec(
    operator: Operated, namespace: str, nodes: NodeFactory, fleet: Engines
) -> None:
    nodes([h100_node()])
    fleet.requests_per_second = 1.0
    external = chat(namespace, fleet, mode="External")
    external["spec"]["replicas"] = 1
    service = operator.client.create(external)
    operator.wait_condition(service, "MetricsAvailable", "True")
    rate = scaling(operator, service)["requestsPerSecondPerReplica"]
    fleet.requests_per_second = 2.5 * rate
    operator.client.wait_for(
        service, lambda seen: seen["status"]["scaling"]["desiredReplicas"] >= 3, WAIT_SECONDS
    )
    assert replicas(operator, service) == 1
    operator.client.patch(service, {"spec": {"replicas": 2}})
    wait_replicas(operator, service, 2, 2)


def test_a_steady_load_is_not_written_about(
    operator: Operated, namespace: str, nodes: NodeFactory, fleet: Engines
) -> None:
    nodes([h100_node()])
    fleet.requests_per_second = 0.5
    service = operator.client.create(chat(namespace, fleet))
    operator.wait_condition(service, "MetricsAvailable", "True")
    operator.settle()
    written = [each for each in operator.writes_for(8.0) if each.name == "chat"]
    assert len(written) <= 2, list(map(str, written))
