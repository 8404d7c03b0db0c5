"""A service that really answers, from the pool that its bottleneck asks for."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from e2e.controlplane.client import Client
from e2e.suite.doubles import client_pod, service
from e2e.suite.fleet import L40S, nodes_of, places
from e2e.suite.operator import Operator
from e2e.workloads import Observer, child

pytestmark = pytest.mark.core

ASK = """
import concurrent.futures, json, sys, time, urllib.request
url, at_once = sys.argv[1], int(sys.argv[2])
body = json.dumps({"model": "chat", "prompt": "word " * 300, "max_tokens": 64}).encode()
def ask(_):
    started = time.monotonic()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        assert json.load(answer)["choices"], "an answer without choices"
    return time.monotonic() - started
with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
    print(json.dumps(sorted(pool.map(ask, range(2 * at_once)))))
"""
GET = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=30).read().decode())
"""
METRICS = (
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",
    "vllm:time_to_first_token_seconds_bucket",
    "vllm:inter_token_latency_seconds_bucket",
    "vllm:request_success_total",
)


@pytest.fixture
def run_inside(client: Client, operator: Operator, observer: Observer, namespace: str):
    """Run a Python program with arguments in a pod of the test's namespace; what it printed."""
    pod = client.create(client_pod(namespace))
    observer.wait_condition(pod, "Ready", "True")
    words = ["exec", f"--namespace={namespace}", "client", "--", "python", "-c"]
    return lambda program, *arguments: operator.command(*words, program, *arguments)


def test_it_serves_where_a_byte_per_second_is_cheapest(
    client: Client,
    observer: Observer,
    namespace: str,
    run_inside: Callable[..., str],
) -> None:
    chat = client.create(service(namespace, "chat"))
    ready = observer.wait_condition(chat, "Ready", "True", "Running")
    assert ready["status"]["plan"]["bottleneck"] == "MemoryBandwidth"
    assert set(places(observer.pods_of(chat))) <= nodes_of(client, L40S)
    assert observer.look(child(chat, "policy/v1", "PodDisruptionBudget")) is not None

    alone, crowded = (median_seconds(run_inside(ASK, url("chat"), count)) for count in ("1", "48"))
    assert crowded > alone

    metrics = run_inside(GET, "http://chat/metrics")
    assert [name for name in METRICS if name not in metrics] == []
    assert successes(metrics) >= 2 + 96


def test_it_grows_with_its_traffic(client: Client, observer: Observer, namespace: str) -> None:
    chat = client.create(service(namespace, "chat"))
    before = observer.wait_condition(chat, "Ready", "True")["status"]["plan"]["replicas"]
    client.patch(chat, {"spec": {"traffic": {"requestsPerSecond": "24"}}})
    grown = observer.wait(chat, lambda seen: seen["status"]["plan"]["replicas"] > before)
    wanted = grown["status"]["plan"]["replicas"]
    observer.wait(
        child(chat, "apps/v1", "Deployment"),
        lambda seen: seen["status"].get("readyReplicas") == wanted,
    )


def url(service_name: str) -> str:
    return f"http://{service_name}/v1/completions"


def median_seconds(printed: str) -> float:
    latencies: list[float] = json.loads(printed)
    return latencies[len(latencies) // 2]


def successes(metrics: str) -> float:
    lines = [line for line in metrics.splitlines() if line.startswith("vllm:request_success_total")]
    return sum(float(line.rpartition(" ")[2]) for line in lines)
