"""Which nodes are idle since when, and what that costs; nothing of ours keeps them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from poolwise.plan.ledger.idle import NODES_TOLD
from poolwise.plan.pools.objects import pool_status
from tests.plan.children.given import cpu_pool, h100_pool
from tests.plan.cluster_given import (
    NOW,
    cpu_nodes,
    decided,
    finished,
    foreign_pod,
    h100,
    job,
    pods_of,
    running,
    service,
)

POOL = h100_pool()
LATER = NOW + timedelta(hours=1)


def idle(nodes, *workloads, **more):
    [names] = decided(nodes, *workloads, **more).idle_nodes.values()
    return names


def test_a_node_is_idle_while_nobody_holds_an_accelerator_of_it():
    assert idle(h100(3)) == ("h100-0", "h100-1", "h100-2")
    assert idle(h100(3), pods=[foreign_pod("h100-1", 1)]) == ("h100-0", "h100-2")
    assert idle(h100(3), pods=[foreign_pod("h100-1", 0)]) == ("h100-0", "h100-1", "h100-2")


def test_what_a_pass_places_holds_its_nodes_at_once():
    assert len(idle(h100(3), job(count=16))) == 1
    assert len(idle(h100(2), service())) == 1


def test_what_was_refused_the_last_time_holds_none_until_it_is_there():
    """Else a pool's status comes and goes with each attempt, and no node is idle for a minute."""
    refused = job(count=16)
    condition = {"type": "Placed", "status": "False", "reason": "ChildRefused", "message": "no"}
    refused["status"] = {"conditions": [condition]}
    assert idle(h100(3), refused) == ("h100-0", "h100-1", "h100-2")
    assert len(idle(h100(3), refused, job("next", count=8))) == 2
    children = running(h100(2), refused)
    pods = pods_of(children[0], ["h100-0", "h100-1"])
    assert idle(h100(2), refused, children=children, pods=pods) == ()


def test_nodes_of_a_run_are_idle_as_soon_as_it_has_ended():
    run = job(count=16)
    children = running(h100(2), run)
    pods = pods_of(children[0], ["h100-0", "h100-1"])
    assert idle(h100(2), run, children=children, pods=pods) == ()
    done = [{**pod, "status": {"phase": "Succeeded"}} for pod in pods]
    ended = [finished(children[0])]
    assert idle(h100(2), run, children=ended, pods=done) == ("h100-0", "h100-1")


def test_cordoned_nodes_and_cpu_nodes_are_not_told():
    nodes = h100(2)
    nodes[0]["spec"]["unschedulable"] = True
    assert idle(nodes) == ("h100-1",)
    assert decided(cpu_nodes("cpu", 1)).idle_nodes == {}


def told(names, status=None, pool=POOL, now=NOW):
    live = {"metadata": {"generation": 1}, "status": status or {}}
    return pool_status(live, pool, 8 * len(names), now, tuple(names))


def test_status_tells_them_with_what_they_cost():
    status = told(["a3-1", "a3-0"])
    since = "2026-11-21T00:00:00Z"
    assert status["idleNodes"] == [
        {"name": "a3-0", "since": since},
        {"name": "a3-1", "since": since},
    ]
    assert (status["idleNodeCount"], status["idleCostPerHour"]) == (2, 110)


def test_since_is_kept_by_the_status_over_restarts():
    status = told(["a3-0"])
    again = told(["a3-0", "a3-1"], status, now=LATER)
    assert [each["since"][11:16] for each in again["idleNodes"]] == ["00:00", "01:00"]
    assert told(["a3-0", "a3-1"], again, now=LATER + timedelta(hours=5)) == again


def test_a_node_that_was_used_in_between_is_idle_anew():
    used = told([], told(["a3-0"]), now=LATER)
    assert used["idleNodes"] == []
    again = told(["a3-0"], used, now=LATER)
    assert again["idleNodes"][0]["since"] == "2026-11-21T01:00:00Z"


def test_no_price_no_cost():
    assert "idleCostPerHour" not in told(["a3-0"], pool=replace(POOL, price=None))
    assert "idleNodes" not in pool_status({"metadata": {}}, cpu_pool(), None, NOW)


def test_the_list_is_bounded_and_the_count_is_not():
    names = [f"a3-{index:03}" for index in range(NODES_TOLD + 9)]
    status = told(names)
    assert len(status["idleNodes"]) == NODES_TOLD
    assert status["idleNodeCount"] == NODES_TOLD + 9
    assert told(names, status, now=LATER) == status


@pytest.mark.parametrize("damaged", ["text", [{}], [7], [{"name": "a3-0", "since": 5}], {"a": 1}])
def test_a_damaged_list_does_no_harm(damaged):
    [node] = told(["a3-0"], {"idleNodes": damaged})["idleNodes"]
    assert node == {"name": "a3-0", "since": "2026-11-21T00:00:00Z"}
