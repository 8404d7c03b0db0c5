"""Services whose spec was edited to one that has no place: what runs goes on, and is scaled."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.plan import names
from poolwise.plan.children.manifests import children
from poolwise.plan.children.resizing import changes
from poolwise.plan.decision import Kind, Plan
from poolwise.plan.records.placement_record import parse
from poolwise.plan.selection.slips import unreachable_target
from poolwise.settings import Settings
from tests.plan.cluster_given import (
    changed,
    decided,
    foreign_pod,
    h100,
    key,
    l40s,
    plan_of,
    service,
)

CHAT = key("chat", Kind.INFERENCE_SERVICE)
FAST = [{"metric": "TTFT", "percentile": 99, "target": "1ms"}]


def chat(**more):
    return service("chat", scaling={"maxReplicas": 12, **more})


def made(answer, workload):
    """Deployments, that on a further pool first."""
    plan = answer.outcomes[CHAT]
    pools = {pool.name: pool for pool in answer.pools}
    found = children(workload, plan, pools[plan.claim.pool], Settings(), further=pools)
    return [each for each in found if each["kind"] == "Deployment"]


def running(nodes, count, workload=None, **more):
    workload = workload or chat()
    first = made(decided(nodes, workload), workload)
    answer = decided(nodes, workload, children=first, scaling={CHAT: count}, **more)
    return made(answer, workload)


def goes_on(nodes, edited, runs, **more):
    plan = decided(nodes, edited, children=runs, **more).outcomes[CHAT]
    assert isinstance(plan, Plan)
    assert not plan.placed
    assert plan.goes_on_as is not None
    return plan.goes_on_as


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 8), st.none() | st.integers(0, 20), st.integers(0, 8))
def test_the_number_follows_within_its_limits_and_the_room_there_is(runs_with, wanted, taken):
    nodes = h100(1)
    taken = min(taken, 8 - runs_with)
    others = [foreign_pod("h100-0", taken)] if taken else []
    scaling = {} if wanted is None else {CHAT: wanted}
    edited = changed(chat(), slo=FAST)
    plan = goes_on(nodes, edited, running(nodes, runs_with), scaling=scaling, pods=others)
    expected = runs_with if wanted is None else min(max(wanted, 1), 12, 8 - taken)
    assert plan.record.replicas == expected
    assert plan.standstill is None


@pytest.mark.parametrize("given_replicas", [0, 2, 6])
def test_a_number_that_others_set_is_followed(given_replicas):
    nodes = h100(1)
    theirs = service("chat", scaling={"mode": "External", "maxReplicas": 12}, replicas=4)
    runs = made(decided(nodes, theirs), theirs)
    edited = changed(theirs, slo=FAST, replicas=given_replicas)
    assert goes_on(nodes, edited, runs).record.replicas == given_replicas


def test_further_pools_are_kept_and_none_is_begun():
    nodes = [*h100(1, per_node=2), *l40s(1, per_node=4)]
    placed = decided(nodes, chat())
    first = placed.outcomes[CHAT].chosen.pool
    second = next(pool.name for pool in placed.pools if pool.name != first)
    runs = running(nodes, 2, overflow={CHAT: {second: 2}})
    edited = changed(chat(), slo=FAST)
    for wanted, expected in (({second: 1}, 1), ({}, 1), (None, 2)):
        asked = {} if wanted is None else {CHAT: wanted}
        plan = goes_on(nodes, edited, runs, scaling={CHAT: 2}, overflow=asked)
        assert [part.record.replicas for part in plan.parts] == [expected]
    alone = running(nodes, 2)
    plan = goes_on(nodes, edited, alone, scaling={CHAT: 2}, overflow={CHAT: {second: 2}})
    assert plan.parts == ()


def test_a_model_that_what_runs_could_not_hold_leaves_the_number_alone():
    nodes = h100(1)
    edited = changed(chat(), slo=FAST, model={"preset": "llama-3.1-405b"})
    plan = goes_on(nodes, edited, running(nodes, 3), scaling={CHAT: 6})
    assert plan.record.replicas == 3
    assert "earlier spec" in plan.standstill


@pytest.mark.parametrize("nodes", [[], l40s(1)], ids=["no-node", "other-nodes"])
def test_a_pool_that_is_gone_leaves_the_number_alone(nodes):
    runs = running(h100(1), 3)
    plan = goes_on(nodes, changed(chat(), slo=FAST), runs, scaling={CHAT: 6})
    assert plan.record.replicas == 3


def test_nothing_of_a_child_is_written_but_what_follows_the_number():
    nodes = h100(1)
    [child] = runs = running(nodes, 3)
    plan = goes_on(nodes, changed(chat(), slo=FAST), runs, scaling={CHAT: 5})
    found = changes(child, plan, 4)
    assert found["spec"] == {
        "replicas": 5,
        "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
    }
    assert list(found["metadata"]) == ["annotations"]
    assert parse(found["metadata"]["annotations"][names.PLACEMENT], CHAT) == plan.record
    assert changes({"kind": "PodDisruptionBudget"}, plan, 4) == {"spec": {"minAvailable": 4}}
    assert changes({"kind": "Service"}, plan, 4) == {}
    foreign = {"kind": "Deployment", "metadata": {"name": "chat"}}
    assert changes(foreign, plan, 4) == {}


def test_the_floor_is_that_of_the_pool_that_comes_nearest():
    plan = plan_of([*h100(1), *l40s(1)], service(slo=FAST))
    nearest = min(plan.candidates, key=lambda each: each.shortfall)
    assert nearest.accelerator == "H100-SXM5-80GB"
    told = unreachable_target(plan.candidates)
    assert told.endswith(f"nearest is {nearest.pool}: {nearest.reason}")


def test_a_target_is_not_what_keeps_it_out_where_a_pool_keeps_it():
    busy = plan_of(h100(1), service(), pods=[foreign_pod("h100-0", 8)])
    assert not busy.placed
    assert unreachable_target(busy.candidates) == ""
    elsewhere = plan_of(h100(1), service(placement={"pools": ["none"]}, slo=FAST))
    assert unreachable_target(elsewhere.candidates) == ""
