"""What runs cost, as a real API server has it: exact at the end, also where we were not there."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import pytest

from e2e.controlplane.client import Object
from tests.apiserver.conftest import Kubectl, NodeFactory
from tests.apiserver.operated import Operated, child, h100_node, training_job
from tests.apiserver.test_operator_metrics import scrape

pytestmark = pytest.mark.apiserver

POOL = {"apiVersion": "poolwise.dev/v1alpha1", "kind": "AcceleratorPool"}


def accrued(document: Object | None) -> dict[str, Any]:
    return dict(((document or {}).get("status", {}).get("observed") or {}).get("accrued") or {})


def seconds_on_nodes(operator: Operated, job: Object) -> float:
    """From the first pod that was bound to the last container that ended."""
    pods = operator.pods_of(job)
    bound = [
        each["lastTransitionTime"]
        for pod in pods
        for each in pod["status"]["conditions"]
        if each["type"] == "PodScheduled"
    ]
    ended = [
        each["state"]["terminated"]["finishedAt"]
        for pod in pods
        for each in pod["status"]["containerStatuses"]
    ]
    start, end = min(map(datetime.fromisoformat, bound)), max(map(datetime.fromisoformat, ended))
    return (end - start).total_seconds()


def final(document: Object) -> bool:
    return bool(accrued(document)) and "perHour" not in accrued(document)


def pool_of(operator: Operated, job: Object) -> Object:
    name = (operator.look(job) or {})["status"]["plan"]["pool"]
    return {**POOL, "metadata": {"name": name}}


def test_a_run_costs_what_its_pods_were_on_nodes_for(
    operator: Operated, namespace: str, nodes: NodeFactory, kubectl: Kubectl
) -> None:
    made = [each["metadata"]["name"] for each in nodes([h100_node(), h100_node()])]
    job = operator.client.create(training_job(namespace, "train", 16))
    live = operator.wait(job, lambda found: "perHour" in accrued(found))
    rate = accrued(live)["perHour"]
    assert rate["cost"] == pytest.approx(live["status"]["plan"]["costPerHour"], rel=1e-3)
    assert rate["accelerators"] == 16
    key = {("kind", "TrainingJob"), ("namespace", namespace), ("name", "train")}
    counter = "poolwise_workload_cost_total", frozenset({*key, ("currency", "USD")})
    # The API server has the status a moment before the operator has its answer.
    operator.until(lambda: counter in scrape(operator)[1], "its cost is no metric")
    assert 0 <= scrape(operator)[1][counter] < rate["cost"]
    operator.wait_condition(job, "PodsReady", "True")
    time.sleep(2)  # which it is paid for
    operator.end(job)
    ended = operator.wait(job, final)
    hours = seconds_on_nodes(operator, job) / 3600
    assert accrued(ended)["cost"] == pytest.approx(rate["cost"] * hours, abs=2e-4)
    assert accrued(ended)["kilowattHours"] == pytest.approx(rate["kilowatts"] * hours, abs=2e-4)
    assert accrued(ended)["acceleratorHours"] == pytest.approx(16 * hours, abs=2e-4)
    wide = kubectl("get", "tj", "train", "-n", namespace, "-o", "wide").stdout
    assert "COST SO FAR" in wide
    assert f"{accrued(ended)['cost']}" in wide
    pool = operator.wait(pool_of(operator, job), lambda p: p["status"].get("idleNodeCount") == 2)
    assert sorted(each["name"] for each in pool["status"]["idleNodes"]) == sorted(made)
    operator.settle()
    live = operator.look(job) or {}
    assert accrued(live) == accrued(ended)


def test_a_run_that_ends_while_nobody_is_there_costs_the_same(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node()])
    job = operator.client.create(training_job(namespace, "alone", 8))
    rate = accrued(operator.wait(job, lambda found: "perHour" in accrued(found)))["perHour"]
    operator.wait_condition(job, "PodsReady", "True")
    operator.process.kill()
    time.sleep(2)  # which it is paid for
    operator.end(job)
    made = child(job, "batch/v1", "Job")
    operator.wait(made, lambda found: bool(found["status"].get("completionTime")))
    time.sleep(3)  # which must not be paid for
    operator.resume()
    ended = operator.wait(job, final)
    hours = seconds_on_nodes(operator, job) / 3600
    assert accrued(ended)["cost"] == pytest.approx(rate["cost"] * hours, abs=2e-4)


def test_idle_nodes_are_told_over_restarts(
    operator: Operated, namespace: str, nodes: NodeFactory
) -> None:
    nodes([h100_node(), h100_node()])
    job = operator.client.create(training_job(namespace, "half", 8))
    operator.wait_condition(job, "PodsReady", "True")
    pool = operator.wait(pool_of(operator, job), lambda p: p["status"].get("idleNodeCount") == 1)
    price, told = pool["status"]["price"]["perNodeHour"], pool["status"]["idleNodes"]
    assert pool["status"]["idleCostPerHour"] == price
    operator.settle()
    operator.process.kill()
    time.sleep(1.1)
    operator.resume()
    operator.settle()
    assert (operator.look(pool) or {})["status"]["idleNodes"] == told


def test_a_pool_that_was_discovered_has_a_persons_price_once_it_is_theirs(
    operator: Operated, namespace: str, nodes: NodeFactory, kubectl: Kubectl
) -> None:
    """As docs/cost.md tells; until then its spec is not read, which a condition says."""
    nodes([h100_node()])
    job = operator.client.create(training_job(namespace, "train", 8))
    operator.wait_condition(job, "Placed", "True")
    pool = pool_of(operator, job)
    name = pool["metadata"]["name"]
    price = '{"spec": {"price": {"perNodeHour": "7"}}}'
    kubectl("patch", "acceleratorpool", name, "--type", "merge", "-p", price)
    operator.wait_condition(pool, "SpecRead", "False")
    try:
        kubectl("label", "acceleratorpool", name, "poolwise.dev/discovered-")
        told = operator.wait(pool, lambda found: found["status"]["price"]["perNodeHour"] == 7)
        assert "SpecRead" not in {each["type"] for each in told["status"]["conditions"]}
    finally:
        kubectl("delete", "acceleratorpool", name)
