"""Pools that a workload cannot tell apart are judged once, and as if each was the only one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from poolwise.model.hardware import Host
from poolwise.plan.candidates.alike import felt
from poolwise.plan.candidates.assessment import candidates
from poolwise.plan.candidates.situation import Situation
from poolwise.plan.decision import Kind
from poolwise.plan.learning.corrections import Corrections
from poolwise.plan.ledger.capacity import ledger
from poolwise.plan.ledger.capacity_pods import Usage
from poolwise.plan.memo import Memo
from poolwise.plan.pool import Node, Pool, Price
from poolwise.plan.requests.reading import workload
from poolwise.plan.requests.request import PodResources, Request, Where
from poolwise.settings import Settings
from tests.plan.cluster_given import NOW, job, service
from tests.plan.ledger.test_capacity import GPU, pool
from tests.plan.machines import CALIBRATION, TABLES, machine

H100, L40S = "H100-SXM5-80GB", "L40S"


def one(name: str, accelerator: str = H100, network: float = 400e9, **more: Any) -> Pool:
    nodes = tuple(Node(f"{name}-{index}", {}, 8, 96.0, 1e12) for index in range(2))
    found: Pool = pool(*nodes, name=name, accelerator=accelerator)
    where = machine(accelerator, network_bytes_per_second=network)
    priced = replace(found, machine=where, price=Price(90.0, "USD", "test"))
    return replace(priced, **more)


def to_come(found: Pool) -> Pool:
    return replace(found, nodes=tuple(replace(node, is_to_come=True) for node in found.nodes))


def growing(found: Pool) -> Pool:
    """One of its nodes is there, the other is still to come."""
    there, other = found.nodes
    return replace(found, nodes=(there, replace(other, is_to_come=True)))


def with_less_storage(found: Pool) -> Pool:
    assert found.machine is not None
    return replace(found, machine=replace(found.machine, host=Host(8, 1e12, 1e8, 1e8, 1e8)))


def telling(found: Pool, **more: Any) -> Pool:
    return replace(found, nodes=tuple(replace(node, **more) for node in found.nodes))


BUSY = {"busy-0": Usage({GPU: 8}), "busy-1": Usage({GPU: 7})}
HCA = "rdma/hca"
CROWDED = {"crowded-0": Usage({GPU: 0}, cores=90.0), "crowded-1": Usage({GPU: 0}, cores=90.0)}
HELD = {"held-0": Usage({HCA: 1}), "held-1": Usage({HCA: 1})}
POOLS = [
    one("first"),
    one("second", network=50e9),
    one("busy"),
    one("crowded"),
    one("dear", price=None),
    one("other", accelerator=L40S),
    one("spot", capacity_type="Spot"),
    one("linked", link_level="rack"),
    to_come(one("coming")),
    growing(one("growing")),
    with_less_storage(one("slow")),
    telling(one("rdma"), others={HCA: 1.0}),
    telling(one("held"), others={HCA: 1.0}),
    telling(one("few"), most_pods=4),
]
RUN = {"globalBatchSize": 256, "sequenceLength": 4096, "tokens": "1G"}


def request(document: dict[str, Any]) -> Request:
    return workload(document, Kind(document["kind"]), TABLES, Settings(), {}).request


REQUESTS = {
    "chat": request(service()),
    "one node": request(job(count=8)),
    "two nodes": request(job(count=16)),
    "any": request(job(accelerators={"min": 1, "max": 16})),
    "too many": request(service(requests_per_second="2000")),
    "too large": request(service(scaling={"minReplicas": 40, "maxReplicas": 50})),
    "too expensive": request(job(count=4, objective={"maxCost": "0.01"})),
    "reads": request(job(count=4, data={"bytesPerSample": "100k"}, training=RUN)),
}


def situation(pools: list[Pool]) -> Situation:
    book = ledger(pools, {**BUSY, **CROWDED, **HELD})
    return Situation(book, CALIBRATION, Memo(), Settings(), NOW, Corrections())


@pytest.mark.parametrize(
    "pod",
    [PodResources(), PodResources(cores=20.0), PodResources(others=((HCA, 1.0),))],
    ids=["accelerators", "cores", "rdma"],
)
@pytest.mark.parametrize("name", REQUESTS)
def test_each_pool_is_judged_as_if_it_was_the_only_one(name: str, pod: PodResources) -> None:
    asked = replace(REQUESTS[name], pod=pod)
    together = candidates(asked, POOLS, situation(POOLS))
    alone = [candidates(asked, [each], situation(POOLS))[0] for each in POOLS]
    assert list(together) == alone


@pytest.mark.parametrize("name", ["chat", "one node"])
def test_what_stays_in_a_node_feels_neither_network_nor_storage(name: str) -> None:
    now, asked = situation(POOLS), REQUESTS[name]
    by_name = {each.name: felt(asked, each, now) for each in POOLS}
    assert by_name["first"] is not None
    assert {key for key, each in by_name.items() if each == by_name["first"]} == {
        "first", "second", "crowded", "slow", "rdma", "held",
    }  # fmt: skip
    assert [key for key, each in by_name.items() if each is None] == [
        "linked", "coming", "growing", "few",
    ]  # fmt: skip


def test_what_may_leave_its_node_feels_all_of_a_pool() -> None:
    now = situation(POOLS)
    assert {felt(REQUESTS[name], each, now) for name in ("two nodes", "any") for each in POOLS} == {
        None
    }


def test_cores_count_where_pods_ask_for_them() -> None:
    now, asked = situation(POOLS), replace(REQUESTS["chat"], pod=PodResources(cores=20.0))
    first, _, _, crowded, *_ = POOLS
    assert felt(asked, first, now) != felt(asked, crowded, now)


def test_other_resources_count_where_pods_ask_for_them() -> None:
    pod = PodResources(others=((HCA, 1.0),))
    now, asked = situation(POOLS), replace(REQUESTS["chat"], pod=pod)
    by_name = {each.name: felt(asked, each, now) for each in POOLS}
    assert by_name["first"] is None, "it has none, which is a reason of its own"
    assert by_name["rdma"] != by_name["held"]


def test_a_pool_that_is_named_is_judged_by_its_name() -> None:
    now, where = situation(POOLS), Where("default", exclude_pools=frozenset({"second"}))
    asked = replace(REQUESTS["chat"], where=where)
    first, second, *_ = candidates(asked, POOLS, now)
    assert first.feasible
    assert not second.feasible
