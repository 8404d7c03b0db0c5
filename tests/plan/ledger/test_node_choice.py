"""What others need stays whole: domains before nodes, and of neither more than must be."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.plan.decision import Candidate
from poolwise.plan.ledger.capacity import Gang, ledger
from poolwise.plan.ledger.capacity_pods import Usage
from poolwise.plan.ledger.node_choice import Breakage, kept_whole
from poolwise.plan.pool import Node, Pool
from poolwise.plan.requests.request import Goal
from poolwise.plan.selection.ranking import rank
from poolwise.plan.selection.ranking_words import judged
from tests.plan.cluster_given import foreign_pod, gpu_nodes, plan_of, service
from tests.plan.ledger.test_capacity import GPU, node, pool

CLIQUE, BLOCK = "nvidia.com/gpu.clique", "block"
EACH = 4
"""Accelerators per node."""


@st.composite
def clusters(draw, levels=(CLIQUE,)):
    """A pool of racks, some of them in use, with its ledger."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    nodes = [
        Node(f"r{rack}-{index}", {CLIQUE: f"r{rack}", BLOCK: f"b{rack // 2}"}, EACH, 64.0, 1e12)
        for rack, size in enumerate(sizes)
        for index in range(size)
    ]
    used = {
        each.name: Usage({GPU: count})
        for each in nodes
        if (count := draw(st.sampled_from([0, 0, 0, 1, 2, EACH])))
    }
    fabric = replace(pool(*nodes), topology_keys=levels, link_level=CLIQUE)
    return fabric, ledger([fabric], used)


whole_nodes = st.builds(
    Gang, pods=st.integers(1, 8), accelerators=st.just(EACH), one_per_node=st.just(True)
)
small = st.builds(
    Gang, pods=st.integers(1, 8), accelerators=st.sampled_from([1, 2, 4]), packs=st.just(True)
)
spread = st.builds(Gang, pods=st.integers(1, 8), accelerators=st.sampled_from([1, 2, 4]))


def slots(book, where: Pool, gang: Gang) -> Counter[str]:
    """Pods that each node takes."""
    found: Counter[str] = Counter()
    for each in where.nodes:
        free = book.rooms[each.name].accelerators[GPU]
        found[each.name] = min(free // gang.accelerators, 1 if gang.one_per_node else gang.pods)
    return found


def rack(name: str) -> str:
    return name.partition("-")[0]


def whole_racks(book, where: Pool) -> set[str]:
    free = {each.name: book.rooms[each.name].accelerators[GPU] for each in where.nodes}
    used = {rack(name) for name, left in free.items() if left < EACH}
    return {rack(each.name) for each in where.nodes} - used


@given(clusters(), whole_nodes | small)
def test_no_whole_domain_is_broken_while_a_broken_one_has_room(given_, gang):
    where, book = given_
    room, whole = slots(book, where, gang), whole_racks(book, where)
    chosen = book.fit(where, gang)
    has_room = sum(count for name, count in room.items() if rack(name) not in whole) >= gang.pods
    if has_room:
        assert chosen is not None
        assert not {rack(name) for name in chosen} & whole


@given(clusters(), whole_nodes | small | spread)
def test_room_is_found_wherever_there_is_some(given_, gang):
    where, book = given_
    room = slots(book, where, gang)
    chosen = book.fit(where, gang)
    assert (chosen is not None) == (room.total() >= gang.pods)
    if chosen:
        assert sum(chosen.values()) == gang.pods
        assert all(count <= room[name] for name, count in chosen.items())


@given(clusters(), spread)
def test_replicas_that_keep_apart_lose_no_node_for_it(given_, gang):
    where, book = given_
    chosen = book.fit(where, gang)
    if chosen:
        open_nodes = sum(count > 0 for count in slots(book, where, gang).values())
        assert len(chosen) == min(gang.pods, open_nodes)


@given(clusters(), whole_nodes)
def test_who_must_share_a_domain_shares_the_nearest_with_room(given_, gang):
    where, book = given_
    room = slots(book, where, gang)
    racks: Counter[str] = Counter()
    for name, count in room.items():
        racks[rack(name)] += count
    fitting = {name for name, count in racks.items() if count >= gang.pods}
    chosen = book.fit(where, gang, (CLIQUE,), must_share=True)
    assert (chosen is not None) == bool(fitting)
    if chosen:
        (found,) = {rack(name) for name in chosen}
        spares = [name for name in fitting - whole_racks(book, where)]
        assert not spares or found in spares or racks[found] == gang.pods


@given(clusters(), whole_nodes)
def test_who_fits_no_domain_gets_a_part_of_as_few_as_possible(given_, gang):
    where, book = given_
    racks: Counter[str] = Counter()
    for name, count in slots(book, where, gang).items():
        racks[rack(name)] += count
    chosen = book.fit(where, gang, (CLIQUE,))
    assert (chosen is not None) == (racks.total() >= gang.pods)
    if chosen:
        largest = sorted(racks.values(), reverse=True)
        least = next(n for n in range(len(largest) + 1) if sum(largest[:n]) >= gang.pods)
        assert len({rack(name) for name in chosen}) == least


@given(clusters(), whole_nodes | small | spread)
def test_what_breaks_is_what_was_whole_and_is_no_more(given_, gang):
    where, book = given_
    chosen = book.fit(where, gang)
    if not chosen:
        return
    broken = book.breaks(where, gang, chosen)
    before = whole_racks(book, where)
    taken: Counter[str] = Counter()
    for name, count in chosen.items():
        taken[rack(name)] += count * gang.accelerators
    total = Counter(rack(each.name) for each in where.nodes)
    left = {name: total[name] * EACH - taken[name] for name in before if taken[name]}
    assert broken.accelerators == sum(left.values())
    assert broken.domains == tuple(sorted(name for name, count in left.items() if count))


def racks_of(*sizes: int) -> Pool:
    nodes = (
        Node(f"r{rack}-{i}", {CLIQUE: f"r{rack}", BLOCK: "b"}, EACH, 64.0, 1e12)
        for rack, size in enumerate(sizes)
        for i in range(size)
    )
    found: Pool = pool(*nodes)
    return replace(found, topology_keys=(CLIQUE, BLOCK), link_level=CLIQUE)


def test_a_replica_on_a_whole_rack_says_what_it_costs_others():
    where = racks_of(18, 18)
    one = Gang(1, 1, packs=True)
    told = ledger([where], {}).breaks(where, one, {"r0-0": 1})
    assert told == Breakage(CLIQUE, ("r0",), 71)
    assert told.words() == (
        "breaks 1 whole domain of nvidia.com/gpu.clique: 71 other accelerators in it"
    )
    used = ledger([where], {"r0-1": Usage({GPU: 1})})
    assert used.fit(where, one) == {"r0-1": 1}
    assert used.breaks(where, one, {"r0-1": 1}).words() == ""


def test_a_domain_that_is_used_up_is_not_broken():
    where = racks_of(2, 4)
    gang = Gang(2, EACH, one_per_node=True)
    book = ledger([where], {})
    assert book.fit(where, gang, (CLIQUE,)) == {"r0-0": 1, "r0-1": 1}
    assert book.breaks(where, gang, {"r0-0": 1, "r0-1": 1}) == Breakage()


def test_a_gang_prefers_a_broken_domain_to_a_smaller_whole_one():
    where = racks_of(4, 8)
    book = ledger([where], {"r1-7": Usage({GPU: EACH})})
    chosen = book.fit(where, Gang(2, EACH, one_per_node=True), (CLIQUE,))
    assert chosen == {"r1-0": 1, "r1-1": 1}


def test_a_gang_prefers_a_domain_that_it_uses_up_to_a_broken_one_with_room():
    """Nothing whole is lost by it, and the other keeps its room for others."""
    where = racks_of(2, 4)
    book = ledger([where], {"r1-3": Usage({GPU: EACH})})
    chosen = book.fit(where, Gang(2, EACH, one_per_node=True), (CLIQUE,), must_share=True)
    assert chosen == {"r0-0": 1, "r0-1": 1}


def test_a_gang_of_two_racks_takes_two_racks_of_a_block():
    where = racks_of(3, 2, 3, 2)
    chosen = ledger([where], {}).fit(where, Gang(6, EACH, one_per_node=True), (CLIQUE, BLOCK))
    assert {rack(name) for name in chosen or {}} == {"r0", "r2"}


@pytest.mark.parametrize(
    ("keys", "labels", "level"),
    [
        ((), {}, ""),
        (("host", BLOCK), {"host": "{name}", BLOCK: "b"}, BLOCK),
        (("topology.kubernetes.io/zone",), {"topology.kubernetes.io/zone": "z"}, ""),
    ],
)
def test_which_level_is_kept_whole(keys, labels, level):
    nodes = [
        node(name, **{key: value.format(name=name) for key, value in labels.items()})
        for name in ("a", "b")
    ]
    assert kept_whole(replace(pool(*nodes), topology_keys=keys)) == level


def gb200(count: int, size: int) -> list[Any]:
    nodes: list[Any] = gpu_nodes("gb", count, "NVIDIA-GB200", per_node=4, cores=144)
    for index, each in enumerate(nodes):
        each["metadata"]["labels"][CLIQUE] = f"rack-{index // size}"
    return nodes


def test_a_replica_says_how_much_it_spoils() -> None:
    plan = plan_of(gb200(36, 18), service())
    assert plan.chosen.broken_accelerators == 72 - plan.chosen.count * plan.chosen.replicas
    assert "breaks 1 whole domain of nvidia.com/gpu.clique: " in plan.reason


def test_a_replica_on_a_rack_in_use_spoils_nothing() -> None:
    plan = plan_of(gb200(36, 18), service(), pods=[foreign_pod("gb-20", 1)])
    (name,) = plan.claim.accelerators_by_node
    assert name in {f"gb-{index}" for index in range(18, 36)}
    assert plan.chosen.broken_accelerators == 0
    assert "breaks" not in plan.reason


@pytest.mark.parametrize(
    ("broken", "cost", "winner"),
    [
        pytest.param(0, 1.2, "cheap", id="none breaks any"),
        pytest.param(71, 1.2, "dear", id="it is worth that much"),
        pytest.param(71, 1.4, "cheap", id="but not everything"),
    ],
)
def test_of_equals_the_one_that_breaks_nothing_is_taken(
    broken: int, cost: float, winner: str
) -> None:
    def candidate(pool: str, cost: float, spoilt: int) -> Candidate:
        return Candidate(
            pool=pool, accelerator="X", feasible=True, reason="", reason_code="Lost",
            total_cost=cost, total_seconds=100.0, objective_value=100.0, own_spread=0.1,
            broken_accelerators=spoilt,
        )  # fmt: skip

    pair = [candidate("cheap", 1.0, broken), candidate("dear", cost, 0)]
    ranking = rank(pair, Goal.TIME)
    assert ranking is not None
    assert ranking.winner.pool == winner
    told = {each.pool: each.reason for each in judged(pair, ranking, Goal.TIME, "USD")}
    assert ("would break a whole domain" in told["dear"]) == (winner == "dear")
