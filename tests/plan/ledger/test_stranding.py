"""Nodes whose accelerators would be left without cores or memory are filled last."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from poolwise.plan.decision import Key, Kind
from poolwise.plan.ledger.capacity import Gang, ledger
from poolwise.plan.ledger.stranding import Mean
from poolwise.plan.pool import Node, Pool

KEY = Key(Kind.TRAINING_JOB, "default", "x")


def pool(*nodes: Node) -> Pool:
    return Pool(
        name="p",
        is_discovered=True,
        accelerator=None,
        resource="nvidia.com/gpu",
        machine=None,
        nodes=nodes,
        accelerators_per_node=8,
        node_selector={},
        tolerations=(),
        price=None,
        capacity_type="OnDemand",
        role=None,
    )


def test_a_pod_that_takes_many_cores_goes_where_there_are_many() -> None:
    found = pool(Node("lean", {}, 4, 32.0, 1e12), Node("rich", {}, 8, 256.0, 1e12))
    book = ledger([found], {})
    hungry = Gang(1, 1, cores=30.0, packs=True)
    typical = Gang(1, 1, cores=8.0, packs=True)
    first = book.fit(found, typical)
    assert first == {"lean": 1}, "the smallest node that takes it, as long as nothing strands"
    book = book.with_claim(typical.claim(KEY, "p", first))
    assert book.fit(found, hungry) == {"rich": 1}


def test_without_cores_and_memory_the_fullest_node_comes_first() -> None:
    found = pool(Node("a", {}, 8, 8.0, 1e12), Node("b", {}, 4, 0.0, 0.0))
    assert ledger([found], {}).fit(found, Gang(1, 1, packs=True)) == {"b": 1}


def test_what_is_stranded() -> None:
    mean = Mean.of(10, 80.0, 100.0)
    assert mean.stranded(4, 32.0, 40.0) == 0.0
    assert mean.stranded(4, 8.0, 40.0) == 3.0
    assert mean.stranded(4, 32.0, 5.0) == 3.5
    assert mean.stranded(4, -1.0, 40.0) == 4.0
    assert Mean.of(10, 0.0, 0.0).stranded(4, 1.0, 1.0) == 0.0


amounts = st.floats(0.0, 1e6)


@given(st.integers(0, 16), amounts, amounts, st.integers(1, 100), amounts, amounts)
def test_what_is_stranded_is_a_part_of_what_is_free(
    free: int, cores: float, memory: float, held: int, held_cores: float, held_memory: float
) -> None:
    stranded = Mean.of(held, held_cores, held_memory).stranded(free, cores, memory)
    assert 0.0 <= stranded <= free
    assert not math.isnan(stranded)
