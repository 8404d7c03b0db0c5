"""What pools and shapes are compared by where a service declares no peak, and what they bear."""

from __future__ import annotations

import math

import pytest

from tests.plan.cluster_given import cpu_nodes, gpu_nodes, h100, plan_of, service

H100, L40S = "NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S"
SPARE = 1.005
"""Times the first token of a lone request: a target that next to no load keeps."""


def asked(target_seconds, **spec):
    slo = [
        {"metric": "TTFT", "percentile": 99, "target": f"{math.ceil(1000 * target_seconds)}ms"},
    ]
    declared = {"model": {"preset": "llama-3.1-70b"}, "slo": slo, "traffic": {}, **spec}
    return service(**declared)


def fours(product, name="four"):
    """One node of four."""
    return gpu_nodes(name, 1, product, per_node=4)


def barely(product):
    """The target that a replica of four keeps for a lone request by a hair: the second time with
    the chunk of prompts that such a target asks for."""
    target_seconds = 60.0
    for _ in range(2):
        found = plan_of(fours(product), asked(target_seconds)).chosen
        target_seconds = SPARE * found.prediction.ttft_seconds.mid
    return target_seconds


def test_a_replica_for_a_lone_request_alone_is_not_the_cheapest():
    nodes = h100(1)
    easy = plan_of(nodes, asked(60.0)).chosen
    tight = plan_of(nodes, asked(barely(H100))).chosen
    assert tight.count > easy.count
    assert (tight.replicas, easy.replicas) == (1, 1)
    assert tight.prediction.capacity_requests_per_second > 1.0


def test_nor_is_a_pool_that_keeps_the_target_by_a_hair():
    small = fours(L40S)
    target = barely(L40S)
    cheap = plan_of([*small, *h100(1)], asked(60.0))
    dear = plan_of([*small, *h100(1)], asked(target))
    assert (cheap.chosen.accelerator, dear.chosen.accelerator) == ("L40S", "H100-SXM5-80GB")


def test_where_nothing_better_is_it_is_taken_and_the_reason_has_the_number():
    nodes = fours(H100)
    plan = plan_of(nodes, asked(barely(H100)))
    chosen = plan.chosen
    assert plan.placed
    assert (chosen.replicas, chosen.too_few) == (1, "")
    assert chosen.weighed_replicas > 3
    told = f"for the {chosen.weighed_replicas} replicas that it needs with one request under way"
    assert told in plan.reason


@pytest.mark.parametrize("spec", [{}, {"scaling": {"mode": "Off"}, "replicas": 2}])
def test_a_replica_with_room_is_compared_as_it_is(spec):
    chosen = plan_of(h100(1), asked(60.0, **spec)).chosen
    assert chosen.weighed_replicas == chosen.replicas == spec.get("replicas", 1)


def test_a_declared_peak_is_all_that_counts():
    nodes, target = h100(2), barely(H100)
    rate = {"traffic": {"requestsPerSecond": "1m"}}
    chosen = plan_of(nodes, asked(target, **rate)).chosen
    assert chosen.weighed_replicas == chosen.replicas == 1
    assert chosen.count == 4


def test_where_only_the_rate_counts_the_cheapest_request_wins_and_not_the_cheapest_replica():
    """A CPU costs least by the hour and most by the request."""
    nodes = [*cpu_nodes("xeon", 1), *gpu_nodes("l40s", 1, L40S, per_node=8)]
    spec = {"model": {"preset": "llama-3.1-8b"}, "slo": [], "trafficClass": "Throughput"}
    plan = plan_of(nodes, service(**spec, traffic={}))
    by_rate = {
        each.accelerator: each.weighed_cost_per_hour
        for each in plan.candidates
        if each.weighed_cost_per_hour
    }
    assert plan.chosen.accelerator == min(by_rate, key=lambda each: by_rate[each]) == "L40S"
    assert "at 100 requests/s" in plan.reason


@pytest.mark.parametrize("requests_per_second", ["0.4", "1.39", "3", "7", "20", "55"])
@pytest.mark.parametrize(
    "spec",
    [
        {"slo": [{"metric": "ITL", "percentile": 99, "target": "500ms"}]},
        {"slo": [], "trafficClass": "Throughput"},
    ],
)
def test_no_replica_is_planned_for_more_than_its_queue_bears(spec, requests_per_second):
    nodes = [*gpu_nodes("a10g", 4, "NVIDIA-A10G", per_node=4), *h100(2)]
    traffic = {"requestsPerSecond": requests_per_second}
    plan = plan_of(nodes, service(model={"preset": "llama-3.1-8b"}, traffic=traffic, **spec))
    told = [each.prediction for each in plan.candidates if each.prediction]
    assert told
    for prediction in told:
        assert math.isfinite(prediction.e2e_seconds.mid)
        assert prediction.requests_per_second <= prediction.capacity_requests_per_second
