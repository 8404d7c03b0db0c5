"""What runs already: kept where it is, counted where its pods are, planned again when it must."""

import pytest

from poolwise.plan.decision import Kind, Plan, Rejection
from tests.plan.cluster_given import (
    NOW,
    changed,
    cpu_nodes,
    decided,
    finished,
    h100,
    job,
    key,
    l40s,
    outcomes,
    plan_of,
    pods_of,
    running,
    service,
)
from tests.plan.nodes_given import declared


def test_steady_state_keeps_everything():
    nodes = [*h100(2), *l40s(2), *cpu_nodes("cpu", 2)]
    given = [job(count=8), service()]
    first = decided(nodes, *given)
    children = running(nodes, *given)
    again = decided(nodes, *given, children=children)
    for at, outcome in again.outcomes.items():
        before = first.outcomes[at]
        assert outcome.kept and outcome.placed
        assert outcome.claim == before.claim
        assert outcome.chosen.pool == before.chosen.pool
    assert decided(nodes, *given, children=children) == again


def test_running_workloads_are_not_displaced_by_priority():
    classes = [{"metadata": {"name": "high"}, "value": 1000}]
    old, urgent = job("old", 16), job("urgent", 16, priorityClassName="high")
    found = outcomes(h100(2), old, urgent, children=running(h100(2), old), priority_classes=classes)
    assert (found["old"].kept, found["urgent"].placed) == (True, False)


def test_pods_count_where_they_are_bound():
    """The scheduler may take another node than the ledger named: the rest is still right."""
    nodes = h100(3)
    first = job("first", 8)
    (child,) = running(nodes, first)
    promised = set(decided(nodes, first).outcomes[key("first")].claim.accelerators_by_node)
    elsewhere = next(n["metadata"]["name"] for n in nodes if n["metadata"]["name"] not in promised)
    answer = decided(
        nodes,
        first,
        job("second", 16),
        children=[child],
        pods=pods_of(child, [elsewhere]),
    )
    second = answer.outcomes[key("second")]
    assert second.placed
    assert elsewhere not in second.claim.accelerators_by_node


def test_lost_nodes_do_not_unplace_what_runs():
    children = running(h100(2), job(count=16))
    plan = plan_of(h100(1), job(count=16), children=children)
    assert plan.placed and plan.kept


@pytest.mark.parametrize("how", ["Complete", "Failed"])
def test_ended_job_holds_nothing_and_is_not_run_again(how):
    children = [finished(child, how) for child in running(h100(2), job(count=16))]
    found = outcomes(h100(2), job(count=16), job("next", 16), children=children)
    assert found["job"].kept and not found["job"].placed
    assert found["job"].claim is None
    assert found["next"].placed


def test_ended_job_is_not_run_again_once_its_child_was_cleaned_up():
    done = {**job(), "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    assert not plan_of(h100(2), done).placed


def test_suspended_job_holds_nothing_and_is_planned_when_resumed():
    suspended = job(count=16, suspend=True)
    found = outcomes(h100(2), suspended, job("next", 16), children=running(h100(2), job(count=16)))
    assert found["job"].reason_code == "Suspended"
    assert found["next"].placed
    assert plan_of(h100(2), changed(suspended, suspend=False)).placed


def test_paused_workload_is_left_alone():
    paused = job(count=16)
    paused["metadata"]["annotations"] = {"poolwise.dev/paused": "true"}
    found = outcomes(h100(2), paused, job("next", 16))
    assert found["job"].reason_code == "PausedByAnnotation"
    assert found["next"].placed
    assert plan_of(h100(2), paused, children=running(h100(2), job(count=16))).kept


def test_workload_that_is_being_deleted_gets_no_outcome():
    gone = job(count=16)
    gone["metadata"]["deletionTimestamp"] = NOW.isoformat()
    (child,) = running(h100(2), job(count=16))
    names = [each["metadata"]["name"] for each in h100(2)]
    found = outcomes(h100(2), gone, job("next", 16), children=[child], pods=pods_of(child, names))
    assert "job" not in found
    assert not found["next"].placed, "its pods still run"


def test_spec_that_went_bad_keeps_what_it_holds():
    children = running(h100(2), job(count=16))
    bad = changed(job(count=16), model={"preset": "llama-9"})
    found = outcomes(h100(2), bad, job("next", 8), children=children)
    assert isinstance(found["job"], Rejection)
    assert not found["next"].placed


def test_children_follow_from_the_spec_whatever_the_status_says():
    status = {"plan": {"stepsAhead": "many", "replicas": -1}, "conditions": []}
    plain, told = [job(), service()], [{**each, "status": status} for each in (job(), service())]
    assert running([*h100(2)], *told) == running([*h100(2)], *plain)


def test_damaged_record_never_crashes():
    children = running(h100(2), job(count=8))
    children[0]["metadata"]["annotations"]["poolwise.dev/placement"] = '{"version": 1'
    assert plan_of(h100(2), job(count=8), children=children).placed


MINE = declared("mine", nodeSelector={"kubernetes.io/hostname": "h100-0"})


@pytest.mark.parametrize("are_bound", [True, False], ids=["bound", "pods to come"])
@pytest.mark.parametrize(
    ("before", "after"), [([MINE], []), ([], [MINE])], ids=["deleted", "declared"]
)
def test_what_runs_is_counted_though_its_nodes_change_hands(before, after, are_bound):
    """Whoever declares a pool for nodes in use, or deletes it, leaves what runs to a pool that is
    no more: its devices were free in the new one, and promised twice."""
    nodes, first = h100(1), job("first", 8)
    children = running(nodes, first, pools=before)
    pods = pods_of(children[0], ["h100-0"]) if are_bound else []
    given = {"pools": after, "children": children, "pods": pods}
    answer = decided(nodes, first, job("second", 8), **given)
    (pool,) = answer.pools
    was = answer.outcomes[key("first")].claim.pool
    assert was != pool.name
    assert answer.free_accelerators[pool.name] == 0
    waits = answer.outcomes[key("second")]
    assert not waits.placed
    assert "0 of 8 are free, needs 8; largest blocker: job research/first (8)" in waits.reason


@pytest.mark.parametrize("are_bound", [True, False], ids=["bound", "pods to come"])
def test_what_runs_is_counted_though_its_node_has_left_a_pool_that_has_no_other(are_bound):
    """Which tells no name of its accelerators any more."""
    mine, first = [declared("mine", nodeSelector={"team": "mine"})], job("first", 8)
    children = running(h100(1, team="mine"), first, pools=mine)
    pods = pods_of(children[0], ["h100-0"]) if are_bound else []
    given = {"pools": mine, "children": children, "pods": pods}
    found = outcomes(h100(1, team="yours"), first, job("second", 8), **given)
    assert found["first"].kept
    assert not found["second"].placed


def test_what_a_service_leaves_is_free_once_its_pods_have_ended():
    """Its new spec takes one accelerator of the eight; its old pod still has them all."""
    fixed = {"scaling": {"mode": "Off"}, "replicas": 1}
    old = service(accelerators={"perReplica": 8}, **fixed)
    (child,) = running(h100(1), old)
    pods = pods_of(child, ["h100-0"])
    small = changed(old, accelerators={"perReplica": 1})
    given = {"children": [child], "pods": pods}
    found = outcomes(h100(1), small, job(count=4), **given)
    assert (found["chat"].placed, found["chat"].chosen.count) == (True, 1)
    assert not found["job"].placed
    (moved,) = running(h100(1), small)
    assert outcomes(h100(1), small, job(count=4), children=[moved])["job"].placed


def test_a_service_that_moves_holds_its_new_place_beside_its_old_pods():
    fixed = {"scaling": {"mode": "Off"}, "replicas": 1, "accelerators": {"perReplica": 1}}
    old = service(placement={"pools": ["h100-sxm5-80gb-8-8ef7f"]}, **fixed)
    nodes = [*h100(1), *l40s(1, per_node=1)]
    (child,) = running(nodes, old)
    pods = pods_of(child, ["h100-0"])
    moved = changed(old, placement={"excludePools": ["h100-sxm5-80gb-8-8ef7f"]})
    (there,) = running(nodes, moved)
    found = decided(nodes, moved, children=[there], pods=pods)
    assert sorted(found.free_accelerators.values()) == [0, 7]


@pytest.mark.parametrize("uid", ["", "made-anew"], ids=["expected", "there"])
def test_pods_of_an_earlier_job_of_the_name_take_nothing_from_the_new_one(uid):
    """Its pods come where it was placed, and those that still end hold what they held."""
    nodes = h100(3)
    (child,) = running(nodes, job("new"))
    ending = pods_of(child, ["h100-1"])
    ending[0]["metadata"]["creationTimestamp"] = "2026-11-20T23:59:00Z"
    child["metadata"] |= {"uid": uid, "creationTimestamp": "2026-11-21T00:00:00Z"}
    found = decided(nodes, job("new"), job("other"), children=[child], pods=ending)
    assert found.outcomes[key("new")].claim.accelerators_by_node == {"h100-0": 8}
    assert found.outcomes[key("other")].claim.accelerators_by_node == {"h100-2": 8}


def test_child_of_somebody_else_is_not_adopted():
    children = running(h100(2), job(count=16))
    other = job(count=8)
    other["metadata"]["uid"] = "another"
    assert not plan_of(h100(2), other, children=children).kept


def test_changed_service_is_planned_again_where_it_runs():
    nodes = [*h100(1), *l40s(2)]
    before = service(accelerators={"products": ["H100-SXM5-80GB"]})
    children = running(nodes, before)
    after = changed(before, accelerators={})
    plan = plan_of(nodes, after, children=children)
    assert not plan.kept
    assert plan.chosen.accelerator == "H100-SXM5-80GB"
    assert "stays where it runs" in plan.reason
    assert plan_of(nodes, service()).chosen.accelerator == "L40S"


def test_changed_service_moves_when_its_pool_is_refused():
    nodes = [*h100(1), *l40s(2)]
    before = service()
    after = changed(before, accelerators={"products": ["H100-SXM5-80GB"]})
    assert plan_of(nodes, after, children=running(nodes, before)).chosen.accelerator.startswith(
        "H100"
    )


def test_what_is_planned_again_runs_by_that_only_once_it_is_written():
    """Its record is still that of the pool that it leaves."""
    nodes, before = [*h100(1), *l40s(2)], service()
    after = changed(before, accelerators={"products": ["H100-SXM5-80GB"]})
    plan = plan_of(nodes, after, children=running(nodes, before))
    assert plan.placed and plan.record.pool != plan.chosen.pool
    assert plan.running is None
    kept = plan_of(nodes, before, children=running(nodes, before))
    assert kept.running is kept
    ended = plan_of(h100(1), job(), children=[finished(*running(h100(1), job()))])
    assert ended.kept and ended.running is None


def test_changed_service_counts_its_own_accelerators_as_free():
    before = service(accelerators={"perReplica": 8})
    after = changed(before, accelerators={"perReplica": 4})
    assert plan_of(h100(1), after, children=running(h100(1), before)).placed


def test_changed_service_without_a_place_goes_on_and_holds_what_it_held():
    before = service(accelerators={"perReplica": 8})
    after = changed(before, accelerators={"perReplica": 16})
    found = outcomes(h100(1), after, job(count=8), children=running(h100(1), before))
    assert not found["chat"].placed
    assert not found["job"].placed


@pytest.mark.parametrize("wanted", [None, 1, 3, 5])
@pytest.mark.parametrize("more", [{}, {"traffic": {"requestsPerSecond": "3"}}])
def test_a_service_outlives_the_last_node_of_the_pool_of_a_person(wanted, more):
    """Such a pool stays, and nothing tells any more how large its nodes are."""
    pool, nodes = declared("mine", nodeSelector={"team": "mine"}), h100(1, team="mine")
    chat, at = service("chat"), key("chat", Kind.INFERENCE_SERVICE)
    first = running(nodes, chat, pools=[pool])
    children = running(nodes, chat, children=first, pools=[pool], scaling={at: 3})
    edited = changed(chat, **more) if more else chat
    scaling = {} if wanted is None else {at: wanted}
    told = decided([], edited, children=children, pools=[pool], scaling=scaling)
    plan = told.outcomes[at]
    assert isinstance(plan, Plan)
    assert plan.running is not None and plan.running.record is not None
    assert plan.running.record.pool == "mine"
    follows = not more  # of an earlier spec, with hardware that nobody knows, the number stays
    assert plan.running.record.replicas == (min(wanted or 3, 3) if follows else 3)
