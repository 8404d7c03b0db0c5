"""Names that nothing in the cluster has: the sentence, and the nearest thing that would work."""

import pytest

from poolwise.plan.conditions import Reason
from tests.plan.cluster_given import (
    foreign_pod,
    h100,
    job,
    l40s,
    outcomes,
    plan_of,
    service,
)

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
    assert plan.reason.endswith("would run it on 1 x 1 x L40S")


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
