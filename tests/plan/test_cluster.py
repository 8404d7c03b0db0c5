"""One pass over a cluster: who is placed, who is kept, who waits, and what nobody is promised."""

import re
from datetime import timedelta

import pytest

from poolwise.model.work import ServingLayout
from poolwise.plan.decision import Rejection
from tests.plan.cluster_given import (
    NOW,
    cpu_nodes,
    decided,
    finished,
    foreign_pod,
    gpu_nodes,
    h100,
    job,
    l40s,
    outcomes,
    plan_of,
    running,
    service,
)

CONTENDERS = {
    "tight": job("tight", 8),
    "loose": job(
        "loose",
        8,
        model={"custom": {"parameters": "25M", "forwardFlopsPerSample": "4100M",
                          "activationBytesPerSample": "90M"}},
        training={"globalBatchSize": 256, "samples": "20M"},
        data={"bytesPerSample": "110Ki", "cpuTimePerSample": "30ms"},
    ),
}  # fmt: skip
"""Both are fastest on H100s; what waits for its input loses much less on L40S."""


def test_nothing_wanted_nothing_decided():
    answer = decided(h100(2))
    assert not answer.outcomes
    assert set(answer.free_accelerators.values()) == {16}


def test_placed_job_has_a_claim_on_whole_nodes():
    plan = plan_of(h100(4), job(count=16))
    assert plan.placed
    assert sorted(plan.claim.accelerators_by_node.values()) == [8, 8]
    assert plan.chosen.layout.count == plan.chosen.count == 16


def test_free_capacity_is_told_before_this_pass_places_anything():
    assert set(decided(h100(2), job(count=8)).free_accelerators.values()) == {16}
    assert set(
        decided(
            h100(2), job(count=8), children=running(h100(2), job(count=8))
        ).free_accelerators.values()
    ) == {8}


def test_two_jobs_race_for_one_pool():
    found = outcomes(h100(2), job("first", 16, age_seconds=2), job("second", 16, age_seconds=1))
    assert found["first"].placed
    assert not found["second"].placed
    assert found["second"].reason_code == "InsufficientCapacity"
    assert "waits for 16 free H100-SXM5-80GB" in found["second"].reason
    assert "0 of 16 are free, needs 16" in found["second"].reason
    assert "research/first (16)" in found["second"].reason


def test_smaller_job_passes_one_that_waits():
    jobs = [job("big", 32, age_seconds=9), job("small", 8, age_seconds=1)]
    children = running(h100(4), job("other", 8))
    found = outcomes(h100(4), job("other", 8), *jobs, children=children)
    assert (found["big"].placed, found["small"].placed) == (False, True)
    assert "16 of 32 are free, needs 32" in found["big"].reason


def test_who_waits_for_one_that_goes_first_is_told_what_that_is_worth():
    """Two of eight left eight of 24 accelerators idle, and the one of sixteen waited for them."""
    found = outcomes(h100(3), job("a", 8), job("b", 16, age_seconds=9), job("c", 8))
    assert [found[name].placed for name in "abc"] == [True, True, False]
    told = r"research/b goes first, which costs all together \d\.\d % less time"
    assert re.search(told, found["c"].reason)


def test_waiting_job_is_placed_when_room_is_made():
    first, second = job("first", 16, age_seconds=2), job("second", 16)
    children = running(h100(2), first)
    assert not outcomes(h100(2), first, second, children=children)["second"].placed
    done = [finished(child) for child in children]
    assert outcomes(h100(2), first, second, children=done)["second"].placed


def test_priority_goes_before_age():
    classes = [{"metadata": {"name": "high"}, "value": 1000}]
    old, urgent = job("old", 16, age_seconds=9), job("urgent", 16, priorityClassName="high")
    found = outcomes(h100(2), old, urgent, priority_classes=classes)
    assert (found["old"].placed, found["urgent"].placed) == (False, True)


def test_busy_first_choice_whose_end_nobody_knows_gives_the_second():
    nodes, first = [*h100(1), *l40s(1)], job("first", 8, age_seconds=2)
    children = running(nodes, first)
    found = outcomes(nodes, first, job("second", 8), children=children)
    assert found["first"].chosen.accelerator == "H100-SXM5-80GB"
    assert found["second"].chosen.accelerator == "L40S"


def test_a_short_wait_is_better_than_a_slow_pool():
    nodes = [*h100(1), *l40s(1)]
    found = outcomes(nodes, job("first", 8, age_seconds=2), job("second", 8))
    assert found["first"].chosen.accelerator == "H100-SXM5-80GB"
    waits = found["second"]
    assert (waits.placed, waits.chosen.accelerator) == (False, "H100-SXM5-80GB")
    run_seconds = found["first"].chosen.total_seconds
    assert NOW + timedelta(seconds=0.9 * run_seconds) <= waits.expected_start
    assert waits.expected_start <= NOW + timedelta(seconds=1.2 * run_seconds)
    assert re.search(r"l40s-\S+ is free, but would take 3\d\d % longer", waits.reason)


def test_who_loses_least_leaves_the_contended_pool():
    nodes = [*h100(1), *l40s(1)]
    for each in ("tight", "loose"):
        alone = plan_of(nodes, CONTENDERS[each])
        assert alone.chosen.accelerator == "H100-SXM5-80GB"
    found = outcomes(nodes, *CONTENDERS.values())
    assert found["tight"].chosen.accelerator == "H100-SXM5-80GB"
    assert found["loose"].chosen.accelerator == "L40S"
    assert "is scarce" in found["loose"].reason and "research/tight" in found["loose"].reason
    assert found["loose"].prices


def test_foreign_pods_hold_their_devices():
    pods = [foreign_pod("h100-0", 1)]
    plan = plan_of(h100(2), job(count=16), pods=pods)
    assert not plan.placed
    assert "15 of 16 are free" in plan.reason


def test_fragments_are_not_capacity_for_whole_nodes():
    pods = [foreign_pod(f"h100-{index}", 4, f"p{index}") for index in range(4)]
    plan = plan_of(h100(4), job(count=16), pods=pods)
    assert not plan.placed
    assert "16 are free, but needs 2 nodes with 8 free accelerators" in plan.reason


def test_plan_mode_decides_and_holds_nothing():
    found = outcomes(h100(2), job("dry", 16, age_seconds=9, mode="Plan"), job("wet", 16))
    assert not found["dry"].placed
    assert found["dry"].reason_code == "PlanOnly"
    assert found["dry"].chosen.count == 16
    assert found["wet"].placed


def test_bad_spec_is_rejected_and_blocks_nobody():
    bad = job("bad", model={"preset": "llama-9"})
    found = outcomes(h100(1), bad, job("good"))
    assert isinstance(found["bad"], Rejection)
    assert found["bad"].reason_code == "InvalidSpec"
    assert "'llama-9' is not a known model" in found["bad"].reason
    assert found["good"].placed


def test_replicas_that_others_set_are_followed():
    scaling = {"mode": "External"}
    plan = plan_of(h100(1), service(scaling=scaling, replicas=3))
    assert plan.chosen.replicas == 3
    assert sum(plan.claim.accelerators_by_node.values()) == 3


def test_too_few_replicas_are_told():
    plan = plan_of(l40s(1), service(requests_per_second="40", scaling={"mode": "Off"}, replicas=1))
    assert plan.placed
    assert "there are to be 1" in plan.reason


def test_room_for_one_replica_more_is_told():
    assert plan_of(h100(1), service()).may_surge
    assert not plan_of(h100(1), service(accelerators={"perReplica": 8})).may_surge


def test_cpu_service_claims_cores_and_memory():
    embedding = service(
        "embed",
        model={"preset": "bert-large"},
        traffic={"requestsPerSecond": "20", "inputTokens": {"p50": 100, "p95": 200}},
        slo=[{"metric": "E2E", "percentile": 95, "target": "1s"}],
        run={"image": "embedder"},
    )
    plan = plan_of([*l40s(1), *cpu_nodes("cpu", 2)], embedding)
    layout = plan.chosen.layout
    assert plan.chosen.accelerator == "CPU"
    assert isinstance(layout, ServingLayout)
    assert sum(plan.claim.cores_by_node.values()) == layout.cpu_cores * plan.chosen.replicas
    assert not any(plan.claim.accelerators_by_node.values())


def test_of_equal_priority_a_service_goes_first():
    """One of the two has room, and users wait for one of them."""
    eight = {"accelerators": {"perReplica": 8}, "scaling": {"maxReplicas": 1}}
    for run, chat in [("a", "z"), ("z", "a")]:
        plans = outcomes(h100(1), job(run, age_seconds=9), service(chat, "1", **eight))
        assert {name: plan.placed for name, plan in plans.items()} == {chat: True, run: False}


def test_equals_go_by_age_and_then_by_name():
    plans = outcomes(h100(1), job("a"), job("b"), job("z", age_seconds=60))
    assert [name for name, plan in plans.items() if plan.placed] == ["z"]
    plans = outcomes(h100(1), job("b"), job("a"))
    assert [name for name, plan in plans.items() if plan.placed] == ["a"]


def test_replicas_of_a_service_leave_whole_nodes_to_a_gang():
    """Four replicas of one accelerator, then a gang of three nodes: 32 accelerators hold both."""
    chat = service(
        age_seconds=60, accelerators={"perReplica": 1}, scaling={"minReplicas": 4, "maxReplicas": 4}
    )
    plans = outcomes(h100(4), chat, job(count=24))
    assert plans["chat"].chosen.replicas == 4
    assert len(plans["chat"].claim.accelerators_by_node) == 1
    assert plans["job"].placed


def test_a_service_is_sized_for_what_those_before_it_leave():
    """Alone it would take all four; of two it makes smaller replicas, which no pass after this one
    has to find."""
    fast = {"objective": {"goal": "Time"}, "scaling": {"minReplicas": 2}}
    nodes = l40s(1, per_node=4)
    assert plan_of(nodes, service("second", **fast)).chosen.count == 2
    first = service(
        "first", age_seconds=9, scaling={"minReplicas": 2}, accelerators={"perReplica": 1}
    )
    found = outcomes(nodes, first, service("second", **fast))
    assert found["first"].placed
    assert found["second"].placed
    chosen = found["second"].chosen
    assert (chosen.count, chosen.replicas) == (1, 2)


def test_services_of_which_nobody_wants_a_replica_find_a_place_where_all_is_taken():
    """The joint planner broke on gangs of no pod where there was no room, and all plans with it."""
    nodes, holds = h100(1), job("holds", count=8)
    asleep = {"scaling": {"mode": "External", "minReplicas": 0, "scaleToZero": True}, "replicas": 0}
    none = [service(name, **asleep) for name in ("one", "two")]
    waits = job("waits", count=8, age_seconds=9)
    found = outcomes(nodes, holds, waits, *none, children=running(nodes, holds))
    assert {name for name, plan in found.items() if plan.placed} == {"holds", "one", "two"}
    assert not found["one"].claim.accelerators_by_node


def test_a_start_that_finds_no_nodes_says_what_it_lacks():
    """Replicas with redundancy keep apart, and so leave no node whole: the queue counts on it."""
    apart = service("apart", age_seconds=9, scaling={"redundancy": 1}, parallelism={"tensor": 2})
    whole = service("whole", parallelism={"tensor": 4})
    found = outcomes(h100(2, per_node=4), apart, whole)
    assert found["apart"].placed
    assert not found["whole"].placed
    (lacking,) = found["whole"].candidates
    assert lacking.waits
    assert "4 are free, but needs 1 place for 4 free accelerators" in lacking.reason
    assert lacking.reason in found["whole"].reason


def test_a_run_takes_fewer_where_those_before_it_broke_the_node_it_counted_on():
    two = {"scaling": {"redundancy": 1}, "accelerators": {"perReplica": 1}}
    apart = service("apart", age_seconds=9, **two)
    run = job(count=None, accelerators={"min": 2, "max": 4})
    found = outcomes(h100(2, per_node=4), apart, run)
    assert len(found["apart"].claim.accelerators_by_node) == 2
    assert found["job"].placed
    assert found["job"].chosen.count in (2, 3)


def test_replicas_with_redundancy_keep_apart():
    chat = service(
        accelerators={"perReplica": 1},
        scaling={"minReplicas": 4, "maxReplicas": 4, "redundancy": 1},
    )
    assert len(plan_of(h100(4), chat).claim.accelerators_by_node) == 4


def test_a_run_whose_end_is_told_is_waited_for():
    nodes, first = [*h100(1), *l40s(1)], job("first", 8, age_seconds=3600)
    children = running(nodes, first)
    total_seconds = plan_of(nodes, first).chosen.total_seconds
    first["status"] = {
        "plan": {"totalSeconds": total_seconds},
        "observed": {"startTime": (NOW - timedelta(seconds=0.9 * total_seconds)).isoformat()},
    }
    waits = outcomes(nodes, first, job("second", 8), children=children)["second"]
    assert (waits.placed, waits.chosen.accelerator) == (False, "H100-SXM5-80GB")
    assert NOW < waits.expected_start < NOW + timedelta(seconds=0.2 * total_seconds)


@pytest.mark.parametrize("goal", ["Cost", "Energy"])
@pytest.mark.parametrize("mode", ["External", "Off"])
@pytest.mark.parametrize("replicas", [0, 1, 3])
def test_a_number_that_others_set_does_not_choose_the_pool(mode, replicas, goal):
    """The weakest pool is the cheapest for one replica, and takes the most of them for the load."""
    nodes = [*l40s(4), *gpu_nodes("t4", 20, "Tesla-T4", 4)]
    spec = {"requests_per_second": "12", "objective": {"goal": goal}}
    best = plan_of(nodes, service(**spec)).chosen
    plan = plan_of(nodes, service(**spec, scaling={"mode": mode}, replicas=replicas))
    assert (plan.chosen.pool, plan.chosen.layout) == (best.pool, best.layout)
    assert plan.chosen.replicas == replicas
    assert plan.chosen.weighed_replicas == max(best.replicas, replicas)
    if replicas < best.replicas:
        assert f"for the {best.replicas} replicas that it needs" in plan.reason


@pytest.mark.parametrize("mode", ["External", "Off"])
@pytest.mark.parametrize(
    ("rate", "most", "told"),
    [
        ("60", 5, "for the 8 replicas that it needs, which it cannot have: scaling.maxReplicas"),
        ("90", 20, "for the 12 replicas that it needs, which it cannot have: 8 of 8 are free"),
    ],
    ids=["allowed", "room"],
)
def test_a_pool_that_cannot_have_the_replicas_it_needs_loses(mode, rate, most, told):
    """It is the cheaper one for all of them, which it will never have."""
    nodes = [*l40s(1), *h100(2)]
    spec = {"requests_per_second": rate, "scaling": {"mode": mode, "maxReplicas": most}}
    plan = plan_of(nodes, service(**spec, replicas=3))
    assert plan.chosen.accelerator == "H100-SXM5-80GB"
    assert "the only pool that can meet the targets" in plan.reason
    (lost,) = (each for each in plan.candidates if not each.chosen)
    assert lost.feasible and told in lost.reason


def test_where_no_pool_can_have_the_replicas_they_need_the_cheapest_is_taken():
    spec = {"requests_per_second": "400", "scaling": {"mode": "External", "maxReplicas": 10}}
    plan = plan_of([*l40s(1), *h100(2)], service(**spec, replicas=3))
    assert plan.placed and plan.chosen.accelerator == "L40S"
    assert "there are to be 3" in plan.reason


def test_a_service_that_can_be_anywhere_does_not_break_what_a_gang_needs_whole():
    """One H100 is the same in both pools, and a service went to the first by name for good."""
    two, one = h100(2), gpu_nodes("other", 1, "NVIDIA-H100-80GB-HBM3")
    for node in one:
        node["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "another"
    found = outcomes([*two, *one], service("chat"), job("gang", 16))
    assert found["chat"].placed and found["gang"].placed
    assert found["chat"].chosen.pool != found["gang"].chosen.pool
    assert not found["chat"].prices, "nobody lacks anything"


def test_the_cost_of_a_number_that_others_set_is_that_of_the_number():
    spec = {"requests_per_second": "40", "scaling": {"mode": "Off"}}
    one, two = (plan_of(l40s(1), service(**spec, replicas=count)).chosen for count in (1, 2))
    assert two.cost_per_hour == pytest.approx(2 * one.cost_per_hour)
    assert one.objective_value == two.objective_value > two.cost_per_hour


def test_a_pool_that_can_never_take_it_is_no_runner_up():
    """What it is compared with is what it could have had now."""
    plan = plan_of([*h100(1), *gpu_nodes("t4", 2, "Tesla-T4", 4)], job(count=8))
    assert [each.feasible for each in plan.candidates] == [True, False]
    assert plan.chosen.reason.startswith("the only pool that can take it now: ")


def test_what_is_kept_for_a_gang_is_left_to_it_where_other_nodes_would_do():
    """The planner of the queue counts accelerators; which nodes they are on the ledger tells."""
    block = {"cloud.google.com/gce-topology-block": "one"}
    together = gpu_nodes("a", 2, "NVIDIA-H100-80GB-HBM3", **block)
    apart = gpu_nodes("b", 1, "NVIDIA-H100-80GB-HBM3", **dict.fromkeys(block, "two"))
    busy = job("busy", 8)
    busy["status"] = {
        "plan": {"totalSeconds": 7200.0}, "observed": {"startTime": NOW.isoformat()}
    }  # fmt: skip
    level = {"topology": {"mode": "Required", "level": next(iter(block))}}
    gang = job("gang", 16, placement=level, priorityClassName="high")
    long = {"globalBatchSize": 256, "sequenceLength": 4096, "tokens": "100G"}
    found = outcomes(
        [*together, *apart], busy, gang, job("long", 8, training=long),
        children=running(together[1:], busy),
        priority_classes=[{"metadata": {"name": "high"}, "value": 1000}],
    )  # fmt: skip
    assert found["gang"].expected_start is not None
    assert dict(found["long"].claim.accelerators_by_node) == {"b-0": 8}
