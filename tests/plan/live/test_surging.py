"""Whether updates start before they stop follows the room of now, and restarts nothing."""

from __future__ import annotations

import pytest

from poolwise.plan.children.manifests import children
from poolwise.plan.decision import Kind, Plan
from poolwise.settings import Settings
from tests.plan.cluster_given import (
    cpu_nodes,
    decided,
    foreign_pod,
    h100,
    job,
    key,
    l40s,
    pods_of,
    running,
    service,
)

CHAT = key("chat", Kind.INFERENCE_SERVICE)
START_FIRST = {"maxSurge": 1, "maxUnavailable": 0}
STOP_FIRST = {"maxSurge": 0, "maxUnavailable": 1}


def chat(**more):
    return service("chat", scaling={"maxReplicas": 12}, **more)


def deployments(answer, workload=None):
    plan = answer.outcomes[CHAT]
    assert isinstance(plan, Plan) and plan.claim is not None
    pools = {pool.name: pool for pool in answer.pools}
    made = children(workload or chat(), plan, pools[plan.claim.pool], Settings(), further=pools)
    return [each for each in made if each["kind"] == "Deployment"]


def deployment(answer):
    [found] = deployments(answer)
    return found


def strategy(found):
    return found["spec"]["strategy"]["rollingUpdate"]


def full(nodes):
    """The Deployment of a service that has taken all accelerators of a node of eight."""
    found = deployment(decided(nodes, chat(), children=running(nodes, chat()), scaling={CHAT: 8}))
    assert strategy(found) == STOP_FIRST
    return found


def test_replicas_that_are_given_up_make_room_once_their_pods_have_ended():
    nodes = h100(1)
    before = full(nodes)
    pods = pods_of(before, ["h100-0"] * 8)
    fewer = deployment(decided(nodes, chat(), children=[before], pods=pods, scaling={CHAT: 3}))
    assert (fewer["spec"]["replicas"], strategy(fewer)) == (3, STOP_FIRST)
    again = decided(nodes, chat(), children=[fewer], pods=pods)
    assert strategy(deployment(again)) == STOP_FIRST
    after = deployment(decided(nodes, chat(), children=[fewer], pods=pods[:3]))
    assert strategy(after) == START_FIRST
    assert after["spec"]["template"] == before["spec"]["template"]
    assert after["spec"]["replicas"] == 3
    once_more = decided(nodes, chat(), children=[after], pods=pods[:3])
    assert deployment(once_more) == after


def test_room_that_others_take_and_give_back_changes_the_strategy():
    nodes = h100(1)
    [before] = running(nodes, chat())
    assert strategy(before) == START_FIRST
    taken = deployment(decided(nodes, chat(), children=[before], pods=[foreign_pod("h100-0", 7)]))
    assert strategy(taken) == STOP_FIRST
    assert taken["spec"]["template"] == before["spec"]["template"]
    assert deployment(decided(nodes, chat(), children=[taken])) == before


def test_room_that_others_are_given_is_gone_once_they_are_made():
    """Who cannot be made is tried again and again, and its attempts take nothing from anybody."""
    nodes, both = h100(1), (chat(), job(count=7))
    answer = decided(nodes, *both, children=running(nodes, chat()))
    assert answer.outcomes[key("job")].placed
    assert strategy(deployment(answer)) == START_FIRST
    answer = decided(nodes, *both, children=running(nodes, *both))
    assert strategy(deployment(answer)) == STOP_FIRST


def test_room_that_others_are_given_beyond_their_own_pool_is_gone_once_they_are_made():
    here, beyond = h100(1, per_node=4), l40s(1, per_node=4)
    [before] = running(here, chat())
    wide = service("wide", scaling={"mode": "Off"}, replicas=7)
    answer = decided([*here, *beyond], chat(), wide, children=[before])
    [part] = answer.outcomes[key("wide", Kind.INFERENCE_SERVICE)].parts
    assert part.claim.accelerators_by_node == {"h100-0": 3}
    assert deployment(answer) == before


def test_an_update_that_is_under_way_is_not_turned_round():
    """Its own new pod holds the room that it started with."""
    nodes = h100(1)
    [before] = running(nodes, chat())
    pods = pods_of(before, ["h100-0", "h100-0"])
    answer = decided(nodes, chat(), children=[before], pods=[*pods, foreign_pod("h100-0", 6)])
    assert strategy(deployment(answer)) == START_FIRST
    done = decided(nodes, chat(), children=[before], pods=[pods[1], foreign_pod("h100-0", 7)])
    assert strategy(deployment(done)) == STOP_FIRST


@pytest.mark.parametrize("mode", ["External", "Off"])
def test_it_is_so_in_each_mode(mode):
    nodes = h100(1)
    theirs = service("chat", scaling={"mode": mode}, replicas=2)
    [before] = running(nodes, theirs)
    answer = decided(nodes, theirs, children=[before], pods=[foreign_pod("h100-0", 6)])
    assert strategy(deployments(answer, theirs)[0]) == STOP_FIRST


def test_each_pool_has_its_own():
    nodes = [*h100(1, per_node=2), *l40s(1, per_node=4)]
    placed = decided(nodes, chat())
    first = placed.outcomes[CHAT].chosen.pool
    second = next(pool.name for pool in placed.pools if pool.name != first)
    runs = deployments(placed)
    spread = decided(nodes, chat(), children=runs, scaling={CHAT: 1}, overflow={CHAT: {second: 1}})
    other = "h100-0" if second.startswith("h100") else "l40s-0"
    free = {"h100-0": 1, "l40s-0": 3}[other]
    pods = [foreign_pod(other, free)]
    answer = decided(nodes, chat(), children=deployments(spread), pods=pods)
    assert [strategy(each) for each in deployments(answer)] == [STOP_FIRST, START_FIRST]


def embedding(**more):
    """A service of encoders, that CPUs bear."""
    return service(
        "chat",
        model={"preset": "bert-large"},
        traffic={"requestsPerSecond": "20", "inputTokens": {"p50": 100, "p95": 200}},
        slo=[{"metric": "E2E", "percentile": 95, "target": "1s"}],
        run={"image": "embedder"},
        **more,
    )


def test_containers_that_others_inject_are_no_update():
    """On CPU pods are told apart by their cores alone."""
    nodes = cpu_nodes("cpu", 1)
    [before] = running(nodes, embedding())
    assert strategy(before) == START_FIRST
    [pod] = pods_of(before, ["cpu-0"])
    sidecar = {"name": "proxy", "resources": {"requests": {"cpu": "500m"}}}
    pod["spec"]["containers"] = [*pod["spec"]["containers"], sidecar]
    other = {**foreign_pod("cpu-0", 0), "spec": {"nodeName": "cpu-0", "containers": [BUSY]}}
    answer = decided(nodes, embedding(), children=[before], pods=[pod, other])
    assert strategy(deployments(answer, embedding())[0]) == STOP_FIRST
    new = {**pod, "metadata": {**pod["metadata"], "name": "chat-new"}}
    under_way = decided(nodes, embedding(), children=[before], pods=[pod, new, other])
    assert strategy(deployments(under_way, embedding())[0]) == START_FIRST


BUSY = {"name": "main", "resources": {"requests": {"cpu": "30"}}}


def test_a_service_without_replicas_is_in_no_update():
    """Nothing of it can be more than it is to have."""
    nodes, idle = cpu_nodes("cpu", 1), embedding(scaling={"mode": "Off"}, replicas=0)
    [before] = running(nodes, idle)
    answer = decided(nodes, idle, children=[before], pods=pods_of(before, ["cpu-0"]))
    assert strategy(deployments(answer, idle)[0]) == START_FIRST
