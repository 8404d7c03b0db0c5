"""The ledger never promises a node twice, and finds room where there is room."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.plan.decision import Key, Kind
from poolwise.plan.ledger.capacity import Gang, Ledger, ledger
from poolwise.plan.ledger.capacity_pods import Usage
from poolwise.plan.pool import Node, Pool

GPU = "nvidia.com/gpu"


def key(name="a"):
    return Key(Kind.TRAINING_JOB, "research", name)


def node(name, accelerators=8, cores=96.0, memory_bytes=1e12, unusable=None, **labels):
    return Node(name, labels, accelerators, cores, memory_bytes, unusable)


def pool(*nodes, name="h100", resource=GPU, accelerator="H100-SXM5-80GB"):
    return Pool(
        name=name,
        is_discovered=True,
        accelerator=accelerator,
        resource=resource,
        machine=None,
        nodes=nodes,
        accelerators_per_node=max((n.accelerators for n in nodes), default=0),
        node_selector={},
        tolerations=(),
        price=None,
        capacity_type="OnDemand",
        role=None,
    )


def empty(*pools):
    return ledger(pools, {})


def place(book: Ledger, where: Pool, gang: Gang, name="a", levels=()):
    chosen = book.fit(where, gang, levels)
    assert chosen is not None
    return book.with_claim(gang.claim(key(name), where.name, chosen))


WHOLE = Gang(pods=2, accelerators=8, one_per_node=True)


def test_whole_nodes_are_taken_once():
    where = pool(node("a"), node("b"), node("c"))
    book = place(empty(where), where, WHOLE)
    assert book.free(where) == 8
    assert book.fit(where, WHOLE) is None


def test_claim_given_back_is_free_again():
    where = pool(node("a"), node("b"))
    book = place(empty(where), where, WHOLE)
    assert book.without_claim(book.claims[0]) == empty(where)


def test_unusable_nodes_are_no_capacity():
    where = pool(node("a"), node("b", unusable="cordoned"))
    assert empty(where).free(where) == 8
    assert empty(where).total(where) == 8


def test_foreign_pods_are_subtracted():
    where = pool(node("a"), node("b"))
    book = ledger([where], {"a": Usage({GPU: 3}), "elsewhere": Usage({GPU: 8})})
    assert book.free(where) == 13
    assert book.fit(where, WHOLE) is None


def test_lost_devices_never_count_as_free():
    where = pool(node("a", accelerators=6), node("b"))
    book = ledger([where], {"a": Usage({GPU: 8})})
    assert book.free(where) == 8


def test_part_of_a_node_goes_where_least_is_left():
    where = pool(node("a"), node("b"))
    book = ledger([where], {"b": Usage({GPU: 4})})
    assert book.fit(where, Gang(pods=1, accelerators=2)) == {"b": 1}


def test_replicas_spread_over_nodes():
    where = pool(node("a"), node("b"))
    assert empty(where).fit(where, Gang(pods=4, accelerators=1)) == {"a": 2, "b": 2}


def test_packing_replicas_leave_whole_nodes_whole():
    where = pool(node("a"), node("b"), node("c"), node("d"))
    book = ledger([where], {"c": Usage({GPU: 6})})
    replicas = Gang(pods=4, accelerators=1, packs=True)
    assert book.fit(where, replicas) == {"c": 2, "a": 2}
    assert place(book, where, replicas).fit(where, WHOLE) == {"b": 1, "d": 1}


def test_packing_finds_room_wherever_there_is_some():
    where = pool(node("a"), node("b"))
    assert empty(where).fit(where, Gang(16, 1, packs=True)) == {"a": 8, "b": 8}
    assert empty(where).fit(where, Gang(17, 1, packs=True)) is None


def test_replicas_share_a_node_when_there_is_only_one():
    where = pool(node("a"))
    assert empty(where).fit(where, Gang(pods=4, accelerators=2)) == {"a": 4}


@pytest.mark.parametrize(
    ("gang", "fits"),
    [
        pytest.param(Gang(2, 0, cores=40.0, memory_bytes=1e9), True, id="fits"),
        pytest.param(Gang(3, 0, cores=40.0, memory_bytes=1e9), False, id="cores"),
        pytest.param(Gang(2, 0, cores=1.0, memory_bytes=6e11), False, id="memory"),
    ],
)
def test_cores_and_memory_are_capacity_too(gang, fits):
    where = pool(node("a", accelerators=0), name="cpu", resource=None, accelerator="CPU")
    assert (empty(where).fit(where, gang) is not None) == fits


def test_a_third_of_a_core_three_times_is_a_core():
    where = pool(node("a", 0, cores=1.0), name="cpu", resource=None, accelerator="CPU")
    assert empty(where).fit(where, Gang(3, 0, cores=1 / 3)) == {"a": 3}


def test_gang_prefers_one_domain_and_the_tightest():
    where = pool(
        node("a", rack="r1"), node("b", rack="r1"), node("c", rack="r1"),
        node("d", rack="r2"), node("e", rack="r2"), node("f", rack="r3"),
    )  # fmt: skip
    assert empty(where).fit(where, WHOLE, ["rack"]) == {"d": 1, "e": 1}


def test_gang_crosses_domains_rather_than_wait():
    where = pool(node("a", rack="r1"), node("b", rack="r2"))
    assert empty(where).fit(where, WHOLE, ["rack"]) == {"a": 1, "b": 1}


def test_slices_and_whole_devices_of_one_node_share_its_cores():
    whole = pool(node("a", accelerators=4, cores=8.0))
    slices = pool(node("a", accelerators=7, cores=8.0), name="mig", resource="nvidia.com/mig-1g")
    book = place(empty(whole, slices), whole, Gang(1, 2, cores=6.0))
    assert (book.free(whole), book.free(slices)) == (2, 7)
    assert book.fit(slices, Gang(1, 1, cores=4.0)) is None
    assert book.fit(slices, Gang(1, 1, cores=2.0)) == {"a": 1}


gangs = st.builds(
    Gang,
    pods=st.integers(1, 5),
    accelerators=st.integers(0, 8),
    cores=st.sampled_from([0.0, 1.0, 7.5, 32.0]),
    memory_bytes=st.sampled_from([0.0, 1e9, 3e11]),
    one_per_node=st.booleans(),
    packs=st.booleans(),
)
operations = st.lists(st.tuples(gangs, st.booleans()), max_size=30)


@given(operations, st.lists(st.integers(0, 8), min_size=1, max_size=4))
def test_no_order_of_claims_and_releases_exceeds_a_node(steps, sizes):
    where = pool(*(node(f"n{i}", size) for i, size in enumerate(sizes)))
    book = empty(where)
    for gang, gives_back in steps:
        if gives_back and book.claims:
            book = book.without_claim(book.claims[0])
        chosen = book.fit(where, gang)
        if chosen is not None:
            assert sum(chosen.values()) == gang.pods
            assert not gang.one_per_node or max(chosen.values()) == 1
            book = book.with_claim(gang.claim(key(), where.name, chosen))
        assert_within_nodes(book, where)


def assert_within_nodes(book, where):
    held: Counter[str] = Counter()
    cores: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    for claim in book.claims:
        held.update(claim.accelerators_by_node)
        cores.update(claim.cores_by_node)
        memory.update(claim.memory_bytes_by_node)
    for each in where.nodes:
        assert held[each.name] <= each.accelerators
        assert cores[each.name] <= each.cores * (1 + 1e-5)
        assert memory[each.name] <= each.memory_bytes * (1 + 1e-5)
    assert book.free(where) == book.total(where) - held.total()
