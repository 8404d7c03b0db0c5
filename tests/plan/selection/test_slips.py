"""Names that nothing in the cluster has: the sentence, and the nearest thing that would work."""

from datetime import timedelta

import pytest

from poolwise.plan.conditions import Reason
from poolwise.plan.wording import duration
from tests.plan.cluster_given import (
    NOW,
    foreign_pod,
    gpu_nodes,
    h100,
    job,
    l40s,
    outcomes,
    plan_of,
    service,
)
from tests.plan.provisioning.given import growing

H200 = {"accelerators": {"count": 8, "products": ["H200"]}}


def test_a_product_that_no_pool_has():
    plan = plan_of([*h100(1), *l40s(1)], job(**H200))
    assert plan.reason_code == Reason.NO_FEASIBLE_POOL
    assert plan.reason.startswith("accelerators.products: no pool has H200")
    assert plan.reason.endswith("would run it on 8 x H100-SXM5-80GB")


def test_what_would_run_it_may_be_busy():
    plan = plan_of(h100(1), job(**H200), pods=[foreign_pod("h100-0", 8)])
    assert plan.reason.endswith("8 x H100-SXM5-80GB, once they are free")


def test_a_product_that_no_pool_has_and_nothing_that_would_do():
    plan = plan_of(l40s(1), job(accelerators={"count": 64, "products": ["H200"]}))
    assert plan.reason.startswith("accelerators.products: no pool has H200")
    assert "would run it" not in plan.reason


def test_a_service_is_told_replicas():
    plan = plan_of(l40s(1), service(accelerators={"products": ["H200"]}))
    assert plan.reason.endswith("would run it on 1 replica of 1 x L40S")


@pytest.mark.parametrize(
    ("asked", "told"),
    [("h100-sxm5-80gb-8", "did you mean h100-sxm5-80gb-8-"), ("fast", "there are h100-sxm5-80gb")],
)
def test_a_pool_that_is_not_there(asked, told):
    plan = plan_of(h100(1), job(placement={"pools": [asked]}))
    assert plan.reason.startswith(f"placement.pools: there is no pool {asked}; {told}")


def test_nobody_else_waits_for_it():
    found = outcomes(h100(1), job("slip", **H200), job("good", 8))
    assert found["good"].placed
    assert not found["slip"].placed


@pytest.mark.parametrize("deadline", ["2026-11-21T00:10:00Z", "2020-01-01T00:00:00Z"])
def test_a_deadline_that_no_pool_meets_is_told_with_one_that_would_do(deadline):
    nodes = [*h100(1), *l40s(1)]
    quick = next(each for each in plan_of(nodes, job(count=8)).candidates if each.chosen)
    plan = plan_of(nodes, job(count=8, objective={"deadline": deadline}))
    assert plan.reason_code == Reason.NO_FEASIBLE_POOL
    near = f"a deadline {duration(quick.total_seconds)} from its start, on 8 x H100-SXM5-80GB of "
    assert f"; nearest that would work: {near}{quick.pool}" in plan.reason


def test_the_deadline_that_would_do_counts_the_start_of_nodes_too():
    """Four minutes until nodes come, to a run of a few."""
    short = {"globalBatchSize": 64, "sequenceLength": 2048, "steps": 50}
    quick = plan_of([], job(training=short), pools=[growing()]).chosen
    late = {"deadline": (NOW + timedelta(seconds=10)).isoformat()}
    told = plan_of([], job(training=short, objective=late), pools=[growing()]).reason
    assert quick.startup_seconds == 240
    assert f"a deadline {duration(240 + quick.total_seconds)} from its start" in told


def test_a_deadline_that_has_passed_is_told_before_all_that_is_in_the_way_besides():
    nodes = [*h100(1), *gpu_nodes("t4", 1, "Tesla-T4", 4)]
    late = {"deadline": "2026-11-20T00:00:00Z"}
    told = plan_of(nodes, job(count=8, objective=late)).reason
    assert told.startswith("no pool can run it: h100-sxm5-80gb-8-")
    first, second = told.removeprefix("no pool can run it: ").split("; ")[:2]
    assert first.endswith("and the deadline (2026-11-20 00:00 UTC) has passed")
    assert "has 4 accelerators, needs 8" in second


def test_no_deadline_is_offered_where_the_money_would_not_last():
    limits = {"deadline": "2026-11-21T00:10:00Z", "maxCost": "1"}
    assert "nearest that would work" not in plan_of(h100(1), job(objective=limits)).reason


@pytest.mark.parametrize(
    ("level", "told"),
    [
        ("rack", "none here has the label rack"),
        (
            "nvidia.com/gpu.products",
            "none here has the label nvidia.com/gpu.products; did you mean nvidia.com/gpu.product?",
        ),
    ],
)
def test_a_level_that_no_node_has_stops_nobody_who_only_wishes_it(level, told):
    wished = {"topology": {"mode": "Preferred", "level": level}}
    plan = plan_of(h100(2), job(count=16, placement=wished))
    assert plan.placed
    assert plan.reason.endswith(f"nodes anywhere: {told}")
