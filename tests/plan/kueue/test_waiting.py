"""Jobs in a queue, from what is observed to what is decided: by the planner itself."""

import json
from datetime import timedelta

import pytest

from poolwise.plan.children.manifests import children
from poolwise.plan.cluster import decide
from poolwise.plan.conditions import Reason
from poolwise.plan.decision import Plan
from poolwise.plan.kueue.status import is_waiting, placed, queue_conditions
from poolwise.plan.kueue.words import GATE, PLANNER, PRIORITY_LABEL, QUEUE_LABEL, SECONDS_LABEL
from poolwise.plan.names import KUEUE, PLACEMENT
from poolwise.plan.pool import CPU
from poolwise.settings import Settings
from tests.plan.cluster_given import (
    NOW,
    changed,
    cpu_nodes,
    decided,
    foreign_pod,
    h100,
    job,
    key,
    l40s,
    observed,
    outcomes,
    plan_of,
)
from tests.plan.kueue.given import (
    APIS,
    H100,
    L40S,
    cluster_queue,
    flavor,
    local_queue,
    made,
    queues,
    started,
    workload,
)
from tests.plan.machines import CALIBRATION, TABLES
from tests.plan.test_cluster_moves import MAY, slow_run

WAITS = ("QuotaReserved", "False", "Pending", "8 more needed")
RESERVED = ("QuotaReserved", "True", "QuotaReserved", "Quota reserved in ClusterQueue all")


def waiting(name="job", count=8, **spec):
    return job(name, count, queueName="research", **spec)


def one_queue(quota=16, used=0, **more):
    queue = cluster_queue("all", {"h100": quota}, used={"h100": used})
    return {"apis": APIS, "queues": queues([flavor("h100", H100)], queue, **more)}


def two_flavors(h100_quota=16, l40s_quota=16, used=None, **more):
    flavors = [flavor("h100", H100), flavor("l40s", L40S)]
    queue = cluster_queue("all", {"h100": h100_quota, "l40s": l40s_quota}, used=used)
    return {"apis": APIS, "queues": queues(flavors, queue, **more)}


def test_a_new_job_is_planned_for_a_pool_of_its_queue():
    plan = plan_of([*h100(2), *l40s(2)], waiting(), **one_queue())
    assert plan.placed
    assert plan.queue.name == "research"
    assert not plan.queue.is_gated
    assert is_waiting(plan)
    (barred,) = [each for each in plan.candidates if each.reason_code == "PoolLabelNotInFlavor"]
    assert barred.accelerator == "L40S"


def test_its_child_is_suspended_and_bears_kueues_labels():
    given = one_queue(priorities=({"metadata": {"name": "urgent"}},))
    asked = waiting(priorityClassName="urgent", activeDeadlineSeconds=600)
    child = made(h100(2), asked, **given)
    labels = child["metadata"]["labels"]
    assert child["spec"]["suspend"] is True
    assert (labels[QUEUE_LABEL], labels[PRIORITY_LABEL], labels[SECONDS_LABEL]) == (
        *("research", "urgent"),
        "600",
    )
    pod = child["spec"]["template"]["spec"]
    assert "priorityClassName" not in pod, "it is no PriorityClass, and pods would be refused"
    assert "affinity" not in pod, "which nodes are free when it is let in, nobody knows"


def test_a_priority_class_of_pods_stays_with_the_pods():
    classes = [{"metadata": {"name": "high"}, "value": 10}]
    child = made(
        h100(2), waiting(priorityClassName="high"), priority_classes=classes, **one_queue()
    )
    assert child["spec"]["template"]["spec"]["priorityClassName"] == "high"
    assert PRIORITY_LABEL not in child["metadata"]["labels"]


def test_while_it_waits_it_holds_nothing_and_says_what_kueue_says():
    child = made(h100(2), waiting(), **one_queue())
    given = one_queue(workloads=(workload(child, WAITS),))
    found = outcomes(h100(2), waiting(), job("other", 16), children=[child], **given)
    assert found["other"].placed, "nobody waits for a job that waits"
    told = placed(found["job"])
    assert (told.status, told.reason) == (False, "Pending")
    assert "8 more needed" in told.message
    (reserved,) = queue_conditions({"queueName": "research"}, found["job"])
    assert (reserved.status, reserved.reason) == (False, "Pending")


def test_once_quota_is_reserved_it_holds_its_nodes():
    child = made(h100(2), waiting(), **one_queue())
    given = one_queue(workloads=(workload(child, RESERVED),))
    found = outcomes(h100(2), waiting(), job("other", 16), children=[child], **given)
    assert found["job"].kept
    assert not is_waiting(found["job"])
    assert not found["other"].placed


def test_what_runs_goes_on_when_kueue_is_gone():
    child = started(made(h100(2), waiting(), **one_queue()))
    plan = plan_of(h100(2), waiting(), children=[child])
    assert plan.kept
    assert not is_waiting(plan)


def test_what_waits_for_a_kueue_that_is_gone_is_placed_without_it():
    child = made(h100(2), waiting(), **one_queue())
    plan = plan_of(h100(2), waiting(), children=[child])
    assert plan.placed
    assert not plan.kept
    assert plan.queue is None


def test_without_kueue_it_is_placed_and_says_so():
    plan = plan_of(h100(2), waiting())
    (told,) = queue_conditions({"queueName": "research"}, plan)
    assert (told.type, told.status, told.reason) == (
        *("QuotaReserved", None),
        Reason.KUEUE_NOT_INSTALLED,
    )
    assert plan.queue is None


def test_where_kueue_cannot_be_read_no_quota_is_bypassed():
    why = "Kueue is installed, but Poolwise may not read it"
    plan = plan_of(h100(2), waiting(), apis_off={KUEUE: why})
    assert (plan.placed, plan.reason_code, plan.reason) == (False, Reason.KUEUE_UNAVAILABLE, why)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("reserch", "did you mean research?"),
        ("zzz", ", which has research"),
    ],
)
def test_a_queue_that_does_not_exist_is_told_with_the_nearest(name, told):
    plan = plan_of(h100(2), job(queueName=name), **one_queue())
    assert plan.reason_code == Reason.QUEUE_NOT_FOUND
    assert plan.reason.endswith(told)


def test_a_cluster_queue_that_does_not_exist_is_told():
    given = one_queue()
    lost = queues([], cluster_queue("al", {}), local_queue("lost", "all"))
    plan = plan_of(h100(2), job(queueName="lost"), **{**given, "queues": lost})
    assert plan.reason == (
        "LocalQueue lost is of ClusterQueue all, which does not exist; did you mean al?"
    )


def test_nobody_else_waits_for_a_job_that_is_refused():
    found = outcomes(
        h100(2), job("bad", queueName="zzz"), waiting("good"), job("plain"), **one_queue()
    )
    assert [found[name].placed for name in ("bad", "good", "plain")] == [False, True, True]


def test_a_queue_that_leads_to_no_pool_is_refused_with_what_would_work():
    given = {
        "apis": APIS,
        "queues": queues([flavor("h100", H100)], cluster_queue("all", {"h100": 16})),
    }
    plan = plan_of(l40s(2), waiting(), **given)
    assert plan.reason_code == Reason.POOL_LABEL_NOT_IN_FLAVOR
    assert "its flavors go by nvidia.com/gpu.product" in plan.reason
    assert "nvidia.com/gpu.product: NVIDIA-L40S" in plan.reason


def test_more_than_the_quota_is_refused_with_the_numbers():
    plan = plan_of(h100(2), waiting(count=16), **one_queue(quota=8))
    assert plan.reason_code == Reason.EXCEEDS_QUOTA
    assert "queue research may use 8 of h100, needs 16" in plan.reason


def test_what_no_pool_could_run_is_not_blamed_on_the_quota():
    """The whole quota would be enough; there is half as much in the pool."""
    plan = plan_of(h100(1), waiting(count=16), **one_queue(quota=16))
    assert plan.reason_code == Reason.NO_FEASIBLE_POOL
    assert "has 8 accelerators, needs 16" in plan.reason


def test_pools_without_accelerators_are_not_asked_about_flavors():
    plan = plan_of([*h100(2), *cpu_nodes("cpu", 1)], waiting(), **one_queue())
    (cpu,) = [each for each in plan.candidates if each.accelerator == CPU]
    assert cpu.reason == "has no accelerators, and training runs on accelerators only"


def test_flavors_of_all_that_its_pods_ask_for_have_to_agree():
    """The quota for network functions is of other nodes."""
    hca, nodes = "rdma/hca", h100(2)
    for each in nodes:
        each["status"]["allocatable"][hca] = "1"
    queue = cluster_queue("all", {"h100": 16})
    other = {"name": "other", "resources": [{"name": hca, "nominalQuota": 9}]}
    queue["spec"]["resourceGroups"].append({"coveredResources": [hca], "flavors": [other]})
    run = {"image": "train", "resources": {"limits": {hca: "1"}}}
    for labels, fits in ((H100, True), (L40S, False)):
        flavors = [flavor("h100", H100), flavor("other", labels)]
        given = {"apis": APIS, "queues": queues(flavors, queue)}
        assert plan_of(nodes, waiting(run=run), **given).placed is fits
        assert plan_of(nodes, waiting(), **given).placed


def test_a_range_is_cut_to_the_quota():
    asked = job(queueName="research", accelerators={"min": 4, "max": 16})
    plan = plan_of(h100(2), asked, **one_queue(quota=8))
    assert plan.placed
    assert plan.chosen.count <= 8


def test_a_pool_with_spare_quota_goes_before_a_faster_one_without():
    fleet = [*h100(2), *l40s(2)]
    lora = {"globalBatchSize": 16, "sequenceLength": 2048, "tokens": "10M", "method": "Lora"}
    asked = waiting(count=8, training=lora)
    assert plan_of(fleet, asked, **two_flavors()).chosen.accelerator == "H100-SXM5-80GB"
    plan = plan_of(fleet, asked, **two_flavors(used={"h100": 12}))
    assert plan.chosen.accelerator == "L40S"
    (full,) = [each for each in plan.candidates if each.reason_code == "QuotaInUse"]
    assert full.reason == "queue research has 4 of h100 left, needs 8"


def test_what_one_job_plans_on_is_not_promised_to_the_next():
    nodes = [*h100(1), *l40s(1)]
    jobs = [waiting(name, age_seconds=age) for name, age in (("older", 60), ("newer", 0))]
    found = outcomes(nodes, *jobs, **two_flavors())
    planned = {name: plan.chosen.accelerator for name, plan in found.items()}
    assert planned == {"older": "H100-SXM5-80GB", "newer": "L40S"}


def busy(nodes):
    return [
        foreign_pod(node["metadata"]["name"], 8, f"busy-{node['metadata']['name']}")
        for node in nodes
    ]


def test_a_job_without_room_takes_its_place_in_the_queue_behind_our_gate():
    nodes = h100(2)
    plan = plan_of(nodes, waiting(), pods=busy(nodes), **one_queue())
    assert plan.placed
    assert plan.queue.is_gated
    child = made(nodes, waiting(), pods=busy(nodes), **one_queue())
    assert child["metadata"]["annotations"][GATE] == PLANNER
    again = plan_of(nodes, waiting(), pods=busy(nodes), children=[child], **one_queue())
    assert again.kept
    assert again.record.queue.is_gated


def test_the_gate_is_lifted_once_there_is_room():
    nodes = h100(2)
    child = made(nodes, waiting(), pods=busy(nodes), **one_queue())
    plan = plan_of(nodes, waiting(), children=[child], **one_queue())
    assert plan.kept
    assert not plan.record.queue.is_gated


def test_the_gate_is_lifted_when_the_start_timeout_has_passed():
    """The child was made an hour before NOW: from then on the order of the queue decides."""
    nodes = h100(2)
    long_ago = "2026-11-20T23:00:00Z"
    asked = waiting(startTimeout="50m")
    child = made(nodes, asked, long_ago, pods=busy(nodes), **one_queue())
    plan = plan_of(nodes, asked, pods=busy(nodes), children=[child], **one_queue())
    assert not plan.record.queue.is_gated


def test_the_gate_is_looked_at_when_the_start_timeout_passes():
    """Nothing else may happen then."""
    nodes, asked = h100(2), waiting(startTimeout="3m")
    child = made(nodes, asked, "2026-11-20T23:59:00Z", pods=busy(nodes), **one_queue())
    given = {"pods": busy(nodes), "children": [child], **one_queue()}
    assert plan_of(nodes, asked, **given).record.queue.is_gated
    found = decide(observed(nodes, asked, **given), TABLES, Settings(), CALIBRATION, NOW)
    assert found.look_again_at == NOW + timedelta(minutes=2)


@pytest.mark.parametrize("timeout", ["1m", "30s"])
def test_what_is_due_needs_no_further_look(timeout):
    """Made a minute before NOW: the gate is lifted by this very pass."""
    nodes, asked = h100(2), waiting(startTimeout=timeout)
    child = made(nodes, asked, pods=busy(nodes), **one_queue())
    given = {"pods": busy(nodes), "children": [child], **one_queue()}
    assert not plan_of(nodes, asked, **given).record.queue.is_gated
    found = decide(observed(nodes, asked, **given), TABLES, Settings(), CALIBRATION, NOW)
    assert found.look_again_at is None


def test_a_child_of_unknown_age_stays_behind_the_gate():
    nodes = h100(2)
    child = made(nodes, waiting(), at="yesterday", pods=busy(nodes), **one_queue())
    plan = plan_of(nodes, waiting(), pods=busy(nodes), children=[child], **one_queue())
    assert plan.record.queue.is_gated


def test_a_job_that_waits_moves_to_a_pool_with_room_if_the_same_pods_run_there():
    """Two pools of H100s, told apart by their machine type; the child's own pool fills up."""
    near = h100(1, **{"node.kubernetes.io/instance-type": "near"})
    far = [dict(each) for each in h100(1, **{"node.kubernetes.io/instance-type": "far"})]
    far[0]["metadata"] = {**far[0]["metadata"], "name": "far-0"}
    nodes = [*near, *far]
    child = made(nodes, waiting(), **one_queue())
    first = json.loads(child["metadata"]["annotations"][PLACEMENT])["pool"]
    here = [
        n
        for n in nodes
        if n["metadata"]["name"] in json.loads(child["metadata"]["annotations"][PLACEMENT])["claim"]
    ]
    given = one_queue(workloads=(workload(child, WAITS),))
    stays = plan_of(nodes, waiting(), children=[child], **given)
    assert (stays.kept, stays.record.pool) == (True, first)
    moves = plan_of(nodes, waiting(), children=[child], pods=busy(here), **given)
    assert not moves.kept
    assert moves.chosen.pool != first
    assert moves.admission is not None, "its place in the queue is known, and kept"


def test_a_change_of_the_spec_is_planned_anew():
    child = made(h100(2), waiting(), **one_queue())
    given = one_queue(workloads=(workload(child, WAITS),))
    again = changed(waiting(), accelerators={"count": 16})
    plan = plan_of(h100(2), again, children=[child], **given)
    assert not plan.kept
    assert plan.chosen.count == 16


def test_an_eviction_gives_its_nodes_back_and_is_told():
    child = made(h100(2), waiting(), **one_queue())
    evicted = ("Evicted", "True", "Preempted", "to make room for urgent")
    given = one_queue(workloads=(workload(child, evicted, WAITS),))
    found = outcomes(h100(2), waiting(), job("other", 16), children=[child], **given)
    assert found["other"].placed
    told = placed(found["job"])
    assert (told.reason, "to make room for urgent" in told.message) == ("Preempted", True)


def test_a_workload_that_never_appears_is_told_with_what_may_keep_it_away():
    child = made(h100(2), waiting(), **one_queue())
    told = placed(plan_of(h100(2), waiting(), children=[child], **one_queue()))
    assert told.reason == Reason.QUEUED
    assert "managedJobsNamespaceSelector leaves out namespace research" in told.message


def test_the_record_of_a_queued_child_renders_the_same_child_again():
    child = made(h100(2), waiting(), **one_queue())
    given = one_queue(workloads=(workload(child, WAITS),))
    answer = decided(h100(2), waiting(), children=[child], **given)
    (pool,) = answer.pools
    again = children(waiting(), answer.outcomes[key("job")], pool, Settings())
    (same,) = [each for each in again if each["kind"] == "Job"]
    assert same["spec"] == child["spec"]
    assert same["metadata"]["annotations"] == child["metadata"]["annotations"]


def test_a_plan_only_job_asks_no_queue():
    plan = plan_of(h100(2), waiting(mode="Plan"), **one_queue())
    assert plan.queue is None
    assert plan.reason_code == Reason.PLAN_ONLY


def test_what_kueue_let_in_is_not_moved_by_us():
    """The same run without a queue leaves for a faster pool."""
    for queue, is_kept in (("", False), ("research", True)):
        run, children = slow_run()
        run["spec"]["queueName"] = queue
        (child,) = children
        child["metadata"]["uid"] = "uid-of-slow"
        if queue:
            child["metadata"]["labels"][QUEUE_LABEL] = queue
        given = two_flavors(workloads=(workload(child, RESERVED),))
        seen = observed([*l40s(1), *h100(1)], run, children=children, **given)
        found = decide(seen, TABLES, MAY, CALIBRATION, NOW).outcomes[key("slow")]
        assert isinstance(found, Plan)
        assert found.kept is is_kept


def test_pools_beyond_the_first_reasons_are_counted():
    """A queue that leads to many pools, none of which it may use so much of, told of three."""
    nodes = [
        node
        for name in ("a", "b", "c", "d", "e")
        for node in h100(2, **{"cloud.google.com/gke-nodepool": name})
    ]
    for at, node in enumerate(nodes):
        node["metadata"]["name"] = f"h100-{at}"
    found = plan_of(nodes, waiting(count=16), **one_queue(quota=8))
    assert found.reason.startswith("no pool can run it: ")
    assert found.reason.endswith("; and 2 more")
