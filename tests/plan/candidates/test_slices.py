"""TPU slices of several hosts run as a whole: no gang takes a part of one."""

import pytest

from poolwise.plan.candidates.reasons import Verdict
from tests.plan.cluster_given import job, plan_of, service
from tests.plan.nodes_given import declared, node

SLICE = "cloud.google.com/gke-nodepool"
V5E = {
    "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
    "cloud.google.com/gke-tpu-topology": "4x4",
    "node.kubernetes.io/instance-type": "ct5lp-hightpu-4t",
}
V5E_POOL = declared("v5e", nodeSelector={"cloud.google.com/gke-tpu-topology": "4x4"})


def hosts(name, count=4):
    """Of one slice of 16 chips, 4 on each of 4 hosts."""
    return [
        node(f"{name}-{index}", V5E | {SLICE: name}, resources={"google.com/tpu": "4"})
        for index in range(count)
    ]


def cordoned(host):
    return {**host, "spec": {"unschedulable": True}}


def run(least, most=None):
    return job(accelerators={"min": least, "max": most or least})


TWO_SLICES = [*hosts("a"), *hosts("b")]


@pytest.mark.parametrize(("least", "most", "taken"), [(16, 16, 16), (32, 32, 32), (4, 31, 16)])
def test_a_run_takes_whole_slices(least, most, taken):
    plan = plan_of(TWO_SLICES, run(least, most), pools=[V5E_POOL])
    assert plan.chosen.count == taken
    slices = {name.rpartition("-")[0] for name in plan.claim.nodes}
    assert len(plan.claim.nodes) == 4 * len(slices) == taken / 4


@pytest.mark.parametrize(
    ("least", "most", "wanted"), [(4, 4, "4"), (24, 24, "24"), (17, 31, "17 to 31")]
)
def test_a_part_of_a_slice_is_refused(least, most, wanted):
    (told,) = plan_of(TWO_SLICES, run(least, most), pools=[V5E_POOL]).candidates
    assert told.reason_code == Verdict.PART_OF_SLICE
    assert told.reason == (
        f"has slices of 16 on 4 hosts each, which run as a whole: accelerators wants {wanted}"
    )


def test_hosts_whose_plugin_does_not_run_yet_are_no_trouble():
    labels = {name: text for name, text in V5E.items() if "instance" not in name}
    (told,) = plan_of([node("bare", labels)], run(16), pools=[V5E_POOL]).candidates
    assert not told.feasible


def test_a_slice_that_lacks_a_host_takes_nothing():
    nodes = [*hosts("a", 3), cordoned(hosts("a")[3]), *hosts("b")]
    plan = plan_of(nodes, run(16), pools=[V5E_POOL])
    assert {name.rpartition("-")[0] for name in plan.claim.nodes} == {"b"}
    waiting = plan_of(nodes[:4], run(16), pools=[V5E_POOL])
    assert not waiting.placed
    (pool,) = waiting.candidates
    told = "a-0 is of a slice of 4 hosts, which run as one, and 1 cannot be used"
    assert pool.reason_code == Verdict.NO_USABLE_NODE
    assert told in pool.reason


def test_a_pool_of_less_than_a_slice_is_too_small():
    (told,) = plan_of(hosts("a", 3), run(4, 16), pools=[V5E_POOL]).candidates
    assert not told.feasible
    assert told.reason_code == Verdict.NO_USABLE_NODE


def test_slices_to_come_are_whole_as_well():
    selector = {
        "cloud.google.com/gke-tpu-topology": "4x4",
        "node.kubernetes.io/instance-type": "ct5lp-hightpu-4t",
    }
    growing = declared("v5e", nodeSelector=selector, accelerator="TPU-v5e", maxNodes=8)
    (told,) = plan_of([], run(8), pools=[growing]).candidates
    assert told.reason_code == Verdict.PART_OF_SLICE
    assert plan_of([], run(16), pools=[growing]).chosen.count == 16


def test_replicas_have_no_part_of_a_slice():
    image = {"run": {"image": "serve-on-tpu"}}  # no engine for TPUs is known
    (told,) = plan_of(TWO_SLICES, service(**image), pools=[V5E_POOL]).candidates
    assert told.reason_code == Verdict.PART_OF_SLICE
    assert "a replica wants 1" in told.reason


def test_hosts_that_are_slices_of_their_own_are_shared_as_ever():
    single = V5E | {"cloud.google.com/gke-tpu-topology": "2x2"}
    nodes = [node(f"n{i}", single, resources={"google.com/tpu": "4"}) for i in range(3)]
    small = job(count=4, model={"preset": "llama-3.2-1b"})
    assert plan_of(nodes, small).chosen.count == 4
