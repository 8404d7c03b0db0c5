from __future__ import annotations

import pytest

from e2e import profiles
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


PLATFORMS = {
    "gke": (
        H100,
        {
            "cloud.google.com/gce-topology-block": ["b0", "b0", "b0", "b1"],
            "cloud.google.com/gce-topology-subblock": ["s0", "s0", "s1", "s2"],
            "cloud.google.com/gce-topology-host": ["h0", "h1", "h2", "h3"],
        },
        ("host", "subblock", "block"),
    ),
    "aws-four-layers": (
        H100,
        {f"topology.k8s.aws/network-node-layer-{n}": ["nn"] * 4 for n in (1, 2, 3, 4)},
        ("layer-4", "layer-3", "layer-2", "layer-1"),
    ),
    "topograph": (
        H100,
        {f"fabric.topograph.run/tier-{n}": ["switch"] * 4 for n in (0, 1, 2, 10)},
        ("tier-0", "tier-1", "tier-2", "tier-10"),
    ),
    "older-topograph": (
        H100,
        {f"network.topology.nvidia.com/{name}": ["x"] * 4 for name in ("core", "spine", "leaf")},
        ("leaf", "spine", "core"),
    ),
    "topograph-on-aws": (
        H100,
        {
            "topology.k8s.aws/network-node-layer-1": ["a"] * 4,
            "topology.k8s.aws/network-node-layer-3": ["a", "b", "c", "d"],
            "fabric.topograph.run/tier-1": ["m", "m", "n", "n"],
        },
        ("layer-3", "tier-1", "layer-1"),
    ),
    "oke": (
        H100,
        {
            "oci.oraclecloud.com/host.network_block_id": ["n"] * 4,
            "oci.oraclecloud.com/host.rack_id": ["r0", "r0", "r1", "r1"],
            "oci.oraclecloud.com/rdma.local_block_id": ["l"] * 4,
            "oci.oraclecloud.com/rdma.hpc_island_id": ["i"] * 4,
        },
        ("rack_id", "local_block_id", "network_block_id", "hpc_island_id"),
    ),
    "aks": (
        H100,
        {
            "topology.kubernetes.io/zone": ["z"] * 4,
            "kubernetes.azure.com/ppg": ["p", "p", "q", "q"],
        },
        ("ppg", "zone"),
    ),
    "coreweave": (
        H100,
        {
            "ib.coreweave.cloud/fabric": ["f"] * 4,
            "ib.coreweave.cloud/superpod": ["1"] * 4,
            "backend.coreweave.cloud/leafgroup": ["1", "1", "2", "2"],
            "node.coreweave.cloud/rack": ["1", "2", "3", "4"],
        },
        ("rack", "leafgroup", "superpod", "fabric"),
    ),
    "crusoe": (
        H100,
        {
            "crusoe.ai/ib.partition.id": ["i"] * 4,
            "crusoe.ai/pod.id": ["p", "p", "q", "q"],
        },
        ("pod.id", "partition.id"),
    ),
    "zone-is-always-last": (
        H100,
        {
            "topology.kubernetes.io/zone": ["a", "b", "c", "d"],
            "kubernetes.azure.com/ppg": ["p"] * 4,
        },
        ("ppg", "zone"),
    ),
}


@pytest.mark.parametrize("name", PLATFORMS)
def test_levels_of_every_platform(name: str) -> None:
    own, columns, endings = PLATFORMS[name]
    labels = [{key: values[i] for key, values in columns.items()} for i in range(4)]
    pool = only_pool([node(f"n{i}", own | each, gpus=8) for i, each in enumerate(labels)])
    assert len(pool.topology_keys) == len(endings)
    for key, ending in zip(pool.topology_keys, endings, strict=True):
        assert key.endswith(ending)
    assert pool.link_level == ""


@pytest.mark.parametrize(
    ("key", "machine"),
    [
        ("nvidia.com/gpu.clique", None),
        ("accelerator.topograph.run/domain", None),
        ("network.topology.nvidia.com/accelerator", None),
        ("ds.coreweave.com/nvlink.domain", None),
        ("oci.oraclecloud.com/host.gpu_memory_fabric_id", "BM.GPU.GB200.4"),
        ("topology.k8s.aws/ultraserver-id", "p6e-gb200.36xlarge"),
        ("cloud.google.com/gce-topology-subblock", "a4x-highgpu-4g"),
        ("node.coreweave.cloud/rack", "gb200-4x"),
    ],
)
def test_a_rack_of_linked_nodes_is_known_as_such(key: str, machine: str | None) -> None:
    own = GB200 | ({MACHINE: machine} if machine else {})
    block = {"cloud.google.com/gce-topology-block": "b"}
    nodes = [node(f"n{i}", own | block | {key: f"r{i // 18}"}, gpus=4) for i in range(36)]
    pool = only_pool(nodes)
    assert pool.link_level == key == pool.topology_keys[0]
    assert pool.machine is not None
    assert pool.machine.interconnect.domain_accelerators == 72


def test_a_clique_of_hardware_whose_link_ends_at_the_node_is_no_level() -> None:
    """Drivers report one on HGX boards too, the same for every node."""
    pool = only_pool([node(f"n{i}", H100 | {"nvidia.com/gpu.clique": "0"}, gpus=8) for i in (0, 1)])
    assert (pool.topology_keys, pool.link_level) == ((), "")


@pytest.mark.parametrize(("size", "found"), [(18, "rack"), (36, "")])
def test_a_level_that_a_person_lists_is_the_link_only_if_it_is_no_larger(
    size: int, found: str
) -> None:
    nodes = [node(f"n{i}", GB200 | {"rack": f"r{i // size}"}, gpus=4) for i in range(36)]
    given = declared(
        "nvl",
        nodeSelector={"nvidia.com/gpu.product": "NVIDIA-GB200"},
        interconnect={"topologyKeys": ["rack"]},
    )
    pool = only_pool(nodes, [given])
    assert (pool.topology_keys, pool.link_level) == (("rack",), found)


def test_a_node_that_joins_without_labels_takes_no_level_away() -> None:
    key = "cloud.google.com/gce-topology-block"
    old = [node(f"n{i}", H100 | {key: "x"}, gpus=8) for i in range(3)]
    assert only_pool([*old, node("new", H100, gpus=8)]).topology_keys == (key,)


def test_slices_of_tpu_hosts_are_node_pools() -> None:
    labels = {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "4x4",
        MACHINE: "ct5lp-hightpu-4t",
    }
    key = "cloud.google.com/gke-nodepool"
    nodes = [
        node(f"n{i}", labels | {key: "slice"}, resources={"google.com/tpu": "4"}) for i in range(4)
    ]
    assert only_pool(nodes).link_level == key


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


@pytest.mark.parametrize(
    ("profile", "endings"),
    [
        ("gke-a3-g2", ("host", "subblock", "block", "zone")),
        ("eks-p5-g6", ("layer-3", "layer-2", "layer-1", "zone")),
        ("bare-h200-l40s", ("leaf", "spine", "core")),
        ("aks-nd", ("zone",)),
    ],
)
def test_levels_of_the_largest_pool_of_a_profile(profile: str, endings: tuple[str, ...]) -> None:
    pools = all_pools(profiles.render(profile))
    largest = max(pools, key=lambda pool: (len(pool.nodes) * pool.accelerators_per_node, pool.name))
    assert [key.rpartition("-")[2].rpartition("/")[2] for key in largest.topology_keys] == [
        ending.rpartition("-")[2] for ending in endings
    ]
