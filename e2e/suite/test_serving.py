"""A service that really answers, from the pool that its bottleneck asks for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from e2e.controlplane.client import Client
from e2e.suite.doubles import client_pod, service
from e2e.suite.fleet import L40S, nodes_of, places
from e2e.suite.operator import Operator
from e2e.workloads import Observer, child, with_environment

pytestmark = pytest.mark.core

LENGTHS = ("--input-tokens=300", "--output-tokens=32")
SECONDS_PER_SEQUENCE = "0.003"
"""Of the double: makes what a batch costs plain beside what a busy machine adds."""
GET = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=30).read().decode())
"""
Run = Callable[..., str]
METRICS = (
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",
    "vllm:time_to_first_token_seconds_bucket",
    "vllm:inter_token_latency_seconds_bucket",
    "vllm:request_success_total",
)


@pytest.fixture
def inside(client: Client, operator: Operator, observer: Observer, namespace: str) -> Run:
    """Run a command in a pod of the test's namespace, where users' applications are; its output."""
    pod = client.create(client_pod(namespace))
    observer.wait_condition(pod, "Ready", "True")
    words = ["exec", f"--namespace={namespace}", "client", "--"]
    return lambda *arguments: operator.command(*words, *arguments)


def test_it_serves_where_a_byte_per_second_is_cheapest(
    client: Client, observer: Observer, namespace: str, inside: Run
) -> None:
    double = service(namespace, "chat")
    chat = client.create(with_environment(double, DOUBLE_SEQUENCE_SECONDS=SECONDS_PER_SEQUENCE))
    ready = observer.wait_condition(chat, "Ready", "True", "Running")
    assert ready["status"]["plan"]["bottleneck"] == "MemoryBandwidth"
    assert set(places(observer.pods_of(chat))) <= nodes_of(client, L40S)
    assert observer.look(child(chat, "policy/v1", "PodDisruptionBudget")) is not None

    quiet, crowded = (ask(inside, rate) for rate in (1, 10))
    assert crowded["itlSeconds"]["p50"] > quiet["itlSeconds"]["p50"]

    metrics = inside("python3", "-c", GET, "http://chat/metrics")
    assert [name for name in METRICS if name not in metrics] == []
    assert successes(metrics) == quiet["answered"] + crowded["answered"]


def test_it_grows_with_its_traffic(client: Client, observer: Observer, namespace: str) -> None:
    chat = client.create(service(namespace, "chat"))
    before = observer.wait_condition(chat, "Ready", "True")["status"]["plan"]["replicas"]
    client.patch(chat, {"spec": {"traffic": {"requestsPerSecond": "12"}}})
    grown = observer.wait(chat, lambda seen: seen["status"]["plan"]["replicas"] > before)
    wanted = grown["status"]["plan"]["replicas"]
    observer.wait(
        child(chat, "apps/v1", "Deployment"),
        lambda seen: seen["status"].get("readyReplicas") == wanted,
    )


def ask(inside: Run, per_second: int) -> dict[str, Any]:
    """What users felt at that rate, none of whom may be left without an answer."""
    report: dict[str, Any] = json.loads(
        inside("load", "--url=http://chat", f"--rate={per_second}", "--duration=6", *LENGTHS)
    )
    assert report["answered"] == report["requests"] > 0
    return report


def successes(metrics: str) -> float:
    lines = [line for line in metrics.splitlines() if line.startswith("vllm:request_success_total")]
    return sum(float(line.rpartition(" ")[2]) for line in lines)
