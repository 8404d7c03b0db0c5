"""What sleeps has a shape and no room; where its pool goes, it is placed anew."""

from __future__ import annotations

import pytest

from poolwise.plan.decision import Kind, Plan
from tests.plan.cluster_given import decided, foreign_pod, h100, key, l40s, running, service
from tests.plan.live.test_surging import deployment
from tests.plan.provisioning.given import growing, node

CHAT = key("chat", Kind.INFERENCE_SERVICE)


def chat():
    return service("chat", scaling={"minReplicas": 0, "scaleToZero": True})


def asleep(nodes, **more):
    """The Deployment of a service whose last replica has left."""
    up = running(nodes, chat(), **more)
    return deployment(decided(nodes, chat(), children=up, scaling={CHAT: 0}, **more))


def plan(answer) -> Plan:
    found = answer.outcomes[CHAT]
    assert isinstance(found, Plan)
    return found


def test_the_last_replica_gives_its_room_up_and_keeps_its_place():
    nodes = h100(1)
    found = asleep(nodes)
    assert found["spec"]["replicas"] == 0
    answer = decided(nodes, chat(), children=[found])
    assert plan(answer).kept
    (free,) = answer.free_accelerators.values()
    assert free == 8


def test_the_first_replica_comes_back_to_the_place_that_it_had():
    nodes = h100(1)
    answer = decided(nodes, chat(), children=[asleep(nodes)], scaling={CHAT: 1})
    assert deployment(answer)["spec"]["replicas"] == 1


def test_without_room_it_stays_as_it_is():
    nodes = h100(1)
    full = [foreign_pod("h100-0", 8)]
    answer = decided(nodes, chat(), children=[asleep(nodes)], pods=full, scaling={CHAT: 1})
    assert plan(answer).kept
    assert deployment(answer)["spec"]["replicas"] == 0


def test_a_pool_that_has_no_nodes_now_is_asked_for_one():
    """Nodes of an idle pool are taken away: who slept there brings one back."""
    up = asleep([node("a")], pools=[growing()])
    kept = decided([], chat(), children=[up], pools=[growing()])
    assert plan(kept).kept
    woken = decided([], chat(), children=[up], pools=[growing()], scaling={CHAT: 1})
    assert deployment(woken)["spec"]["replicas"] == 1


def test_where_its_pool_is_gone_it_is_placed_anew_with_one_replica():
    before = asleep(h100(1))
    answer = decided(l40s(1), chat(), children=[before])
    assert not plan(answer).kept
    assert deployment(answer)["spec"]["replicas"] == 1


@pytest.mark.parametrize("is_paused", [True, False])
def test_what_runs_or_is_paused_is_left_where_it_is(is_paused):
    paused = {"poolwise.dev/paused": "true"} if is_paused else {}
    workload = chat()
    workload["metadata"]["annotations"] = paused
    child = asleep(h100(1)) if is_paused else running(h100(1), chat())[0]
    answer = decided(l40s(1), workload, children=[child])
    assert plan(answer).kept
