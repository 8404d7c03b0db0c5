"""How close a gang's nodes have to be: what the spec says, else what the step says."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.plan.candidates.topology import (
    can_ever_hold,
    communication_share,
    unknown_level,
    wish,
)
from poolwise.plan.closeness import ANYWHERE
from poolwise.plan.decision import Kind
from poolwise.plan.ledger.capacity import Gang
from poolwise.plan.pools.gathering import pools
from poolwise.plan.requests.reading import workload
from poolwise.plan.requests.request import Topology, TrainingRequest, Where
from poolwise.settings import Settings
from tests.plan.cluster_given import candidate, gpu_nodes, h100, job, outcomes, plan_of
from tests.plan.machines import CALIBRATION, TABLES

BLOCK = "cloud.google.com/gce-topology-block"
SUBBLOCK = "cloud.google.com/gce-topology-subblock"
CLIQUE = "nvidia.com/gpu.clique"
FOUR = Gang(4, 8, one_per_node=True)
AUTO = Where("research")


def never():
    raise AssertionError("only Auto asks for the share")


def labelled(nodes, **per_domain):
    """Nodes with labels: by key, how many nodes a domain has."""
    for index, node in enumerate(nodes):
        for key, count in per_domain.items():
            node["metadata"]["labels"][key] = f"d{index // count}"
    return nodes


def fabric(count=16, subblock=2, block=8):
    return labelled(h100(count), **{SUBBLOCK: subblock, BLOCK: block})


def racks(count=36, size=18):
    nodes = gpu_nodes("gb", count, "NVIDIA-GB200", per_node=4, cores=144)
    return labelled(nodes, **{CLIQUE: size})


def pool_of(nodes):
    (pool,) = pools(nodes, [], TABLES, Settings())
    return pool


@pytest.mark.parametrize(
    ("share", "levels", "must_share"),
    [
        (0.0, (), False),
        (0.19, (), False),
        (0.21, (SUBBLOCK, BLOCK), False),
        (0.49, (SUBBLOCK, BLOCK), False),
        (0.51, (BLOCK,), True),
        (1.0, (BLOCK,), True),
    ],
)
def test_auto_goes_by_the_share_of_communication(share, levels, must_share):
    """Four nodes never fit a subblock of two, so a block is the nearest to insist on."""
    found = wish(AUTO, FOUR, pool_of(fabric()), lambda: share)
    assert (found.levels, found.must_share, found.share) == (levels, must_share, share)
    assert f"{100 * share:.0f}" in found.reason


def test_auto_never_insists_on_what_can_never_be():
    found = wish(AUTO, replace(FOUR, pods=9), pool_of(fabric()), lambda: 0.9)
    assert (found.levels, found.must_share) == ((SUBBLOCK, BLOCK), False)


@pytest.mark.parametrize(
    ("topology", "levels", "must_share"),
    [
        (Topology.REQUIRED, (SUBBLOCK, BLOCK), True),
        (Topology.PREFERRED, (SUBBLOCK, BLOCK), False),
        (Topology.UNCONSTRAINED, (), False),
    ],
)
def test_what_the_spec_says_is_done(topology, levels, must_share):
    found = wish(replace(AUTO, topology=topology), FOUR, pool_of(fabric()), never)
    assert (found.levels, found.must_share, found.share) == (levels, must_share, None)


@pytest.mark.parametrize("topology", [Topology.REQUIRED, Topology.PREFERRED])
def test_a_level_of_the_spec_is_the_only_one(topology):
    where = replace(AUTO, topology=topology, topology_level=BLOCK)
    assert wish(where, FOUR, pool_of(fabric()), never).levels == (BLOCK,)


def test_a_level_of_the_spec_holds_for_auto_too():
    where = replace(AUTO, topology_level=BLOCK)
    assert wish(where, FOUR, pool_of(fabric()), lambda: 0.3).levels == (BLOCK,)
    assert wish(where, FOUR, pool_of(fabric()), lambda: 0.1).levels == ()


def test_who_has_one_node_or_no_fabric_wishes_nothing():
    assert wish(AUTO, replace(FOUR, pods=1), pool_of(fabric()), never) == ANYWHERE
    assert wish(AUTO, Gang(4, 1), pool_of(fabric()), never) == ANYWHERE
    assert wish(AUTO, FOUR, pool_of(h100(8)), never) == ANYWHERE


def test_a_level_that_the_pool_lacks_is_insisted_on_only_if_required():
    where = replace(AUTO, topology_level="rack")
    assert wish(where, FOUR, pool_of(fabric()), never).levels == ()
    required = wish(replace(where, topology=Topology.REQUIRED), FOUR, pool_of(fabric()), never)
    assert (required.levels, required.must_share) == (("rack",), True)


def test_a_level_that_no_node_has_is_told_with_those_that_there_are():
    known = [pool_of(fabric())]
    where = replace(AUTO, topology_level="cloud.google.com/gce-topology-blok")
    assert unknown_level(where, known) == (
        "spec.placement.topology.level: no node of any pool has the label"
        f" cloud.google.com/gce-topology-blok; did you mean {BLOCK}?"
        f" levels there are: {SUBBLOCK}, {BLOCK}"
    )
    assert unknown_level(replace(where, topology_level=BLOCK), known) is None
    assert unknown_level(AUTO, known) is None
    hidden = unknown_level(replace(where, topology_level="x"), [pool_of(h100(1))])
    assert hidden is not None
    assert "none: no label describes the fabric" in hidden


def test_a_level_that_only_a_spec_lists_is_not_told_as_one_that_there_is():
    spec = {"nodeSelector": {"group": "a"}, "interconnect": {"topologyKeys": ["rack", BLOCK]}}
    declared = {"metadata": {"name": "mine"}, "spec": spec}
    known = pools(labelled(h100(2, group="a"), **{BLOCK: 1}), [declared], TABLES, Settings())
    assert unknown_level(replace(AUTO, topology_level="rack"), known) == (
        "spec.placement.topology.level: no node of any pool has the label rack;"
        f" levels there are: {BLOCK}"
    )


@pytest.mark.parametrize("mode", ["Required", "Preferred", "Auto"])
def test_a_slip_of_the_spec_stops_only_who_insists(mode):
    """And nobody else: the other job runs."""
    nodes = fabric(4)
    slip = job("slip", count=16, placement={"topology": {"mode": mode, "level": "gce-block"}})
    found = outcomes(nodes, slip, job("other", count=16))
    assert found["other"].placed
    assert found["slip"].placed == (mode != "Required")
    if mode == "Required":
        assert found["slip"].reason_code == "NoFeasiblePool"
        assert found["slip"].reason == (
            "spec.placement.topology.level: no node of any pool has the label gce-block;"
            f" levels there are: {SUBBLOCK}, {BLOCK}"
        )
        told = candidate(found["slip"], "H100-SXM5-80GB").reason
        assert told == "has no node with the label gce-block"
    else:
        assert "nodes anywhere: none here has the label gce-block" in found["slip"].reason


@given(st.integers(1, 40), st.integers(1, 20), st.integers(1, 20))
def test_a_level_holds_what_its_largest_domain_holds(nodes, size, pods):
    pool = pool_of(labelled(h100(nodes), **{BLOCK: size}))
    assert can_ever_hold(BLOCK, replace(FOUR, pods=pods), pool) == (pods <= min(nodes, size))


def test_a_level_holds_only_who_finds_there_all_that_it_asks_for():
    nodes = labelled(h100(4), **{BLOCK: 2})
    for each in nodes[:3]:
        each["status"]["allocatable"]["rdma/hca"] = "1"
    pool, asks = pool_of(nodes), replace(FOUR, others=(("rdma/hca", 1.0),))
    assert can_ever_hold(BLOCK, replace(asks, pods=2), pool)
    twice = replace(asks, pods=2, others=(("rdma/hca", 2.0),))
    assert not can_ever_hold(BLOCK, twice, pool)


@pytest.mark.parametrize(
    "too_much",
    [{"cores": 1e4}, {"memory_bytes": 1e15}, {"accelerators": 9}],
    ids=["cores", "memory", "accelerators"],
)
def test_a_level_holds_nobody_whose_pods_are_too_large_for_its_nodes(too_much):
    pool, two = pool_of(labelled(h100(4), **{BLOCK: 2})), replace(FOUR, pods=2)
    assert can_ever_hold(BLOCK, two, pool)
    assert not can_ever_hold(BLOCK, replace(two, **too_much), pool)


def share_of(spec, nodes, count):
    pool = pool_of(nodes)
    request = workload(job(count=count, **spec), Kind.TRAINING_JOB, TABLES, Settings(), {}).request
    chosen = candidate(plan_of(nodes, job(count=count, **spec)), pool.accelerator)
    assert pool.machine is not None
    assert isinstance(request, TrainingRequest)
    return communication_share(request.work, chosen.layout, pool.machine, CALIBRATION)


def test_the_share_falls_with_a_faster_network_and_grows_with_more_nodes():
    rdma = {"feature.node.kubernetes.io/rdma.available": "true"}
    slow, fast = share_of({}, fabric(8), 64), share_of({}, h100(8, **rdma), 64)
    assert 0.0 <= fast < 0.05 < slow < 1.0
    assert share_of({}, fabric(4), 32) < slow


def test_a_run_over_a_rack_insists_on_it():
    """Its layout counts on the rack's link: over the network most of a step would be waiting."""
    plan = plan_of(racks(), job(count=64))
    chosen = plan.chosen
    assert (chosen.wish.levels, chosen.wish.must_share) == ((CLIQUE,), True)
    assert plan.domain == {CLIQUE: "d0"}
    assert "all nodes in one domain of nvidia.com/gpu.clique: communication takes" in plan.reason


def test_a_run_that_hardly_talks_takes_any_nodes():
    rdma = {"feature.node.kubernetes.io/rdma.available": "true"}
    nodes = labelled(h100(4, **rdma), **{BLOCK: 2})
    plan = plan_of(nodes, job(count=32))
    assert (plan.placed, plan.domain, plan.chosen.wish.levels) == (True, {}, ())
    assert "nodes anywhere: communication takes" in plan.reason


def test_one_node_is_no_matter_of_closeness():
    plan = plan_of(fabric(2), job(count=8))
    assert plan.chosen.wish == ANYWHERE
    assert "nodes" not in plan.reason.partition(";")[0]
