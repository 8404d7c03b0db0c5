"""Metrics of pools and workloads follow the statuses, and what is gone leaves no series behind."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry

from poolwise.cluster import metric_table as table
from poolwise.cluster.cache import Cache
from poolwise.cluster.resources import ACCELERATOR_POOLS, INFERENCE_SERVICES, TRAINING_JOBS
from poolwise.handlers.collector import ClusterCollector
from poolwise.plan.live.mismatch.clue import Mismatch
from poolwise.plan.live.telling import measured
from tests.handlers.shell import Shell, chat_service, h100_node, training_job
from tests.plan.live.given import look

EARLIER = ("poolwise_workloads", "poolwise_cost_per_hour", "poolwise_predicted_tokens_per_second")


def registry_of(cache, pools=(), each_workload=True):
    registry = CollectorRegistry()
    registry.register(ClusterCollector(cache, lambda: pools, each_workload=each_workload))
    return registry


def value(registry, name, /, **labels):
    return registry.get_sample_value(f"poolwise_{name}", labels)


def names(registry):
    return {sample.name for family in registry.collect() for sample in family.samples}


def metadata(name):
    return {"name": name, "namespace": "a", "uid": name, "resourceVersion": "1"}


def job(name, **plan):
    return {
        "apiVersion": "poolwise.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": metadata(name),
        "status": {
            "conditions": [
                {"type": "Placed", "status": "True", "reason": "Placed"},
                {"type": "Ready", "status": "Unknown", "reason": "Starting"},
            ],
            "plan": {
                "placed": True,
                "pool": "h100",
                "accelerator": "H100-SXM5-80GB",
                "count": 16,
                "summary": {"shape": "dp2 tp8"},
                "bottleneck": "Compute",
                "arithmeticIntensity": 400.0,
                "costPerHour": 50.0,
                "predicted": {"tokensPerSecond": 1000.0, "stepSeconds": 12.5},
                **plan,
            },
        },
    }


def service(name, slo, **plan):
    return {
        "apiVersion": "poolwise.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": metadata(name),
        "spec": {"slo": slo},
        "status": {
            "readyReplicas": 1,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Running"}],
            "plan": {
                "placed": True,
                "pool": "h100",
                "count": 2,
                "replicas": 3,
                "costPerHour": 20.0,
                "predicted": {"tokensPerSecond": 500.0, "ttftSeconds": 0.4, "e2eSeconds": 9.0},
                **plan,
            },
        },
    }


@pytest.fixture
def cache():
    return Cache()


def test_a_job_is_told_by_its_name(cache):
    cache.put(TRAINING_JOBS, job("one"))
    registry = registry_of(cache)
    key = {"kind": "TrainingJob", "namespace": "a", "name": "one"}
    what = {"pool": "h100", "accelerator": "H100-SXM5-80GB", "shape": "dp2 tp8"}
    assert value(registry, "workload_info", **key, **what, bottleneck="Compute") == 1
    assert value(registry, "workload_state", **key, reason="Starting") == 1
    assert value(registry, "workload_condition", **key, condition="Placed") == 1
    assert value(registry, "workload_condition", **key, condition="Ready") == 0
    assert value(registry, "workload_condition", **key, condition="Stalled") is None
    assert value(registry, "workload_accelerators", **key) == 16
    assert value(registry, "workload_cost_per_hour", **key) == 50
    assert value(registry, "workload_predicted_tokens_per_second", **key) == 1000
    assert value(registry, "workload_arithmetic_intensity_flops_per_byte", **key) == 400
    step = value(registry, "workload_predicted_step_seconds", namespace="a", name="one")
    assert step == 12.5


def test_a_service_is_told_with_its_targets(cache):
    slo = [
        {"metric": "TTFT", "percentile": 99, "target": "500ms"},
        {"metric": "TTFT", "percentile": "99.9", "target": "2s"},
    ]
    cache.put(INFERENCE_SERVICES, service("chat", slo))
    registry = registry_of(cache)
    key = {"namespace": "a", "name": "chat"}
    target, latency = "workload_target_latency_seconds", "workload_predicted_latency_seconds"
    assert value(registry, target, **key, metric="TTFT", percentile="99") == 0.5
    assert value(registry, target, **key, metric="TTFT", percentile="99.9") == 2
    assert value(registry, latency, **key, metric="TTFT", percentile="99.9") == 0.4
    assert value(registry, latency, **key, metric="E2E", percentile="95") == 9
    assert value(registry, latency, **key, metric="ITL", percentile="95") is None
    assert value(registry, "workload_replicas", **key, state="planned") == 3
    assert value(registry, "workload_replicas", **key, state="ready") == 1
    key = {**key, "kind": "InferenceService"}
    assert value(registry, "workload_accelerators", **key) == 6
    assert value(registry, "workload_predicted_tokens_per_second", **key) == 1500


def test_what_only_waits_holds_and_costs_nothing(cache):
    cache.put(TRAINING_JOBS, job("one", placed=False))
    registry = registry_of(cache)
    key = {"kind": "TrainingJob", "namespace": "a", "name": "one"}
    assert value(registry, "workload_accelerators", **key) is None
    assert value(registry, "workload_cost_per_hour", **key) is None
    assert value(registry, "cost_per_hour", kind="TrainingJob", pool="h100") is None
    step = value(registry, "workload_predicted_step_seconds", namespace="a", name="one")
    assert step == 12.5


def test_what_it_has_cost_is_counted_to_the_moment_of_the_scrape(cache):
    document = job("one", totalCost=500.0)
    document["status"]["observed"] = {
        "accrued": {
            "cost": 100.0,
            "currency": "EUR",
            "kilowattHours": 10.0,
            "until": "2026-11-22T08:00:00Z",
            "perHour": {"cost": 50.0, "kilowatts": 8.0, "accelerators": 16},
        }
    }
    cache.put(TRAINING_JOBS, document)
    at_ten = datetime(2026, 11, 22, 10, tzinfo=UTC)
    registry = CollectorRegistry()
    registry.register(ClusterCollector(cache, lambda: (), each_workload=True, now=lambda: at_ten))
    key = {"kind": "TrainingJob", "namespace": "a", "name": "one"}
    [families] = [{family.name: family for family in registry.collect()}]
    cost = families["poolwise_workload_cost"]
    energy = families["poolwise_workload_energy_joules"]
    assert (cost.type, energy.type) == ("counter", "counter")
    assert [(each.name, each.labels, each.value) for each in cost.samples] == [
        ("poolwise_workload_cost_total", {**key, "currency": "EUR"}, 200.0)
    ]
    assert [each.value for each in energy.samples] == [26 * 3.6e6]
    assert [s.value for s in families["poolwise_workload_predicted_cost"].samples] == [500.0]


def test_sums_are_over_workloads_and_forget_the_gone(cache):
    cache.put(TRAINING_JOBS, job("one"))
    cache.put(TRAINING_JOBS, job("two", costPerHour=25.0, predicted={"tokensPerSecond": 500.0}))
    registry = registry_of(cache)
    assert value(registry, "workloads", kind="TrainingJob", reason="Starting") == 2
    assert value(registry, "cost_per_hour", kind="TrainingJob", pool="h100") == 75
    assert value(registry, "predicted_tokens_per_second", kind="TrainingJob", pool="h100") == 1500
    for name in ("one", "two"):
        cache.remove(TRAINING_JOBS, job(name))
    assert names(registry) == set()


def test_what_a_service_costs_is_counted_at_the_pools_that_bear_it(cache):
    far = {"pool": "far", "count": 2, "replicas": 3, "costPerHour": 30.0}
    cache.put(TRAINING_JOBS, job("spread", further=[far]))
    registry = registry_of(cache)
    assert value(registry, "cost_per_hour", kind="TrainingJob", pool="h100") == 20
    assert value(registry, "cost_per_hour", kind="TrainingJob", pool="far") == 30
    held = value(
        registry, "workload_accelerators", kind="TrainingJob", namespace="a", name="spread"
    )
    assert held == job("spread")["status"]["plan"]["count"] + 6


def test_pools_never_bear_more_than_a_service_costs(cache):
    """A further one has a new price, and the sum is still of the old."""
    far = {"pool": "far", "count": 2, "replicas": 3, "costPerHour": 80.0}
    cache.put(TRAINING_JOBS, job("spread", further=[far]))
    registry = registry_of(cache)
    assert value(registry, "cost_per_hour", kind="TrainingJob", pool="far") == 50
    assert value(registry, "cost_per_hour", kind="TrainingJob", pool="h100") == 0


def test_what_makes_no_tokens_has_no_series_of_them(cache):
    cache.put(TRAINING_JOBS, job("vision", predicted={"stepSeconds": 0.6}))
    registry = registry_of(cache)
    where = {"kind": "TrainingJob", "pool": "h100"}
    assert value(registry, "predicted_tokens_per_second", **where) is None
    assert value(registry, "cost_per_hour", **where) == 50


def test_names_of_workloads_can_be_left_out(cache):
    cache.put(TRAINING_JOBS, job("one"))
    cache.put(INFERENCE_SERVICES, service("chat", []))
    assert names(registry_of(cache, each_workload=False)) == set(EARLIER)


def test_a_pool_is_told_by_its_status(cache):
    pool = {
        "apiVersion": "poolwise.dev/v1alpha1",
        "kind": "AcceleratorPool",
        "metadata": {"name": "h100", "uid": "p", "resourceVersion": "1"},
        "status": {
            "accelerator": "H100-SXM5-80GB",
            "role": "Interconnect",
            "nodes": 8,
            "unusableNodes": 1,
            "capacity": 64,
            "free": 48,
            "ridgePoints": {"bf16": 295.0},
            "price": {"perNodeHour": 55.0, "currency": "USD"},
            "idleNodeCount": 6,
            "idleCostPerHour": 330.0,
            "conditions": [{"type": "Ready", "status": "True", "reason": "NodesReady"}],
        },
    }
    cache.put(ACCELERATOR_POOLS, pool)
    registry = registry_of(cache)
    what = {"accelerator": "H100-SXM5-80GB", "role": "Interconnect"}
    assert value(registry, "pool_info", pool="h100", **what) == 1
    assert value(registry, "pool_condition", pool="h100", condition="Ready") == 1
    assert value(registry, "pool_nodes", pool="h100", state="unusable") == 1
    assert value(registry, "pool_accelerators", pool="h100", state="free") == 48
    assert value(registry, "pool_ridge_flops_per_byte", pool="h100", precision="bf16") == 295
    assert value(registry, "pool_price_per_hour", pool="h100", currency="USD") == 55
    assert value(registry, "pool_idle_nodes", pool="h100") == 6
    assert value(registry, "pool_idle_cost_per_hour", pool="h100", currency="USD") == 330
    assert value(registry, "pool_memory_bytes", pool="h100") is None  # not the planner's


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"plan": {}},
        {"plan": "text", "conditions": None},
        {"plan": {"pool": 7, "placed": "yes", "count": "many", "predicted": [], "replicas": None}},
    ],
)
def test_a_status_that_somebody_else_wrote_does_no_harm(cache, status):
    slo = [{"metric": "TTFT", "percentile": "p99", "target": 3}, {}, "text"]
    cache.put(INFERENCE_SERVICES, {**service("chat", slo), "status": status})
    registry = registry_of(cache)
    assert value(registry, "workloads", kind="InferenceService", reason="Untold") == 1


def test_the_planner_and_the_statuses_together_give_every_metric_of_the_table():
    shell = Shell()
    node = h100_node()
    shell.put(node, training_job("a", "train", 4), chat_service("a", "chat"))
    shell.run(lambda: shell.start_pods(node["metadata"]["name"]))
    cache = Cache()
    for resource in (TRAINING_JOBS, INFERENCE_SERVICES, ACCELERATOR_POOLS):
        for document in shell.kube.all(resource):
            if resource is INFERENCE_SERVICES:  # as if its replicas had been looked at
                gateway = {"inferencePool": "chat", "heldRequests": 0.0}
                seen = look(mismatches=[(Mismatch.PREEMPTIONS, "many")], gateway=gateway)
                scaling = measured(seen, {}).scaling
                document = {**document, "status": {**document["status"], "scaling": scaling}}
            cache.put(resource, document)
    registry = registry_of(cache, shell.engine.planner.decisions.pools)
    wanted = (*table.POOLS, *table.SUMS, *table.EACH_WORKLOAD)
    assert names(registry) == {metric.full_name for metric in wanted}
    [bandwidth] = [
        sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == table.POOL_BANDWIDTH.full_name
    ]
    assert bandwidth == pytest.approx(3.35e12, rel=0.01)


def test_a_service_tells_what_its_load_asks_for_and_how_targets_are_kept():
    cache = Cache()
    signal = {"metric": "TTFT", "percentile": 99, "lateShareLow": 0.01, "lateShareHigh": 0.02}
    scaling = {"desiredReplicas": 4, "signals": [signal], "mismatches": ["Preemptions"]}
    cache.put(
        INFERENCE_SERVICES,
        {
            "apiVersion": "poolwise.dev/v1alpha1",
            "kind": "InferenceService",
            "metadata": metadata("chat"),
            "spec": {},
            "status": {"replicas": 3, "scaling": scaling},
        },
    )
    registry = registry_of(cache)
    of = {"namespace": "a", "name": "chat"}
    target = {**of, "metric": "TTFT", "percentile": "99"}
    assert value(registry, "service_desired_replicas", **of) == 4
    assert value(registry, "service_current_replicas", **of) == 3
    assert value(registry, "service_slo_attainment", **target) == pytest.approx(0.98)
    assert value(registry, "service_slo_burn_rate", **target) == pytest.approx(2)
    assert value(registry, "service_mismatch", **of, reason="Preemptions") == 1
    assert value(registry, "service_mismatch", **of, reason="Mispredicted") == 0


def test_a_service_that_nobody_looked_at_tells_nothing_of_it():
    cache = Cache()
    service = {"kind": "InferenceService", "metadata": metadata("chat"), "spec": {}}
    cache.put(INFERENCE_SERVICES, {**service, "apiVersion": "poolwise.dev/v1alpha1"})
    assert not [each for each in names(registry_of(cache)) if "poolwise_service" in each]
