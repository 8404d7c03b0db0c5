"""Services that declare no peak: one request under way is what pools and shapes are compared by."""

from __future__ import annotations

import math

import pytest

from tests.plan.cluster_given import gpu_nodes, h100, plan_of, service

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
