"""Which pools may get nodes, what these nodes are, and what waiting for them is worth."""

from dataclasses import replace

import pytest

from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Kind
from poolwise.plan.ledger.growth import grown, startup_words
from poolwise.plan.pools.gathering import pools
from poolwise.settings import Settings
from tests.plan.cluster_given import NOW, h100, job, key, plan_of, service
from tests.plan.machines import TABLES
from tests.plan.provisioning.given import decided_at, growing, node

CHAT = key("chat", Kind.INFERENCE_SERVICE)


def condition(pool, kind):
    return next(each for each in pool.conditions if each.type == kind)


def the_pool(nodes, pool, *workloads, **more):
    return decided_at(NOW, nodes, *workloads, pools=[pool], **more).pools[0]


@pytest.mark.parametrize("workload", [job(count=16), service()])
def test_a_pool_without_nodes_takes_work_and_tells_the_wait(workload):
    plan = plan_of([], workload, pools=[growing()])
    assert plan.placed
    assert plan.chosen.startup_seconds == 240
    assert "nodes start in about 4 min" in plan.reason
    assert all(name.startswith("~zero-") for name in plan.claim.accelerators_by_node)


def test_a_gang_gets_nodes_that_are_there_and_nodes_to_come():
    plan = plan_of([node("a"), node("b")], job(count=32), pools=[growing()])
    assert plan.claim.accelerators_by_node == {"a": 8, "b": 8, "~zero-0000": 8, "~zero-0001": 8}
    assert plan.chosen.startup_seconds == 240


def test_a_node_that_is_there_wins_over_one_to_come():
    """Inside a pool, and between two that differ in nothing else."""
    plan = plan_of([node("a")], job(count=8), pools=[growing()])
    assert set(plan.claim.accelerators_by_node) == {"a"}
    assert plan.chosen.startup_seconds == 0
    pools = [growing("a-zero"), growing("b-there")]
    for workload in (job(count=8), service()):
        there = plan_of([node("n", group="b-there")], workload, pools=pools)
        assert (there.chosen.pool, there.chosen.startup_seconds) == ("b-there", 0)


def test_the_wait_counts_in_the_time_of_a_run_and_in_its_cost():
    (waits,) = plan_of([], job(count=8), pools=[growing()]).candidates
    (runs,) = plan_of([node("a")], job(count=8), pools=[growing()]).candidates
    assert waits.total_seconds == runs.total_seconds
    assert waits.objective_value == pytest.approx(runs.total_seconds + 240)
    assert waits.total_cost == pytest.approx(50 * (runs.total_seconds + 240) / 3600)


def test_a_short_run_does_not_wait_for_faster_nodes():
    """Half as long on nodes that take 40 minutes to start is later than at once on slower ones."""
    pools = [growing("fast", nodeStartup="40m"), growing("slow")]
    nodes = [node("n", group="slow", gpus=4)]
    work = {"globalBatchSize": 256, "sequenceLength": 4096}
    counts = {"accelerators": {"min": 4, "max": 8}, "objective": {"goal": "Time"}}
    short = plan_of(nodes, job(training={**work, "tokens": "10M"}, **counts), pools=pools)
    long = plan_of(nodes, job(training={**work, "tokens": "30G"}, **counts), pools=pools)
    assert (short.chosen.pool, short.chosen.startup_seconds) == ("slow", 0)
    assert long.chosen.startup_seconds > 0


def test_a_deadline_counts_the_wait():
    one = {"goal": "Time", "deadline": "2026-11-21T02:55:00Z"}
    runs = plan_of([node("a")], job(count=8, objective=one), pools=[growing()])
    seconds = runs.candidates[0].total_seconds
    tight = {"goal": "Time", "deadline": f"2026-11-21T{int(seconds / 3600 + 0.05):02}:59:00Z"}
    placed = plan_of([node("a")], job(count=8, objective=tight), pools=[growing()])
    late = plan_of([], job(count=8, objective=tight), pools=[growing(nodeStartup="2h")])
    assert placed.placed
    assert not late.placed
    assert "longer than until the deadline" in late.reason


@pytest.mark.parametrize("workload", [job(), service()])
def test_it_is_judged_as_if_its_nodes_were_there(workload):
    (waits,) = plan_of([], workload, pools=[growing()]).candidates
    (there,) = plan_of([node("a")], workload, pools=[growing()]).candidates
    assert (waits.layout, waits.cost_per_hour) == (there.layout, there.cost_per_hour)


def test_no_more_than_max_nodes():
    plan = plan_of([node("a")], job(count=72), pools=[growing()])
    assert not plan.placed
    assert "has 64 accelerators, needs 72" in plan.reason
    assert plan_of([node("a")], job(count=64), pools=[growing()]).placed


def test_nodes_that_cannot_take_work_count_for_max_nodes():
    cordoned = {**node("a"), "spec": {"unschedulable": True}}
    plan = plan_of([cordoned], job(count=16), pools=[growing(max_nodes=2)])
    assert not plan.placed


def test_a_gang_that_needs_one_domain_does_not_wait_for_unlabelled_nodes():
    topology = {"placement": {"topology": {"mode": "Required", "level": "rack"}}}
    plan = plan_of([], job(count=16, **topology), pools=[growing()])
    assert not plan.placed
    assert "no node of any pool has the label rack" in plan.reason


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        pytest.param({"kubernetes.io/hostname": "a"}, "names a host", id="host"),
        pytest.param(
            {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
            "which a program on the node sets",
            id="discovery",
        ),
    ],
)
def test_a_selector_that_no_autoscaler_satisfies(selector, told):
    pool = growing(nodeSelector=selector)
    plan = plan_of([], job(), pools=[pool])
    assert not plan.placed
    assert told in plan.reason
    assert condition(the_pool([], pool), "CanGrow").reason == "NotProvisioned"
    assert condition(the_pool([], pool), "Ready").status is False


def test_labels_of_discovery_are_known_once_the_pool_has_a_node():
    pool = growing(nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})
    assert plan_of(h100(1), job(count=16), pools=[pool]).placed


def test_a_node_that_does_not_tell_its_size_is_no_pattern_for_new_ones():
    nodes = [node("a"), node("b"), node("c")]
    nodes[0]["status"]["allocatable"]["cpu"] = "0"
    nodes[1]["status"]["allocatable"]["memory"] = "0"
    found = {each.name: each for each in grown(pool_of(nodes)).nodes}
    assert (found["~zero-0000"].cores, found["~zero-0000"].memory_bytes) == (192, 1800 * 2**30)
    told = str(grown(pool_of(nodes[:2])).growth_problem)
    assert "neither a node nor a machine type tells the cores and memory of its nodes" in told


def test_a_node_to_come_has_of_anything_else_the_least_that_any_has():
    adapters = "rdma/hca"
    many, one = node("many"), node("one")
    many["status"]["allocatable"][adapters] = "4"
    one["status"]["allocatable"][adapters] = "1"
    (found,) = pools([many, one], [growing()], TABLES, Settings())
    to_come = [each for each in grown(found).nodes if each.is_to_come]
    assert to_come
    assert all(each.others and each.others[adapters] == 1.0 for each in to_come)


def pool_of(nodes):
    (found,) = pools(nodes, [growing("zero")], TABLES, Settings())
    return replace(found, nodes=tuple(each for each in found.nodes if not each.is_to_come))


def test_a_pool_without_max_nodes_never_grows():
    pool = growing(max_nodes=None)
    assert not plan_of([], job(), pools=[pool]).placed
    assert not any(each.type == "CanGrow" for each in the_pool([], pool).conditions)


def test_the_pool_tells_what_is_awaited():
    pool = the_pool([node("a")], growing(), job(count=32))
    assert pool.awaited_nodes == 3
    assert len(pool.nodes) == 1
    told = condition(pool, "CanGrow")
    assert (told.status, told.reason) == (True, "RoomToGrow")
    assert told.message == (
        "1 of 8 nodes is there; placed work waits for 3 more; new nodes start in about 4 min"
    )


def test_a_pool_without_nodes_is_ready_where_it_may_grow():
    ready = condition(the_pool([], growing()), "Ready")
    assert (ready.status, ready.reason) == (True, "NodesOnDemand")


@pytest.mark.parametrize(
    ("names", "there"),
    [("a", "1 of 1 node is there"), ("ab", "2 of 1 node are there")],
    ids=["as many as may be", "more than may be"],
)
def test_a_full_pool_says_so(names, there):
    told = condition(the_pool([node(name) for name in names], growing(max_nodes=1)), "CanGrow")
    assert (told.status, told.reason, told.message) == (False, "AtMaxNodes", there)


def test_what_waits_for_promised_nodes_counts_them():
    plans = decided_at(NOW, [], job("a", 16), job("b", 16), pools=[growing(max_nodes=3)]).outcomes
    waits = plans[key("b")]
    assert not waits.placed
    assert waits.reason_code != Reason.NO_FEASIBLE_POOL
    assert "8 of 24 are free, nodes to come included, needs 16" in waits.candidates[0].reason


def test_free_accelerators_are_those_that_are_there():
    found = decided_at(NOW, [node("a")], pools=[growing()])
    assert found.free_accelerators == {"zero": 8}


def daemon(on, cores="2", kind="DaemonSet"):
    owner = {"kind": kind, "name": "agent", "uid": "u", "controller": True}
    asked = {"requests": {"cpu": cores, "memory": "1Gi"}}
    return {
        "metadata": {"name": f"agent-{on}", "namespace": "kube-system", "ownerReferences": [owner]},
        "spec": {"nodeName": on, "containers": [{"resources": asked}]},
        "status": {"phase": "Running"},
    }


@pytest.mark.parametrize(
    ("cores", "kind", "is_placed"),
    [
        pytest.param("190", "DaemonSet", True, id="all that daemons leave"),
        pytest.param("191", "DaemonSet", False, id="more than they leave"),
        pytest.param("191", "ReplicaSet", True, id="others do not come to each node"),
    ],
)
def test_daemons_come_to_new_nodes_too(cores, kind, is_placed):
    """Nodes of 192 cores: each has an agent that asks for 2 of them."""
    run = {"image": "train", "resources": {"requests": {"cpu": cores}}}
    nodes, agents = [node("a"), node("b")], [daemon("a", kind=kind), daemon("b", "3", kind)]
    plan = plan_of(nodes, job(count=24, run=run), pools=[growing(max_nodes=8)], pods=agents)
    assert plan.placed == is_placed


@pytest.mark.parametrize(
    ("seconds", "told"), [(45, "45 s"), (250, "4 min"), (5400, "90 min"), (86400, "24 h")]
)
def test_the_time_of_a_start_is_told_in_its_unit(seconds, told):
    assert startup_words(seconds) == f"nodes start in about {told}"
