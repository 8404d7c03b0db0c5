from __future__ import annotations

from typing import Any

import pytest

from poolwise.plan.pools.roles import INTER_BYTES_PER_FLOP, INTRA_BYTES_PER_FLOP, links
from tests.plan.nodes_given import all_pools, declared, node, only_pool

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


def roles(*machines: tuple[str, int]) -> dict[str | None, str | None]:
    nodes = [node(f"{name}-{i}", {MACHINE: name}, gpus=n) for name, n in machines for i in (0, 1)]
    return {pool.accelerator: pool.role for pool in all_pools(nodes)}


def test_a_role_agrees_with_its_own_numbers() -> None:
    """L4: 300 GB/s at $0.80 are fewer bytes per dollar than A10G's 600 at $1.01."""
    assert roles(("g6.xlarge", 1)) == {"L4": "MemoryBandwidth"}, "nothing to compare with"
    both = roles(("g6.xlarge", 1), ("g5.xlarge", 1))
    assert both == {"L4": "Balanced", "A10G": "MemoryBandwidth"}


def test_links_for_gangs_decide_also_where_bandwidth_is_cheap() -> None:
    found = roles(("p5.48xlarge", 8), ("g6.xlarge", 1))
    assert found == {"H100-SXM5-80GB": "Interconnect", "L4": "Balanced"}


def test_without_a_price_bandwidth_is_counted_per_flop() -> None:
    """A30: 933 GB/s for 165 TFLOP/s; L4: 300 for 121; L20: 864 for 119.5 TFLOP/s."""
    products = ("NVIDIA-A30", "NVIDIA-L20")
    nodes = [node(each, {"nvidia.com/gpu.product": each}, gpus=4) for each in products]
    nodes.append(node("l4", {MACHINE: "g6.xlarge"}, gpus=1))
    found = {pool.accelerator: pool for pool in all_pools(nodes)}
    assert found["A30"].price is None
    assert (
        "5.7e-03 bytes of memory per FLOP, median of the pools 5.7e-03" in found["A30"].role_reason
    )
    assert found["A30"].role == "MemoryBandwidth"


@pytest.mark.parametrize("price", ["0.5", "500"])
def test_only_what_bandwidth_costs_moves_a_role_without_links(price: str) -> None:
    cheap: dict[str, Any] = {
        "nodeSelector": {MACHINE: "g6.xlarge"},
        "price": {"perNodeHour": price},
    }
    nodes = [node("a", {MACHINE: "g6.xlarge"}, gpus=1), node("b", {MACHINE: "g5.xlarge"}, gpus=1)]
    found = {p.accelerator: p.role for p in all_pools(nodes, [declared("mine", **cheap)])}
    assert found["L4"] == ("MemoryBandwidth" if price == "0.5" else "Balanced")
