"""Services that run get the replicas that their load asks for: in place, in free room alone."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.plan.children.manifests import children
from poolwise.plan.decision import Kind, Plan
from poolwise.plan.records.runtimes import Served
from poolwise.settings import Settings
from tests.plan.children.set_cases import APIS
from tests.plan.cluster_given import (
    changed,
    decided,
    foreign_pod,
    h100,
    held,
    key,
    pods_of,
    running,
    service,
)
from tests.plan.nodes_given import declared

CHAT = key("chat", Kind.INFERENCE_SERVICE)


def chat(**more):
    return service("chat", scaling={"maxReplicas": 12, **more})


def scaled(nodes, wanted, workload=None, runs=None, **more):
    """The outcome and the children once the load asks for so many replicas."""
    workload = workload or chat()
    runs = running(nodes, chat()) if runs is None else runs
    answer = decided(nodes, workload, children=runs, scaling={CHAT: wanted}, **more)
    plan = answer.outcomes[CHAT]
    assert isinstance(plan, Plan)
    return plan, answer


def deployment(plan, answer, workload=None):
    [pool] = [each for each in answer.pools if each.name == plan.claim.pool]
    made = children(workload or chat(), plan, pool, Settings())
    return next(each for each in made if each["kind"] == "Deployment")


def replicas(answer, workload=None):
    return deployment(answer.outcomes[CHAT], answer, workload)["spec"]["replicas"]


@pytest.mark.parametrize("wanted", [1, 3])
def test_the_number_stays_while_its_pool_is_gone(wanted):
    """Its nodes left the cluster: nobody knows whether there is room."""
    nodes = h100(1)
    _, answer = scaled(nodes, 2)
    runs = [deployment(answer.outcomes[CHAT], answer)]
    plan, gone = scaled([], wanted, runs=runs, pods=pods_of(runs[0], ["h100-0"] * 2))
    assert gone.pools == ()
    assert plan.kept and plan.record is not None and plan.record.replicas == 2


def test_replicas_over_several_nodes_are_fewer_while_the_pool_has_no_node():
    """Only what they run as tells then that each of them spans two."""
    asked = service(
        "chat",
        model={"preset": "llama-3.1-405b", "uri": "pvc://models/405b"},
        slo=[{"metric": "TTFT", "percentile": 99, "target": "60s"}],
        scaling={"minReplicas": 1, "maxReplicas": 2},
    )
    given = {"pools": [declared("mine", nodeSelector={"team": "mine"})], "apis": APIS}
    answer = decided(h100(4, team="mine"), asked, **given, scaling={CHAT: 2})
    plan, (pool,) = answer.outcomes[CHAT], answer.pools
    assert isinstance(plan, Plan)
    groups = children(asked, plan, pool, Settings(), Served(APIS))[-1]
    assert (groups["kind"], groups["spec"]["replicas"]) == ("LeaderWorkerSet", 2)
    gone = decided([], asked, children=[groups], scaling={CHAT: 1}, **given).outcomes[CHAT]
    assert isinstance(gone, Plan) and gone.record is not None
    assert gone.record.replicas == 1
    assert sorted(gone.record.claim.accelerators_by_node.values()) == [8, 8]


@pytest.mark.parametrize("wanted", [1, 3, 8])
def test_the_number_follows_and_nothing_restarts(wanted):
    nodes = h100(1)
    [before] = running(nodes, chat())
    plan, answer = scaled(nodes, wanted)
    after = deployment(plan, answer)
    assert after["spec"]["replicas"] == wanted
    assert after["spec"]["template"] == before["spec"]["template"]
    assert plan.kept
    assert held(answer).total() == wanted


def test_it_is_kept_once_it_is_written():
    """A restarted operator knows the number from the child, before it has seen any load."""
    nodes = h100(1)
    child = deployment(*scaled(nodes, 5))
    again = decided(nodes, chat(), children=[child]).outcomes[CHAT]
    assert isinstance(again, Plan)
    assert again.record is not None
    assert again.record.replicas == 5


def test_limits_of_the_spec_hold():
    nodes = h100(2)
    assert scaled(nodes, 99)[0].record.replicas == 12
    least = chat(minReplicas=2)
    assert scaled(nodes, 0, least, running(nodes, least))[0].record.replicas == 2


def test_only_free_room_is_taken():
    nodes = h100(1)
    plan, answer = scaled(nodes, 8, pods=[foreign_pod("h100-0", 3)])
    assert plan.record.replicas == 5
    assert held(answer).total() == 5
    assert plan.record.may_surge is False


def test_a_pool_without_room_changes_nothing_but_how_updates_go():
    nodes = h100(1)
    before, _ = scaled(nodes, 1)
    plan, _ = scaled(nodes, 4, pods=[foreign_pod("h100-0", 7)])
    assert plan.record == replace(before.record, may_surge=False)


def test_what_is_given_up_is_held_until_its_pods_have_ended():
    nodes = h100(1)
    child = deployment(*scaled(nodes, 5))
    pods = pods_of(child, ["h100-0"] * 5)
    shrunk, _ = scaled(nodes, 2, runs=[child], pods=pods)
    after = deployment(shrunk, decided(nodes, chat(), children=[child]))
    others = decided(nodes, chat(), children=[after], pods=pods)
    assert held(others).total() == 2
    assert others.free_accelerators[shrunk.claim.pool] == 3


@pytest.mark.parametrize("mode", ["External", "Off"])
def test_other_modes_are_left_alone(mode):
    nodes = h100(1)
    theirs = service("chat", scaling={"mode": mode}, replicas=2)
    plan, _ = scaled(nodes, 6, theirs, running(nodes, theirs))
    assert plan.record.replicas == 2


def test_a_changed_spec_does_not_forget_the_load():
    nodes = h100(1)
    child = deployment(*scaled(nodes, 6))
    edited = changed(chat(), engine={"args": ["--enable-prefix-caching"]})
    plan, answer = scaled(nodes, 6, edited, [child])
    assert not plan.kept
    assert deployment(plan, answer, edited)["spec"]["replicas"] == 6


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 8), st.integers(0, 6), st.integers(1, 12))
def test_a_changed_spec_keeps_what_runs_where_the_load_is_not_known(runs_with, least, most):
    """Metrics are silent, somebody else scales too, or nobody has looked yet: within the limits
    that the spec has now."""
    nodes, most = h100(1), max(least, most)
    child = deployment(*scaled(nodes, runs_with))
    limits = {"minReplicas": least, "maxReplicas": most}
    edited = changed(chat(), run={"env": [{"name": "A", "value": "b"}]}, scaling=limits)
    answer = decided(nodes, edited, children=[child])
    plan = answer.outcomes[CHAT]
    assert isinstance(plan, Plan)
    assert not plan.kept
    wanted = min(max(runs_with, least, 1), most)
    assert deployment(plan, answer, edited)["spec"]["replicas"] == wanted


@pytest.mark.parametrize(("runs_with", "load"), [(1, None), (8, None), (1, 0)])
def test_a_larger_declared_peak_counts_until_the_load_is_known(runs_with, load):
    """Requests that are announced have not been seen; those that are seen count alone."""
    nodes = h100(1)
    child = deployment(*scaled(nodes, runs_with))
    edited = changed(service("chat", "100", scaling={"maxReplicas": 12}))
    announced = replicas(decided(nodes, edited), edited)
    assert 1 < announced < 8
    asked = {} if load is None else {CHAT: load}
    answer = decided(nodes, edited, children=[child], scaling=asked)
    assert replicas(answer, edited) == (max(runs_with, announced) if load is None else 1)


def test_services_that_nobody_asked_about_are_not_touched():
    nodes = h100(1)
    other = service("other")
    runs = running(nodes, chat(), other)
    answer = decided(nodes, chat(), other, children=runs, scaling={CHAT: 4})
    untouched = answer.outcomes[key("other", Kind.INFERENCE_SERVICE)]
    assert untouched == decided(nodes, chat(), other, children=runs).outcomes[untouched.key]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=6), st.integers(0, 8))
def test_never_more_than_there_is(numbers, taken):
    """Whatever the load asks for and others hold, no node is promised twice."""
    nodes = h100(2)
    others = [foreign_pod("h100-0", taken)] if taken else []
    runs = running(nodes, chat(), pods=others)
    for wanted in numbers:
        plan, answer = scaled(nodes, wanted, runs=runs, pods=others)
        assert held(answer)["h100-0"] <= 8 - taken
        assert held(answer)["h100-1"] <= 8
        assert held(answer).total() == plan.record.replicas
        runs = [deployment(plan, answer)]
