"""Services whose replicas span nodes: only where no node holds the model, and all nodes or none."""

from dataclasses import replace

import pytest

from poolwise.model.shapes import Transformer
from poolwise.model.work import ServingLayout
from poolwise.plan.candidates.serving.groups import NODE_COUNTS, group_by_group, sizes_over_nodes
from poolwise.plan.closeness import Wish
from poolwise.plan.ledger.capacity import Gang, ledger
from poolwise.plan.requests.request import FixedReplica
from tests.plan.children.set_cases import APIS, RACK, fabric_pool
from tests.plan.cluster_given import (
    candidate,
    changed,
    gpu_nodes,
    h100,
    l40s,
    outcomes,
    plan_of,
    service,
)
from tests.plan.machines import model

LOOSE = [
    {"metric": "TTFT", "percentile": 99, "target": "10s"},
    {"metric": "ITL", "percentile": 99, "target": "250ms"},
]
H100 = "H100-SXM5-80GB"


def large(name="large", **spec):
    """405 billion parameters in 16 bits: 810 GB, and eight H100 have 640."""
    given = {"preset": "llama-3.1-405b", "maxModelLength": 8192, "quantization": "None"}
    return service(name, **{"model": given, "slo": LOOSE, **spec})


def test_a_model_that_fits_no_node_takes_several():
    plan = plan_of(h100(4), large(), apis=APIS)
    layout = plan.chosen.layout
    assert (layout.tensor, layout.pipeline) == (8, 2), "a stage on each node"
    assert sorted(plan.claim.accelerators_by_node.values()) == [8, 8]
    assert plan.chosen.cost_per_hour == pytest.approx(2 * plan_cost_per_node(plan))


def plan_cost_per_node(plan):
    return plan.chosen.cost_per_hour * 8 / (plan.chosen.count * plan.chosen.replicas)


def test_without_leader_worker_set_the_reason_says_what_it_would_make_possible():
    plan = plan_of(h100(4), large())
    assert not plan.placed
    reason = candidate(plan, H100).reason
    assert "needs" in reason and "GiB per accelerator" in reason
    assert reason.endswith(
        "2 nodes together would hold a replica, but LeaderWorkerSet, which starts such replicas,"
        " is not installed"
    )


@pytest.mark.parametrize("apis", [{}, APIS], ids=["without", "with LeaderWorkerSet"])
def test_what_would_not_help_is_not_asked_for(apis):
    """Three nodes of eight L40S hold what one does not, and there are two."""
    reason = candidate(plan_of(l40s(2), large(), apis=apis), "L40S").reason
    assert "LeaderWorkerSet" not in reason
    if not apis:
        assert reason.endswith("3 nodes together would hold a replica, but the pool has 2")


def test_an_engine_that_starts_on_one_node_says_so():
    plan = plan_of(h100(4), large(engine={"type": "tgi"}), apis=APIS)
    assert "engine tgi starts on one node (sglang and vllm start on several)" in plan.reason


def test_a_model_that_fits_a_node_stays_there():
    assert plan_of(h100(4), service(), apis=APIS) == plan_of(h100(4), service())


def test_too_few_nodes_are_told():
    plan = plan_of(h100(1), large(), apis=APIS)
    assert candidate(plan, H100).reason == "has room for at most 1 pod like this, needs 2"


def test_a_group_is_whole_or_waits():
    """Three nodes: one group runs, the second finds one node and holds nothing of it."""
    first, second = large("first"), large("second", age_seconds=-1)
    plans = outcomes(h100(3), first, second, service("small", age_seconds=-2), apis=APIS)
    assert plans["first"].placed and not plans["second"].placed
    assert candidate(plans["second"], H100).waits
    assert plans["small"].placed


def test_a_node_that_is_used_in_part_is_none_for_a_group():
    placed = outcomes(h100(2), service("small", priorityClassName=""), large(), apis=APIS)
    both = [name for name, plan in placed.items() if plan.placed]
    assert both == ["small"] or both == ["large"]


def test_two_replicas_take_four_nodes():
    plan = plan_of(h100(5), large(scaling={"minReplicas": 2, "maxReplicas": 2}), apis=APIS)
    assert plan.chosen.replicas == 2
    assert len(plan.claim.accelerators_by_node) == 4


@pytest.mark.parametrize(
    ("asked", "layout"),
    [
        ({"accelerators": {"perReplica": 24}}, (8, 3)),
        ({"parallelism": {"tensor": 16}}, (16, 1)),
        ({"parallelism": {"tensor": 4, "pipeline": 4}}, (4, 4)),
        ({"parallelism": {"pipeline": 4}}, (4, 4)),
    ],
)
def test_what_a_user_fixes_is_kept(asked, layout):
    chosen = plan_of(h100(24), large(**asked), apis=APIS).chosen
    assert (chosen.layout.tensor, chosen.layout.pipeline) == layout


def test_a_link_over_nodes_carries_a_tensor_group_where_the_target_is_tight():
    """Four accelerators a node, and one NVLink domain over all nodes: stages serve more, and a
    tensor group answers sooner."""
    nodes = gpu_nodes("gb200", 8, "NVIDIA-GB200", 4, **{"nvidia.com/gpu.clique": "c.1"})
    loose = plan_of(nodes, large(), apis=APIS).chosen
    assert (loose.layout.tensor, loose.layout.pipeline) == (4, 2)
    slo = [{"metric": "ITL", "percentile": 99, "target": "90ms"}]
    tight = plan_of(nodes, large(slo=slo, objective={"goal": "Time"}), apis=APIS).chosen
    assert (tight.layout.tensor, tight.layout.pipeline) == (16, 1)
    assert tight.wish.levels == ("nvidia.com/gpu.clique",) and tight.wish.must_share


def test_it_is_the_only_pool_with_large_nodes_that_needs_no_group():
    """Where another pool's node holds the model, replicas stay within a node there."""
    big = gpu_nodes("h200", 1, "NVIDIA-H200", **{})
    plan = plan_of([*l40s(40), *big], large(), apis=APIS)
    chosen = plan.chosen
    assert chosen.accelerator == "H200-SXM-141GB" and chosen.layout.pipeline == 1, plan.reason


SPINE = "network.topology.nvidia.com/spine"


@pytest.mark.parametrize(
    ("topology", "replicas", "levels", "must_share"),
    [
        pytest.param({}, 1, (RACK, SPINE), False, id="the-nearest-with-room"),
        pytest.param({"level": SPINE}, 1, (SPINE,), False, id="the-level-of-the-spec"),
        pytest.param({"mode": "Required"}, 1, (RACK, SPINE), True, id="a-lone-replica-insists"),
        pytest.param({"mode": "Required"}, 2, (RACK, SPINE), False, id="several-need-not-share"),
        pytest.param({"mode": "Unconstrained"}, 1, (), False, id="anywhere"),
    ],
)
def test_how_close_the_nodes_of_a_replica_are_to_be(topology, replicas, levels, must_share):
    nodes = h100(4, **{RACK: "rack", SPINE: "spine"})
    scaling = {"minReplicas": replicas, "maxReplicas": replicas}
    asked = large(placement={"topology": {"mode": "Preferred", **topology}}, scaling=scaling)
    wish = plan_of(nodes, asked, apis=APIS).chosen.wish
    assert (wish.levels, wish.must_share) == (levels, must_share)


def test_moving_to_groups_restarts_nothing_else():
    asked = large()
    plan = plan_of(h100(4), changed(asked, replicas=2, scaling={"mode": "Off"}), apis=APIS)
    assert plan.chosen.replicas == 2 and len(plan.claim.accelerators_by_node) == 4


def test_groups_come_one_after_the_other_each_in_one_domain():
    pool = fabric_pool()
    racks = ("a", "a", "b", "b", "b", "c", "c", "c")
    nodes = tuple(
        replace(node, labels={**node.labels, RACK: rack})
        for node, rack in zip(pool.nodes, racks, strict=True)
    )
    pool = replace(pool, nodes=nodes)
    gang = Gang(pods=6, accelerators=8, one_per_node=True, group=2)
    chosen = group_by_group(ledger([pool], {}), pool, gang, Wish((RACK,), True))
    by_rack = {rack: 0 for rack in "abc"}
    for node in pool.nodes:
        by_rack[node.labels[RACK]] += (chosen or {}).get(node.name, 0)
    assert by_rack == {"a": 2, "b": 2, "c": 2}
    four = replace(gang, pods=8)
    assert group_by_group(ledger([pool], {}), pool, four, Wish((RACK,), True)) is None


def test_sizes_divide_heads_layers_and_nodes():
    shape = model("llama-3.1-405b").shape
    assert isinstance(shape, Transformer)
    for layout in sizes_over_nodes(shape, FixedReplica(), 8, 8, "bf16"):
        assert isinstance(layout, ServingLayout)
        assert layout.count % 8 == 0 and layout.count // 8 in NODE_COUNTS
        assert shape.heads % layout.tensor == 0 and layout.pipeline <= shape.layers
    assert list(sizes_over_nodes("bare counts", FixedReplica(), 8, 8, "bf16")) == []
