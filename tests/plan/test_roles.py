from __future__ import annotations

import pytest

from poolwise.plan.pools.roles import INTER_BYTES_PER_FLOP, INTRA_BYTES_PER_FLOP, links
from tests.plan.nodes_given import all_pools, node, only_pool

MACHINE = "node.kubernetes.io/instance-type"


def test_thresholds_are_those_of_the_reference_work() -> None:
    assert pytest.approx(1.9e-4, rel=0.01) == INTRA_BYTES_PER_FLOP
    assert pytest.approx(1.02e-5, rel=0.01) == INTER_BYTES_PER_FLOP


@pytest.mark.parametrize(
    ("machine", "resource", "count", "role"),
    [
        ("p5.48xlarge", "nvidia.com/gpu", 8, "Interconnect"),
        ("p4d.24xlarge", "nvidia.com/gpu", 8, "Interconnect"),
        ("a3-highgpu-8g", "nvidia.com/gpu", 8, "Interconnect"),
        ("BM.GPU.MI300X.8", "amd.com/gpu", 8, "Interconnect"),
        ("p6e-gb200.36xlarge", "nvidia.com/gpu", 4, "Interconnect"),
        ("trn1.32xlarge", "aws.amazon.com/neuron", 16, "Interconnect"),
        ("a2-highgpu-8g", "nvidia.com/gpu", 8, "Balanced"),
        ("p3.16xlarge", "nvidia.com/gpu", 8, "Balanced"),
        ("g5.48xlarge", "nvidia.com/gpu", 8, "MemoryBandwidth"),
        ("g6.xlarge", "nvidia.com/gpu", 1, "MemoryBandwidth"),
        ("g6e.48xlarge", "nvidia.com/gpu", 8, "MemoryBandwidth"),
        ("g4dn.12xlarge", "nvidia.com/gpu", 4, "MemoryBandwidth"),
    ],
)
def test_roles_of_published_machines(machine: str, resource: str, count: int, role: str) -> None:
    nodes = [node(f"n{i}", {MACHINE: machine}, resources={resource: str(count)}) for i in range(4)]
    pool = only_pool(nodes)
    assert pool.role == role
    assert "bytes per FLOP" in pool.role_reason


def test_pcie_is_shared_by_all_that_talk() -> None:
    (four,) = all_pools([node("n", {MACHINE: "g6e.12xlarge"}, gpus=4)])
    (eight,) = all_pools([node("n", {MACHINE: "g6e.48xlarge"}, gpus=8)])
    assert four.machine is not None
    assert eight.machine is not None
    assert links(four.machine).intra == pytest.approx(2 * links(eight.machine).intra)


def test_bandwidth_is_compared_by_its_price() -> None:
    h100 = node("a", {MACHINE: "p5.48xlarge"}, gpus=8)
    a10g = node("b", {MACHINE: "g5.xlarge"}, gpus=1)
    told = {pool.accelerator: pool.role_reason for pool in all_pools([h100, a10g])}
    assert "596 GB/s of memory for $1.00/h" in told["A10G"], "600 GB/s at $1.006"
    assert "487 GB/s of memory for $1.00/h" in told["H100-SXM5-80GB"], "8 x 3350 GB/s at $55.04"
