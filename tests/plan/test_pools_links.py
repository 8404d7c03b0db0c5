from __future__ import annotations

import pytest

from poolwise.model.hardware import Interconnect
from tests.plan.nodes_given import H100, all_pools, declared, node, only_pool

MACHINE = "node.kubernetes.io/instance-type"
GB200 = {"nvidia.com/gpu.product": "NVIDIA-GB200", "nvidia.com/gpu.count": "4"}
L40S = {"nvidia.com/gpu.product": "NVIDIA-L40S"}


def link(labels: dict[str, str], gpus: int = 8, **resources: str) -> Interconnect:
    pool = only_pool([node("n", labels, gpus=gpus, resources=resources)])
    assert pool.machine is not None
    return pool.machine.interconnect


@pytest.mark.parametrize(
    ("labels", "gigabytes_per_second", "source"),
    [
        (H100 | {MACHINE: "p5.48xlarge"}, 400, "machine type p5.48xlarge"),
        (H100, 12.5, "assumed: 100 GbE beside NVLink4+NVSwitch3 (NVLS/SHARP)"),
        (
            H100 | {"feature.node.kubernetes.io/rdma.available": "true"},
            200,
            "assumed: RDMA devices, 200 Gbit/s per accelerator",
        ),
        (
            H100 | {"karpenter.k8s.aws/instance-network-bandwidth": "100000"},
            12.5,
            "label karpenter.k8s.aws/instance-network-bandwidth",
        ),
        (L40S, 3.125, "assumed: 25 GbE"),
    ],
    ids=["table", "switched", "rdma", "label", "plain"],
)
def test_the_network_of_a_node(
    labels: dict[str, str], gigabytes_per_second: float, source: str
) -> None:
    pool = only_pool([node("n", labels, gpus=8)])
    assert pool.machine is not None
    found = pool.machine.interconnect.inter_node_bytes_per_second
    assert found == pytest.approx(gigabytes_per_second * 1e9)
    assert pool.discovered["interNode"] == source


def test_rdma_resources_tell_of_a_fabric_too() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H200"}
    pool = only_pool([node("n", labels, gpus=8, resources={"rdma/ib": "8"})])
    assert "RDMA" in pool.discovered["interNode"]


def test_links_inside_a_node_are_the_accelerators() -> None:
    assert link(H100).intra_node_bytes_per_second == 450e9
    assert link(H100).is_switched
    assert link(L40S).intra_node_bytes_per_second == 32e9
    assert not link(L40S).is_switched


def test_a_mesh_gives_one_peer_less_than_all() -> None:
    pool = only_pool([node("n", {"amd.com/gpu.device-id": "74a1"}, resources={"amd.com/gpu": "8"})])
    assert pool.machine is not None
    found = pool.machine.interconnect
    assert (found.intra_node_bytes_per_second, found.peer_bytes_per_second) == (448e9, 64e9)


def test_a_bridge_of_the_machine_type_joins_pairs() -> None:
    found = link({MACHINE: "Standard_NC96ads_A100_v4"}, gpus=4)
    assert (found.intra_node_bytes_per_second, found.is_switched) == (300e9, True)
    assert found.domain_accelerators == 2


@pytest.mark.parametrize(
    ("cliques", "domain"),
    [(["a"] * 18, 72), (["a"] * 10 + ["b"] * 8, 40), ([""] * 18, 72), ([""] * 4, 16)],
    ids=["rack", "two-cliques", "unlabelled-rack", "part"],
)
def test_a_rack_is_one_domain_as_far_as_it_is_there(cliques: list[str], domain: int) -> None:
    labels = [GB200 | ({"nvidia.com/gpu.clique": clique} if clique else {}) for clique in cliques]
    pool = only_pool([node(f"n{i}", each, gpus=4) for i, each in enumerate(labels)])
    assert pool.machine is not None
    assert pool.machine.interconnect.domain_accelerators == domain


def test_a_tpu_slice_is_as_large_as_its_topology() -> None:
    labels = {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "4x4",
        MACHINE: "ct5lp-hightpu-4t",
    }
    pool = only_pool([node(f"n{i}", labels, resources={"google.com/tpu": "4"}) for i in range(4)])
    assert pool.machine is not None
    assert pool.machine.interconnect.domain_accelerators == 16


def test_hosts_count_what_the_smallest_node_gives() -> None:
    small = node("small", H100, gpus=8, resources={"cpu": "48"})
    pool = only_pool([node("large", H100, gpus=8), small])
    assert pool.machine is not None
    assert pool.machine.host.cores == 48


def test_levels_of_the_fabric_are_nearest_first() -> None:
    fabric = {
        "topology.k8s.aws/network-node-layer-1": "spine",
        "topology.k8s.aws/network-node-layer-3": "leaf",
        "topology.k8s.aws/network-node-layer-2": "middle",
    }
    pool = only_pool([node("n", H100 | fabric, gpus=8)])
    assert [key[-1] for key in pool.topology_keys] == ["3", "2", "1"]


def test_a_level_that_some_node_lacks_is_none() -> None:
    key = "cloud.google.com/gce-topology-block"
    nodes = [node("a", H100 | {key: "x"}, gpus=8), node("b", H100, gpus=8)]
    assert only_pool(nodes).topology_keys == ()


def test_declared_figures_replace_assumed_ones() -> None:
    given = {"interNodeBytesPerSecond": "400G"}
    selector = {"nvidia.com/gpu.count": "8"}
    nodes = [node("n", H100, gpus=8)]
    (pool,) = all_pools(nodes, [declared("ib", nodeSelector=selector, interconnect=given)])
    assert pool.discovered["interNode"] == "spec.interconnect"
    assert pool.role == "Interconnect"
