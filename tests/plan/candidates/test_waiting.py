"""What a waiting workload is told: what it needs, what is there, who would have to end."""

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest

from poolwise.model.prediction import Interval
from poolwise.plan.candidates.waiting import Obstacle, level_word
from poolwise.plan.closeness import ANYWHERE, Wish
from poolwise.plan.cluster import decide
from poolwise.plan.decision import Claim, Key, Kind, Plan
from poolwise.plan.ledger.capacity import Gang, ledger
from poolwise.plan.ledger.capacity_pods import Usage
from poolwise.plan.memo import Memo
from poolwise.plan.status.story import story
from poolwise.settings import Settings
from tests.plan.cluster_given import NOW, h100, job, observed, plan_of, running, service
from tests.plan.ledger.test_capacity import GPU, node, pool
from tests.plan.machines import CALIBRATION, TABLES

BLOCK = "cloud.google.com/gce-topology-block"
NEAR = Wish((BLOCK,), must_share=True)
TWO = Gang(2, 8, one_per_node=True)


def key(name, kind=Kind.TRAINING_JOB):
    return Key(kind, "research", name)


def holding(name, *nodes, kind=Kind.TRAINING_JOB, count=8):
    return Claim(key(name, kind), "h100", dict.fromkeys(nodes, count), {}, {})


def blocks(*sizes):
    nodes = (
        node(f"b{b}-{i}", **{BLOCK: f"b{b}"}) for b, size in enumerate(sizes) for i in range(size)
    )
    return pool(*nodes)


def told(where, *claims, gang=TWO, wish=ANYWHERE, ends=None, foreign=None):
    book = ledger([where], foreign or {})
    for claim in claims:
        book = book.with_claim(claim)
    assert book.fit(where, gang, wish.levels, wish.must_share) is None
    return Obstacle(book, gang, where, wish, ends or {}).told()


def minutes(count):
    return Interval(60.0 * count, 50.0 * count, 70.0 * count)


def test_free_nodes_in_several_blocks_are_no_block():
    where = blocks(2, 2, 2)
    claims = holding("x", "b0-0", "b2-0"), holding("y", "b1-1")
    assert told(where, *claims, wish=NEAR, ends={key("x"): minutes(41)}) == (
        f"needs 2 whole H100-SXM5-80GB nodes in one block ({BLOCK}); 3 free nodes are in 3 blocks,"
        " at most 1 in one; largest blocker: job research/x (8), ends in about 40 min"
    )


def test_the_block_that_comes_nearest_is_counted():
    where = blocks(3, 3)
    said = told(where, holding("x", "b0-0", "b0-1", "b1-0"), gang=replace(TWO, pods=3), wish=NEAR)
    assert "; 3 free nodes are in 2 blocks, at most 2 in one;" in said


def test_only_who_is_in_the_way_is_named():
    """The block of three has two free nodes already: its holder is in the way."""
    where = blocks(3, 4)
    claims = holding("near", "b0-2"), holding("far", "b1-0", "b1-1", "b1-2")
    said = told(where, *claims, gang=replace(TWO, pods=3), wish=NEAR)
    assert "largest blocker: job research/near (8)" in said
    assert "far" not in said


def test_too_few_are_free():
    where = blocks(2)
    assert told(where, holding("x", "b0-0"), ends={key("x"): minutes(300)}) == (
        "8 of 16 are free, needs 16; largest blocker: job research/x (8), ends in about 6 h"
    )
    assert f"needs 16 in one block ({BLOCK});" in told(where, holding("x", "b0-0"), wish=NEAR)


def test_pieces_are_no_whole_node():
    where = pool(node("a"), node("b"))
    said = told(where, holding("x", "a", "b", count=4), gang=Gang(1, 8, one_per_node=True))
    assert said.startswith("8 are free, but needs 1 node with 8 free accelerators, and has 0; ")


def test_one_is_free():
    gang = Gang(1, 1, cores=500.0)
    said = told(pool(node("a")), holding("x", "a", count=7), gang=gang)
    assert said.startswith("1 is free, but needs 1 place for 1 free accelerator and what its pods")


def test_a_service_never_ends_so_the_first_run_to_end_is_named_too():
    where = blocks(5)
    claims = (
        holding("chat", "b0-0", "b0-1", kind=Kind.INFERENCE_SERVICE),
        holding("late", "b0-2"),
        holding("soon", "b0-3"),
    )
    ends = {key("late"): minutes(600), key("soon"): minutes(10)}
    assert told(where, *claims, ends=ends).partition("; ")[2] == (
        "largest blocker: service research/chat (16);"
        " first to end: job research/soon (8) in about 10 min; 1 more holds some"
    )


def test_pods_of_others_are_counted():
    where = pool(node("a"), node("b"))
    said = told(where, foreign={"a": Usage({GPU: 3})})
    assert said == ("13 of 16 are free, needs 16; 3 are held by pods of others")


def test_nodes_that_nothing_can_use_are_told():
    where = pool(node("a"), node("b", unusable="is cordoned"), node("c", unusable="is not ready"))
    assert told(where) == (
        "8 of 8 are free, needs 16; not counted: b is cordoned and 1 more like it"
    )


def test_replicas_on_cpus_count_cores():
    where = pool(node("a", 0, cores=8.0), name="cpu", resource=None, accelerator="CPU")
    said = told(where, gang=Gang(3, 0, cores=4.0))
    assert said == "3 replicas of 4 cores wanted, room for 2"


@pytest.mark.parametrize(
    ("level", "word"),
    [
        (BLOCK, "block"),
        ("cloud.google.com/gce-topology-subblock", "subblock"),
        ("nvidia.com/gpu.clique", "NVLink domain"),
        ("network.topology.nvidia.com/leaf", "leaf"),
        ("node.coreweave.cloud/rack", "rack"),
        ("topology.k8s.aws/network-node-layer-3", "domain"),
        ("rack", "rack"),
    ],
)
def test_words_for_levels(level, word):
    assert level_word(level) == word


def started(document, plan, seconds_ago):
    """The job with the status that the operator writes."""
    at = (NOW - timedelta(seconds=seconds_ago)).isoformat()
    return {**document, "status": {"plan": story(plan, None), "observed": {"startTime": at}}}


def test_a_waiting_run_is_told_when_the_running_one_ends():
    nodes, first, second = h100(2), job("first", count=16), job("second", count=16)
    plan = plan_of(nodes, first)
    total = plan.chosen.total_seconds
    children = running(nodes, first)
    seen = observed(nodes, started(first, plan, total - 2400.0), second, children=children)
    found = decide(seen, TABLES, Settings(), CALIBRATION, NOW).outcomes[key("second")]
    assert "largest blocker: job research/first (16), ends in about 40 min" in found.reason


def test_a_reason_stays_the_same_while_nothing_happens():
    """Each new text is a write to the API server: a few while hours go by, not one each second."""
    nodes, first = h100(2), job("first", count=16)
    plan = plan_of(nodes, first)
    seen = observed(
        nodes, started(first, plan, 0.0), job("second", count=16), children=running(nodes, first)
    )
    reasons, memo = [], Memo()
    for passed in range(0, int(plan.chosen.total_seconds), 120):
        now = NOW + timedelta(seconds=passed)
        outcomes = decide(seen, TABLES, Settings(), CALIBRATION, now, memo).outcomes
        outcome = outcomes[key("second")]
        assert isinstance(outcome, Plan) and outcome.chosen
        reasons.append(outcome.chosen.reason)
    assert len(reasons) > 40
    changes = sum(one != other for one, other in itertools.pairwise(reasons))
    assert 2 <= changes == len(set(reasons)) - 1 <= 8


def test_a_service_waits_with_the_same_words():
    nodes, first = h100(1), job("first", count=8)
    seen = observed(nodes, first, service(), children=running(nodes, first))
    outcomes = decide(seen, TABLES, Settings(), CALIBRATION, NOW).outcomes
    told = outcomes[key("chat", Kind.INFERENCE_SERVICE)].reason
    assert "0 of 8 are free, needs 1; largest blocker: job research/first (8)" in told
