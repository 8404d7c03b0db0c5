"""Every metric that docs/metrics.md names is exported by an operator that has placed something."""

from __future__ import annotations

import time
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from e2e.controlplane.client import Object
from e2e.controlplane.ports import LOOPBACK
from poolwise.cluster.metric_table import FAILURES, GHOSTS, SECTIONS, SERVICE_HELD
from tests.apiserver.conftest import NodeFactory
from tests.apiserver.engines import engines
from tests.apiserver.operated import (
    TIMEOUT_SECONDS,
    Operated,
    chat_service,
    h100_node,
    training_job,
)

pytestmark = pytest.mark.apiserver

SETTINGS = {"POOLWISE_SCALING_INTERVAL_SECONDS": "1"}

RARE = {GHOSTS, FAILURES}
"""Counted when something goes wrong; their names are there without samples."""

ELSEWHERE = {SERVICE_HELD}
"""Behind a gateway alone: test_operator_gateway.py looks at it."""

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(operator: Operated) -> tuple[set[str], Series]:
    """Names of all families, and all samples."""
    url = f"http://{LOOPBACK}:{operator.process.metrics_port}/metrics"
    with urllib.request.urlopen(url, timeout=5) as answer:
        families = list(text_string_to_metric_families(str(answer.read(), "utf-8")))
    series = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }
    return {family.name for family in families}, series


def _is_judged(service: Object) -> bool:
    signals = service.get("status", {}).get("scaling", {}).get("signals", [])
    return any("lateShareHigh" in each for each in signals)


def test_every_metric_of_the_page_is_exported(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    job = operator.client.create(training_job(namespace, "train", 4))
    with engines() as fleet:
        fleet.requests_per_second = 300.0
        asked = chat_service(namespace, "chat")
        asked["spec"]["engine"] = {"type": "vllm", "metricsPort": fleet.port}
        service = operator.client.create(asked)
        operator.wait_condition(job, "PodsReady", "True")
        operator.wait_condition(service, "Ready", "True")
        operator.client.wait_for(service, _is_judged, 100)  # by figures, once a minute
    operator.settle()
    wanted = {metric for metrics in SECTIONS.values() for metric in metrics} - ELSEWHERE
    families, series = scrape(operator)
    assert {metric.full_name.removesuffix("_total") for metric in wanted} <= families
    with_samples = {name for name, _ in series}
    assert {
        f"{metric.full_name}_count" if metric.type == "histogram" else metric.full_name
        for metric in wanted - RARE
    } <= with_samples


def test_a_workload_is_told_by_name_until_it_is_gone(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    service = operator.client.create(chat_service(namespace, "chat"))
    live = operator.wait_condition(service, "Ready", "True")
    operator.settle()
    key = {("namespace", namespace), ("name", "chat")}
    _, series = scrape(operator)
    plan = (operator.look(service) or live)["status"]["plan"]
    kind = ("kind", "InferenceService")
    assert series["poolwise_workload_cost_per_hour", frozenset({kind, *key})] == plan["costPerHour"]
    tail = {("metric", "TTFT"), ("percentile", "99")}
    target = series["poolwise_workload_target_latency_seconds", frozenset(key | tail)]
    predicted = series["poolwise_workload_predicted_latency_seconds", frozenset(key | tail)]
    assert (target, predicted) == (5, plan["predicted"]["ttftSeconds"])
    operator.client.delete(service)
    operator.wait_gone(service)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while any(key <= labels for _, labels in scrape(operator)[1]):
        assert time.monotonic() < deadline
        time.sleep(0.1)
