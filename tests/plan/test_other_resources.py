"""What pods ask for beside accelerators, cores and memory is counted on each node as these are."""

import copy
from dataclasses import replace

import pytest

from poolwise.plan.amounts import PODS, STORAGE
from poolwise.plan.candidates.reasons import Verdict
from poolwise.plan.cluster import decide
from poolwise.plan.decision import Claim, Kind, Plan
from poolwise.plan.ledger.capacity import Gang, ledger
from poolwise.plan.ledger.capacity_pods import Usage
from poolwise.plan.ledger.growth import grown
from poolwise.plan.memo import Memo
from poolwise.plan.names import PLACEMENT
from poolwise.plan.provisioning.landing import landed
from poolwise.plan.records.placement_record import parse, render
from poolwise.settings import Settings
from tests.plan.cluster_given import (
    GPU,
    NOW,
    candidate,
    cpu_nodes,
    foreign_pod,
    h100,
    job,
    key,
    l40s,
    observed,
    outcomes,
    plan_of,
    pods_of,
    running,
    service,
)
from tests.plan.ledger.test_capacity import empty, node, place, pool
from tests.plan.machines import CALIBRATION, TABLES
from tests.plan.provisioning.given import created, decided_at, growing
from tests.plan.provisioning.given import node as node_of_group
from tests.plan.provisioning.given import pods as pods_of_run

HCA = "rdma/hca_shared_devices_a"
ONE_HCA = {HCA: "1"}


def having(nodes, **amounts):
    """The same nodes, which allocate so much more, or other amounts; None: they do not tell."""
    changed = copy.deepcopy(nodes)
    for each in changed:
        for told in (each["status"]["capacity"], each["status"]["allocatable"]):
            told.update(amounts)
            for name in [name for name, amount in told.items() if amount is None]:
                del told[name]
    return changed


def with_hca(nodes, count="1"):
    return having(nodes, **{HCA: count})


def asking(make=job, *given, requests=ONE_HCA, **spec):
    """A workload each pod of which asks for something beside its accelerators."""
    return make(*given, run={"image": "train", "resources": {"requests": requests}}, **spec)


def holder(node_name, name="holder", gpus=0, **amounts):
    """A pod of somebody else."""
    found = foreign_pod(node_name, gpus, name)
    found["spec"]["containers"][0]["resources"] = {
        "limits": {each: str(amount) for each, amount in amounts.items()}
        | ({GPU: str(gpus)} if gpus else {})
    }
    return found


def crowd(node_name, count):
    """Pods that ask for nothing, as many of a node as there are."""
    return [holder(node_name, f"{node_name}-{index}") for index in range(count)]


# Pools that have it, and pools that do not.


@pytest.mark.parametrize("make", [job, service])
def test_of_two_pools_the_one_that_has_it_is_taken(make):
    slow_has_it = [*h100(2), *with_hca(l40s(2))]
    assert plan_of(slow_has_it, asking(make)).chosen.accelerator == "L40S"
    fast_has_it = [*with_hca(h100(2)), *l40s(2)]
    assert plan_of(fast_has_it, asking(make)).chosen.accelerator == "H100-SXM5-80GB"


def test_the_other_pool_says_in_one_clause_what_is_missing():
    lost = candidate(plan_of([*h100(2), *with_hca(l40s(2))], asking()), "H100-SXM5-80GB")
    assert (lost.feasible, lost.waits) == (False, False)
    assert lost.reason_code == Verdict.RESOURCE_MISSING
    assert lost.reason == f"has no {HCA} on its 2 nodes, each pod asks for 1 {HCA}"


def test_a_device_whose_plugin_is_down_is_not_there():
    nodes = with_hca(h100(2))
    for each in nodes:
        each["status"]["allocatable"][HCA] = "0"
    assert plan_of(nodes, asking()).candidates[0].reason_code == Verdict.RESOURCE_MISSING


def test_a_pool_that_has_too_few_on_every_node_says_how_many():
    plan = plan_of(with_hca(h100(2), "2"), asking(requests={HCA: "4"}))
    assert plan.reason_code == "NoFeasiblePool"
    assert plan.candidates[0].reason_code == Verdict.INSUFFICIENT_CAPACITY
    told = f"has 2 {HCA} on its largest node, each pod asks for 4 {HCA}"
    assert told in plan.candidates[0].reason


def test_a_job_goes_to_the_nodes_of_a_pool_that_have_it():
    nodes = h100(3)
    nodes[1:2] = with_hca(nodes[1:2])
    assert set(plan_of(nodes, asking()).claim.accelerators_by_node) == {"h100-1"}
    plan = plan_of(nodes, asking(job, "job", 16))
    assert "has room for at most 1 pod like this, needs 2" in plan.candidates[0].reason


# What others hold of it.


def test_what_pods_of_others_hold_is_not_free():
    nodes, held = with_hca(h100(2)), [holder(f"h100-{index}", **ONE_HCA) for index in range(2)]
    assert plan_of(nodes, asking(), pods=held[:1]).claim.accelerators_by_node == {"h100-1": 8}
    plan = plan_of(nodes, asking(), pods=held)
    assert not plan.placed
    assert plan.candidates[0].waits
    assert f"less than 1 {HCA} is free on 2 of 2 nodes" in plan.reason


@pytest.mark.parametrize("held", ["a device", "all pods"])
def test_who_finds_none_left_goes_where_there_is_some(held):
    """The queue of all that waits does not take the better pool for free."""
    nodes = having(with_hca([*h100(1), *l40s(1)]), pods="8")
    busy = [holder("h100-0", **ONE_HCA)] if held == "a device" else crowd("h100-0", 8)
    plan = plan_of(nodes, asking(), pods=busy)
    assert plan.placed
    assert plan.chosen.accelerator == "L40S"


def test_what_our_own_runs_hold_is_not_free():
    """Half a node each: the accelerators are enough for both."""
    nodes, small = with_hca(h100(1)), {"count": 4}
    both = [asking(job, name, age_seconds=age, accelerators=small)
            for age, name in ((9, "first"), (1, "second"))]  # fmt: skip
    found = outcomes(nodes, *both)
    assert (found["first"].placed, found["second"].placed) == (True, False)
    found = outcomes(with_hca(h100(1), "2"), *both)
    assert (found["first"].placed, found["second"].placed) == (True, True)
    plain = job("second", accelerators=small)
    assert outcomes(nodes, both[0], plain)["second"].placed, "who does not ask does not wait"


def test_what_runs_keeps_its_place_and_what_it_holds():
    nodes, first = with_hca(h100(1)), asking(job, "first", accelerators={"count": 4})
    (child,) = running(nodes, first)
    second = asking(job, "second", accelerators={"count": 4})
    for names in ([], ["h100-0"]):
        pods = pods_of(child, names)
        found = outcomes(nodes, first, second, children=[child], pods=pods)
        assert found["first"].kept
        assert not found["second"].placed


def test_what_somebody_adds_to_our_pods_counts_too():
    """A webhook that gives each pod a device of its own."""
    nodes, first = with_hca(h100(1)), job("first", accelerators={"count": 4})
    (child,) = running(nodes, first)
    (bound,) = pods_of(copy.deepcopy(child), ["h100-0"])
    bound["spec"]["containers"][0]["resources"]["limits"][HCA] = "1"
    second = asking(job, "second", accelerators={"count": 4})
    found = outcomes(nodes, first, second, children=[child], pods=[bound])
    assert not found["second"].placed


@pytest.mark.parametrize("held", ["a device", "all pods"])
def test_a_memory_of_passes_sees_what_was_given_back(held):
    nodes, memo = having(with_hca(h100(1)), pods="8"), Memo()
    busy = [holder("h100-0", **ONE_HCA)] if held == "a device" else crowd("h100-0", 8)
    for pods, placed in ((busy, False), ([], True)) * 2:
        seen = observed(nodes, asking(), pods=pods)
        plan = decide(seen, TABLES, Settings(), CALIBRATION, NOW, memo).outcomes[key("job")]
        assert isinstance(plan, Plan)
        assert plan.placed is placed


def test_replicas_share_what_a_node_has():
    where = pool(replace(node("a"), others={HCA: 3.0}), replace(node("b"), others={HCA: 1.0}))
    gang = Gang(4, 1, others=((HCA, 1.0),))
    assert empty(where).fit(where, gang) == {"a": 3, "b": 1}
    assert empty(where).fit(where, replace(gang, pods=5)) is None
    assert place(empty(where), where, gang).rooms["a"].others == {HCA: 0.0}


def test_a_claim_given_back_gives_all_of_it_back():
    where = pool(replace(node("a"), others={HCA: 3.0}, most_pods=4))
    book = place(empty(where), where, Gang(2, 1, others=((HCA, 1.0),)))
    assert book.rooms["a"].others == {HCA: 1.0, PODS: 2}
    assert book.without_claim(book.claims[0]) == empty(where)


def test_an_update_holds_the_most_of_both():
    where = pool(replace(node("a"), others={HCA: 8.0}))
    gang = Gang(2, 1, others=((HCA, 1.0),))
    before, after = (
        each.claim(key("a"), where.name, {"a": each.pods}) for each in (gang, replace(gang, pods=3))
    )
    assert empty(where).with_update(before, after).rooms["a"].others == {HCA: 5.0}
    assert empty(where).with_update(after, before).rooms["a"].others == {HCA: 5.0}


# The number of pods.


def test_a_node_takes_no_more_pods_than_it_tells():
    nodes = having(h100(2), pods="8")
    assert plan_of(nodes, job(), pods=crowd("h100-0", 8)).claim.accelerators_by_node == {
        "h100-1": 8
    }
    full = [*crowd("h100-0", 8), *crowd("h100-1", 8)]
    plan = plan_of(nodes, job(), pods=full)
    assert not plan.placed
    assert "2 of 2 nodes can take no more pods" in plan.reason
    assert plan_of(nodes, job(), pods=full[:-1]).claim.accelerators_by_node == {"h100-1": 8}


def test_pods_of_ours_count_against_it():
    where = pool(replace(node("a"), most_pods=5), replace(node("b"), most_pods=110))
    book = ledger([where], {"a": Usage(others={PODS: 3})})
    assert book.fit(where, Gang(10, 1)) == {"a": 2, "b": 8}
    assert book.fit(where, Gang(11, 1)) is None
    first = place(book, where, Gang(1, 1, packs=True))
    assert first.rooms["a"].others == {PODS: 1}


def test_on_cpus_each_pod_takes_a_core_at_least():
    embedding = service(
        "embed",
        model={"preset": "bert-large"},
        traffic={"requestsPerSecond": "20", "inputTokens": {"p50": 100, "p95": 200}},
        slo=[{"metric": "E2E", "percentile": 95, "target": "1s"}],
        run={"image": "embedder"},
    )
    cpus = having(cpu_nodes("cpu", 1), pods="10")
    assert plan_of(cpus, embedding, pods=crowd("cpu-0", 9)).placed
    assert not plan_of(cpus, embedding, pods=crowd("cpu-0", 10)).placed


def test_a_limit_that_cannot_be_reached_is_not_looked_at():
    where = pool(replace(node("a"), most_pods=110))
    assert ledger([where], {"a": Usage(others={PODS: 102})}).rooms["a"].others == {}
    assert ledger([where], {"a": Usage(others={PODS: 103})}).rooms["a"].others == {PODS: 7}


def test_nodes_that_do_not_tell_it_take_any_number():
    nodes = having(h100(1), pods=None)
    assert plan_of(nodes, job(), pods=crowd("h100-0", 500)).placed


# Storage and huge pages.


def test_local_storage_is_counted():
    asked = asking(requests={STORAGE: "100Gi"})
    nodes = having(h100(1), **{STORAGE: "150Gi"})
    assert plan_of(nodes, asked).placed
    plan = plan_of(nodes, asked, pods=[holder("h100-0", **{STORAGE: "60Gi"})])
    assert not plan.placed
    assert f"less than 100.0 GiB of {STORAGE} is free on 1 of 1 node" in plan.reason
    small = plan_of(having(h100(1), **{STORAGE: "80Gi"}), asked)
    assert f"has 80.0 GiB of {STORAGE} on its largest node" in small.candidates[0].reason


def test_a_node_that_does_not_tell_its_storage_has_enough():
    assert plan_of(h100(1), asking(requests={STORAGE: "100Ti"})).placed


def test_huge_pages_that_no_node_has_are_missing():
    asked = asking(requests={"hugepages-2Mi": "1Gi", "memory": "4Gi"})
    none = plan_of(having(h100(1), **{"hugepages-2Mi": "0"}), asked)
    assert none.candidates[0].reason_code == Verdict.RESOURCE_MISSING
    assert "each pod asks for 1.0 GiB of hugepages-2Mi" in none.candidates[0].reason
    assert plan_of(having(h100(1), **{"hugepages-2Mi": "2Gi"}), asked).placed


# Nodes to come.


def test_nobody_knows_what_the_first_node_of_a_pool_will_have():
    """Neither its labels nor its machine type tell: that is for the start of the pods to show."""
    assert plan_of([], asking(), pools=[growing()]).placed


def test_a_new_node_is_like_those_that_are_there():
    there = node_of_group("a")
    plan = plan_of([there], asking(), pools=[growing()])
    assert plan.candidates[0].reason_code == Verdict.RESOURCE_MISSING
    plan = plan_of(with_hca([there]), asking(job, "job", 32), pools=[growing()])
    assert len(plan.claim.accelerators_by_node) == 4
    plan = plan_of(with_hca([there]), asking(requests={HCA: "2"}), pools=[growing()])
    assert not plan.placed


def test_daemons_will_hold_of_it_what_they_hold_of_those_that_are_there():
    daemon = holder("a", **{STORAGE: "60Gi"})
    daemon["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "controller": True}]
    nodes = having([node_of_group("a")], **{STORAGE: "150Gi", "pods": "2"})
    for asked, placed in (("80Gi", True), ("100Gi", False)):
        wide = asking(job, "job", 16, requests={STORAGE: asked})
        assert plan_of(nodes, wide, pools=[growing()], pods=[daemon]).placed is placed
    alone = having(nodes, pods="1")
    assert not plan_of(alone, job(count=16), pools=[growing()], pods=[daemon]).placed


def test_a_claim_lands_on_nodes_that_have_it():
    """The first node that came has none free: what was promised waits for the next."""
    wide, given = asking(job, "wide"), {"pools": [growing(max_nodes=2)]}
    (child,) = created([], wide, **given)
    came = with_hca([node_of_group("a"), node_of_group("b")])
    held = [holder("a", **ONE_HCA), *pods_of_run(child, None)]
    found = decided_at(NOW, came, wide, job("other"), **given, children=[child], pods=held)
    assert found.outcomes[key("other")].claim.accelerators_by_node == {"a": 8}
    last = asking(job, "last", accelerators={"count": 4})
    found = decided_at(NOW, came, wide, last, **given, children=[child], pods=held[1:])
    assert found.outcomes[key("last")].placed
    found = decided_at(NOW, came, wide, last, **given, children=[child], pods=held)
    assert not found.outcomes[key("last")].placed


def test_what_landed_holds_nothing_of_nodes_to_come():
    pools, wide = [growing(max_nodes=2)], asking(job, "wide", 16)
    (child,) = created([], wide, pools=pools)
    record = parse(child["metadata"]["annotations"][PLACEMENT], key("wide"))
    assert record is not None
    (where,) = decided_at(NOW, with_hca([node_of_group("a")], "3"), pools=pools).pools
    claims, records = {key("wide"): record.claim}, {key("wide"): record}
    book, held = landed(ledger([grown(where)], {"a": Usage({HCA: 1})}), claims, records)
    assert held[key("wide")].others == {
        PODS: {"a": 1, "~zero-0000": 1},
        HCA: {"a": 1, "~zero-0000": 1},
    }
    assert {name: (room.others or {})[HCA] for name, room in book.rooms.items()} == {
        "a": 1,
        "~zero-0000": 2,
    }


# What an operator that starts anew knows.


def test_a_record_tells_all_that_is_held():
    (child,) = running(with_hca(h100(2)), asking(job, "job", 16))
    text = child["metadata"]["annotations"][PLACEMENT]
    record = parse(text, key("job"))
    assert record is not None
    assert record.claim.others == {
        PODS: {"h100-0": 1, "h100-1": 1},
        HCA: {"h100-0": 1, "h100-1": 1},
    }
    assert render(record) == text
    assert parse(text.replace('"h100-0":1,', '"h100-0":-1,'), key("job")) is None


@pytest.mark.parametrize("names", [["h100-0", "h100-1"], ["h100-1"], []])
def test_a_run_without_its_record_is_known_by_its_pods(names):
    """Those without a node yet hold as much of nodes to come."""
    nodes, wide = with_hca(h100(2)), asking(job, "wide", 16)
    (child,) = running(nodes, wide)
    child["metadata"] |= {"uid": "made", "annotations": {}}
    record = plan_of(nodes, wide, children=[child], pods=pods_of(child, names)).record
    assert record is not None
    held = {name: sorted(each.values()) for name, each in record.claim.others.items()}
    assert held == {PODS: [1, 1], HCA: [1, 1]}
    assert set(names) <= set(record.claim.others[HCA])


def test_a_claim_is_of_all_nodes_that_it_holds_anything_of():
    where = pool(replace(node("a"), most_pods=2))
    claim = Claim(key("a"), where.name, {}, {}, {}, others={PODS: {"a": 1}})
    assert empty(where).with_claim(claim).rooms["a"].others == {PODS: 1}


def test_replicas_of_a_service_hold_one_each():
    plan = plan_of(
        with_hca(h100(2), "2"), asking(service, "chat", "60", scaling={"minReplicas": 4})
    )
    assert plan.key == key("chat", Kind.INFERENCE_SERVICE)
    assert plan.claim.others[HCA] == {"h100-0": 2.0, "h100-1": 2.0}
    assert plan.claim.others[PODS] == {"h100-0": 2, "h100-1": 2}
