from __future__ import annotations

from typing import Any

import pytest

from poolwise.plan.pool import Pool
from tests.plan.nodes_given import H100, all_pools, condition, declared, node, only_pool

L4 = {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.count": "8"}
GROUP = {"group": "a"}
NODES = [node(f"n{index}", H100 | GROUP, gpus=8) for index in range(2)]


def by_name(pools: tuple[Pool, ...]) -> dict[str, Pool]:
    return {pool.name: pool for pool in pools}


def test_a_declared_pool_takes_its_facts_from_its_nodes() -> None:
    pool = only_pool(NODES, [declared("mine", nodeSelector=GROUP)])
    assert (pool.name, pool.is_discovered) == ("mine", False)
    assert (pool.accelerator, pool.accelerators_per_node) == ("H100-SXM5-80GB", 8)
    assert pool.node_selector == GROUP
    assert condition(pool, "Ready")[:2] == (True, "NodesReady")


def test_what_the_spec_says_wins() -> None:
    spec: dict[str, Any] = {
        "nodeSelector": GROUP,
        "price": {"perNodeHour": "55.00"},
        "capacityType": "Reserved",
        "interconnect": {
            "intraNodeBytesPerSecond": "400G",
            "interNodeBytesPerSecond": "350G",
            "topologyKeys": ["rack"],
        },
        "storage": {"readBytesPerSecond": "10G", "modelLoadBytesPerSecond": "5G"},
        "nodeStartup": "4m",
        "maxNodes": 16,
        "allowedNamespaces": ["research"],
    }
    pool = only_pool(NODES, [declared("mine", **spec)])
    assert pool.machine is not None
    assert pool.machine.interconnect.intra_node_bytes_per_second == 400e9
    assert pool.machine.interconnect.inter_node_bytes_per_second == 350e9
    assert pool.machine.host.storage_read_bytes_per_second == 10e9
    assert pool.machine.host.model_load_bytes_per_second == 5e9
    assert pool.price is not None
    assert (pool.price.per_node_hour, pool.price.source) == (55.0, "spec.price")
    assert pool.capacity_type == "Reserved"
    assert pool.topology_keys == ("rack",)
    assert (pool.max_nodes, pool.node_startup_seconds) == (16, 240.0)
    assert pool.allowed_namespaces == ("research",)


def test_of_two_pools_that_select_a_node_the_older_has_it() -> None:
    younger = declared("a-younger", "2026-02-01T00:00:00Z", nodeSelector=GROUP)
    older = declared("z-older", "2026-01-01T00:00:00Z", nodeSelector=GROUP)
    found = by_name(all_pools(NODES, [younger, older]))
    assert [len(found[name].nodes) for name in ("z-older", "a-younger")] == [2, 0]
    status, reason, message = condition(found["a-younger"], "NodesExclusive")
    assert (status, reason) == (False, "NodesTaken")
    assert "2 nodes that it selects belong to the older z-older: n0, n1" in message
    assert condition(found["a-younger"], "Ready") == (False, "NodesTaken", message)
    none = {"NodesExclusive", "DevicesHealthy"} & {
        each.type for each in found["z-older"].conditions
    }
    assert not none


def test_a_pool_whose_nodes_an_older_one_has_is_what_these_are() -> None:
    """Not the one accelerator that a product's label alone promises."""
    selector = {**GROUP, "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    older = declared("older", "2026-01-01T00:00:00Z", nodeSelector=GROUP)
    younger = declared("younger", "2026-02-01T00:00:00Z", nodeSelector=selector, maxNodes=3)
    found = by_name(all_pools(NODES[:1], [older, younger]))
    mine, theirs = found["younger"], found["older"]
    assert (len(mine.nodes), mine.accelerators_per_node) == (0, theirs.accelerators_per_node)
    assert (mine.accelerator, mine.price) == (theirs.accelerator, theirs.price)
    _, _, message = condition(mine, "Ready")
    assert message == "1 node that it selects belongs to the older older: n0; it can grow to 3"


def test_a_spec_that_can_be_used_is_accepted() -> None:
    found = all_pools([*NODES, node("other", L4)], [declared("mine", nodeSelector=GROUP)])
    told = [condition(pool, "Accepted") for pool in found]
    assert told == [(True, "Valid", "the spec can be used")] * 2


def test_nodes_that_no_person_selects_are_discovered() -> None:
    rest = node("other", L4, gpus=8)
    found = all_pools([*NODES, rest], [declared("mine", nodeSelector=GROUP)])
    assert [(pool.is_discovered, pool.accelerator) for pool in found] == [
        (False, "H100-SXM5-80GB"),
        (True, "L4"),
    ]


def test_pools_that_poolwise_discovered_are_not_read_back() -> None:
    mirrored = declared("h100-sxm5-80gb-8-12345", nodeSelector=GROUP)
    mirrored["metadata"]["labels"] = {"poolwise.dev/discovered": "true"}
    assert only_pool(NODES, [mirrored]).is_discovered


def test_a_discovered_pool_never_takes_a_declared_name() -> None:
    taken = only_pool(NODES).name
    found = all_pools(NODES, [declared(taken, nodeSelector={"group": "none"}, accelerator="L4")])
    assert len({pool.name for pool in found}) == 2


@pytest.mark.parametrize(
    "labels",
    [{}, {"nvidia.com/gpu.product": "NVIDIA-Z9000"}, L4 | {"nvidia.com/gpu.memory": "81559"}],
    ids=["none", "unknown", "conflicting"],
)
def test_naming_the_accelerator_helps_where_labels_fail(labels: dict[str, str]) -> None:
    nodes = [node("n", labels | GROUP, gpus=8)]
    assert only_pool(nodes, [declared("mine", nodeSelector=GROUP)]).machine is None
    named = declared("mine", nodeSelector=GROUP, accelerator="h100-sxm5-80gb")
    pool = only_pool(nodes, [named])
    assert (pool.accelerator, len(pool.usable_nodes)) == ("H100-SXM5-80GB", 1)
    assert condition(pool, "HardwareKnown") == (True, "Known", "H100-SXM5-80GB: spec.accelerator")


def test_a_person_is_believed_against_labels_and_told_so() -> None:
    nodes = [node("a", H100, gpus=8), node("b", {"nvidia.com/gpu.product": "NVIDIA-L40S"}, gpus=8)]
    linux = {"kubernetes.io/os": "linux"}
    pool = only_pool(nodes, [declared("p", nodeSelector=linux, accelerator="H100-SXM5-80GB")])
    told = "H100-SXM5-80GB: spec.accelerator, though by its labels b is L40S"
    assert condition(pool, "HardwareKnown") == (True, "Known", told)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("H1000-SXM5", "did you mean H100-SXM5-80GB"),
        ("H100-SMX5", "did you mean H100-SXM5-80GB"),
        ("h200", "did you mean H200-SXM-141GB or H200-NVL-141GB?"),
        ("abacus", "'abacus' is not in the shipped table"),
        ("B9999", "'B9999' is not in the shipped table: it has names such as H100-SXM5-80GB"),
        ("CPU", "'CPU' is not in the shipped table: leave it out where the nodes have no"),
        ("H100-SXM5-80GB-MIG-9g.10gb", "cannot be cut into '9g.10gb'"),
    ],
)
def test_an_accelerator_that_nobody_knows_is_said(name: str, words: str) -> None:
    pool = only_pool(NODES, [declared("mine", nodeSelector=GROUP, accelerator=name)])
    status, reason, message = condition(pool, "HardwareKnown")
    assert (status, reason) == (False, "UnknownAccelerator")
    assert words in message
    assert pool.machine is None


def test_a_mig_slice_can_be_named() -> None:
    nodes = [node("n", GROUP, resources={"nvidia.com/mig-1g.10gb": "56"})]
    name = "H100-SXM5-80GB-MIG-1g.10gb"
    pool = only_pool(nodes, [declared("mine", nodeSelector=GROUP, accelerator=name)])
    assert (pool.accelerator, pool.is_mig) == (name, True)
    assert [each.accelerators for each in pool.usable_nodes] == [56]


def test_a_cpu_can_be_named() -> None:
    nodes = [node("n", GROUP)]
    pool = only_pool(nodes, [declared("mine", nodeSelector=GROUP, accelerator="Xeon-8592+")])
    assert pool.accelerator == "CPU"
    assert pool.machine is not None
    assert pool.machine.device.name == "Xeon-8592+"
    assert len(pool.usable_nodes) == 1


def test_nodes_of_different_kinds_are_not_averaged() -> None:
    nodes = [*NODES, node("odd", L4 | GROUP, gpus=8)]
    pool = only_pool(nodes, [declared("mine", nodeSelector=GROUP)])
    status, reason, message = condition(pool, "HardwareKnown")
    assert (status, reason) == (False, "ConflictingLabels")
    assert "H100-SXM5-80GB (n0, n1), L4 (odd)" in message


def test_nodes_whose_devices_go_by_another_name_are_not_made_one() -> None:
    """Pods ask for one resource: none of them would ever start on the other node."""
    odd = node("odd", GROUP, resources={"example.com/npu": "8"})
    spec = declared("mine", nodeSelector=GROUP, accelerator="H100-SXM5-80GB")
    pool = only_pool([*NODES, odd], [spec])
    status, reason, message = condition(pool, "HardwareKnown")
    assert (status, reason) == (False, "ConflictingLabels")
    told = "its nodes differ: example.com/npu (odd), nvidia.com/gpu (n0, n1); select them apart"
    assert message.endswith(told)


def test_a_node_that_contradicts_itself_does_not_stop_the_others() -> None:
    bad = node("bad", H100 | GROUP | {"nvidia.com/gpu.memory": "1000"}, gpus=8)
    pool = only_pool([*NODES, bad], [declared("mine", nodeSelector=GROUP)])
    assert [each.name for each in pool.usable_nodes] == ["n0", "n1"]
    assert "bad" in condition(pool, "HardwareKnown")[2]


def test_a_node_without_accelerators_yet_does_not_stop_the_others() -> None:
    """One that has just joined: its device plugin and its labels come minutes later."""
    pool = only_pool([*NODES, node("new", GROUP)], [declared("mine", nodeSelector=GROUP)])
    assert [each.name for each in pool.usable_nodes] == ["n0", "n1"]
    assert (pool.accelerator, pool.accelerators_per_node) == ("H100-SXM5-80GB", 8)
    told = "2 of 3 nodes can take work: new has no H100-SXM5-80GB"
    assert condition(pool, "Ready") == (True, "NodesReady", told)


def test_a_node_that_allocates_nothing_yet_does_not_stop_the_others() -> None:
    new = {"metadata": {"name": "new", "labels": {"kubernetes.io/arch": "amd64", **GROUP}}}
    pool = only_pool([node("n", GROUP), new], [declared("mine", nodeSelector=GROUP)])
    assert [each.name for each in pool.usable_nodes] == ["n"]
    assert pool.machine is not None
    assert (pool.machine.device.cores, pool.machine.host.cores) == (32, 64)
    told = "1 of 2 nodes can take work: new allocates no cpu and no memory"
    assert condition(pool, "Ready") == (True, "NodesReady", told)


def test_cpu_nodes_may_differ_and_the_weakest_counts() -> None:
    key = "node.kubernetes.io/instance-type"
    nodes = [
        node("strong", {key: "m7i.16xlarge"} | GROUP),
        node("weak", {key: "m6i.16xlarge"} | GROUP, resources={"cpu": "32", "memory": "64Gi"}),
    ]
    pool = only_pool(nodes, [declared("mine", nodeSelector=GROUP)])
    assert pool.machine is not None
    device = pool.machine.device
    assert (device.name, device.cores, device.memory_bytes) == ("Xeon-8375C", 16, 64 * 2**30)
    assert len(pool.usable_nodes) == 2


def test_a_pool_without_nodes_is_what_its_spec_promises() -> None:
    spec: dict[str, Any] = {
        "nodeSelector": {"pool": "h200"},
        "accelerator": "H200-SXM-141GB",
        "maxNodes": 4,
    }
    pool = only_pool([], [declared("later", **spec)])
    assert (pool.nodes, pool.accelerator, pool.accelerators_per_node) == ((), "H200-SXM-141GB", 8)
    assert pool.machine is not None
    assert pool.machine.host.cores > 0
    assert pool.resource == "nvidia.com/gpu"
    assert condition(pool, "Ready") == (
        False,
        "NoNodes",
        "no node carries pool=h200; it can grow to 4",
    )


def test_a_pool_without_nodes_is_what_its_selector_promises() -> None:
    selector = {"node.kubernetes.io/instance-type": "g6e.12xlarge"}
    pool = only_pool([], [declared("later", nodeSelector=selector, maxNodes=4)])
    assert (pool.accelerator, pool.accelerators_per_node) == ("L40S", 4)
    assert pool.machine is not None
    assert pool.machine.interconnect.inter_node_bytes_per_second == 12.5e9
    assert pool.machine.host.cores == 48
    assert pool.price is not None
    assert pool.price.per_node_hour == 10.49264


def test_a_pool_without_nodes_and_promises_is_unknown() -> None:
    pool = only_pool([], [declared("empty", nodeSelector={"pool": "nothing"})])
    assert condition(pool, "HardwareKnown")[:2] == (False, "UnknownHardware")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "spec.nodeSelector"),
        ({"nodeSelector": GROUP, "price": {"perNodeHour": "free"}}, "perNodeHour"),
        ({"nodeSelector": GROUP, "maxNodes": -1}, "maxNodes"),
        ({"nodeSelector": GROUP, "interconnect": {"interNodeBytesPerSecond": "-1"}}, "must be"),
    ],
    ids=str,
)
def test_a_spec_that_slipped_through_admission_stops_nobody_else(
    spec: dict[str, Any], words: str
) -> None:
    found = by_name(all_pools(NODES, [declared("bad", **spec)]))
    status, reason, message = condition(found.pop("bad"), "Accepted")
    assert (status, reason) == (False, "InvalidSpec")
    assert words in message
    (rest,) = found.values()
    assert len(rest.usable_nodes) == 2


def test_a_price_in_another_currency_is_not_mixed_in() -> None:
    spec: dict[str, Any] = {
        "nodeSelector": GROUP,
        "price": {"perNodeHour": "55", "currency": "EUR"},
    }
    assert only_pool(NODES, [declared("mine", **spec)]).price is None
    assert only_pool(NODES, [declared("mine", **spec)], currency="EUR").price is not None


@pytest.mark.parametrize("named", ["MI300X", "EPYC-9R14"])
def test_nobody_makes_one_makers_device_another_by_its_name(named: str) -> None:
    """A misspelt pool would start images of ROCm, or of CPUs, on NVIDIA's devices."""
    pool = only_pool(NODES, [declared("mine", nodeSelector=GROUP, accelerator=named)])
    status, reason, message = condition(pool, "HardwareKnown")
    assert (status, reason) == (False, "ConflictingLabels")
    assert f"{named}, but the node offers nvidia.com/gpu" in message
