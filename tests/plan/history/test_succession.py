"""A pool that is gone and whose nodes another one has: services there are scaled by that one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from poolwise.plan.children.manifests import children
from poolwise.plan.decision import Kind, Plan
from poolwise.plan.history.succession import former_pools
from poolwise.settings import Settings
from tests.plan.cluster_given import decided, h100, job, key, l40s, pods_of, running, service
from tests.plan.nodes_given import declared

CHAT = key("chat", Kind.INFERENCE_SERVICE)
TEAM = {"team": "mine"}
OURS = declared("ours", nodeSelector=TEAM)


def chat(**more):
    return service("chat", scaling={"maxReplicas": 12}, **more)


def nodes(count=1):
    return h100(count, **TEAM)


def taken_over(wanted, workload=None, pools=(OURS,), there=None, **more):
    """The answer once the load asks for so many, and somebody declared these pools."""
    runs = running(nodes(), chat())
    given = {"scaling": {CHAT: wanted}} if wanted is not None else {}
    return decided(
        nodes() if there is None else there,
        workload or chat(),
        children=runs,
        pods=pods_of(runs[0], ["h100-0"]),
        pools=list(pools),
        **given,
        **more,
    )


def test_replicas_follow_the_load_under_the_old_name():
    answer = taken_over(3)
    plan, (ours,) = answer.outcomes[CHAT], answer.pools
    assert isinstance(plan, Plan) and plan.record is not None
    assert (ours.name, plan.kept, plan.record.replicas) == ("ours", True, 3)
    assert plan.pool == plan.record.pool != "ours"
    former = answer.places[plan.pool]
    assert (former.name, former.taken_over_by) == (plan.pool, "ours")
    assert former.price == ours.price
    assert plan.claim is not None and set(plan.claim.accelerators_by_node) == {"h100-0"}


def test_as_many_come_as_have_room_there_and_none_elsewhere():
    answer = taken_over(12, there=[*nodes(), *l40s(2)])
    plan = answer.outcomes[CHAT]
    assert isinstance(plan, Plan) and plan.record is not None
    assert plan.record.replicas == 8 // plan.record.count
    assert plan.parts == ()
    assert answer.rooms[CHAT].here == 0 and answer.rooms[CHAT].elsewhere == ()


@pytest.mark.parametrize("mode", ["External", "Off"])
def test_a_number_that_others_set_is_an_edit_and_places_it_anew(mode):
    workload = service("chat", scaling={"mode": mode, "maxReplicas": 12}, replicas=4)
    plan = taken_over(3, workload).outcomes[CHAT]
    assert isinstance(plan, Plan) and plan.record is not None
    assert (plan.kept, plan.record.replicas) == (True, 1)
    workload["metadata"]["generation"] = 2
    plan = taken_over(3, workload).outcomes[CHAT]
    assert isinstance(plan, Plan)
    assert (plan.kept, plan.pool, plan.replicas) == (False, "ours", 4)


@pytest.mark.parametrize(
    ("pools", "there"),
    [
        pytest.param([declared("other", nodeSelector={"team": "theirs"})], None, id="other nodes"),
        pytest.param([OURS], [], id="no nodes"),
        pytest.param(
            [declared("ours", nodeSelector=TEAM, accelerator="H200-SXM-141GB")],
            None,
            id="other accelerators",
        ),
    ],
)
def test_nobody_else_takes_it_over(pools, there):
    answer = taken_over(3, pools=pools, there=there)
    plan = answer.outcomes[CHAT]
    assert isinstance(plan, Plan)
    if plan.pool in {each.name for each in answer.pools}:
        assert not answer.former
        return
    assert plan.pool not in answer.places
    assert plan.record is not None and plan.record.replicas == 1


def test_nodes_of_two_pools_have_no_heir():
    runs = running(nodes(2), chat())
    answer = decided(nodes(2), chat(), children=runs, pods=pods_of(runs[0], ["h100-0"]))
    record, pool = answer.outcomes[CHAT].record, answer.pools[0]
    halves = [replace(pool, name=node.name, nodes=(node,)) for node in pool.nodes]
    both = replace(record.claim, accelerators_by_node={"h100-0": 1, "h100-1": 1})
    assert former_pools(halves, {CHAT: record}, {CHAT: both}) == {}
    one = replace(record.claim, accelerators_by_node={"h100-1": 1}, cores_by_node={},
                  memory_bytes_by_node={}, others={})  # fmt: skip
    (found,) = former_pools(halves, {CHAT: record}, {CHAT: one}).values()
    assert found.taken_over_by == "h100-1"


def test_an_edit_of_its_spec_places_it_on_the_pool_that_is_there():
    edited = chat()
    edited["metadata"]["generation"] = 2
    edited["spec"]["slo"][0]["target"] = "3s"
    answer = taken_over(None, edited)
    plan = answer.outcomes[CHAT]
    assert isinstance(plan, Plan)
    assert (plan.placed, plan.kept, plan.pool) == (True, False, "ours")
    made = children(edited, plan, answer.pools[0], Settings())
    assert any(each["kind"] == "Deployment" for each in made)


def test_a_job_runs_on_as_it_does():
    work = job("run", 8)
    runs = running(nodes(), work)
    pods = pods_of(runs[0], ["h100-0"])
    answer = decided(nodes(), work, children=runs, pods=pods, pools=[OURS])
    plan = next(each for key, each in answer.outcomes.items() if key.kind is Kind.TRAINING_JOB)
    assert isinstance(plan, Plan)
    assert plan.kept and plan.placed and plan.pool != "ours"
