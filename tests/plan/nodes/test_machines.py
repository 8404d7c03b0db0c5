from __future__ import annotations

import pytest

from poolwise import tables
from poolwise.errors import InvalidInput
from poolwise.plan.nodes.machines import cpu_device, device, mig_slice
from poolwise.tables import AcceleratorRow, CpuRow

TABLES = tables.load()
GIB = 2**30


def accelerator(name: str) -> AcceleratorRow:
    row = TABLES.accelerator(name)
    assert row is not None
    return row


def cpu(name: str) -> CpuRow:
    row = TABLES.cpu(name)
    assert row is not None
    return row


@pytest.mark.parametrize("row", TABLES.accelerators.rows, ids=lambda row: row.name)
def test_a_device_carries_its_row(row: AcceleratorRow) -> None:
    whole = device(row)
    assert whole.name == row.name
    assert not whole.is_cpu
    assert whole.memory_bytes == row.usable_memory_bytes
    assert whole.peak_flops_per_second.keys() >= whole.matmul_flops_per_second.keys()


@pytest.mark.parametrize(
    ("name", "profile", "memory_share", "compute_share", "reported_gib"),
    [
        ("H100-SXM5-80GB", "1g.10gb", 1 / 8, 1 / 7, 9.75),
        ("H100-SXM5-80GB", "1g.20gb", 2 / 8, 1 / 7, 19.62),
        ("H100-SXM5-80GB", "3g.40gb", 4 / 8, 3 / 7, 39.25),
        ("H100-SXM5-80GB", "7g.80gb", 1, 1, 78.75),
        ("H200-SXM-141GB", "1g.18gb", 1 / 8, 1 / 7, 16.00),
        ("A100-SXM4-40GB", "1g.5gb", 1 / 8, 1 / 7, 4.75),
        ("A100-SXM4-40GB", "1g.5gb+me", 1 / 8, 1 / 7, 4.75),
        ("A30", "2g.12gb", 2 / 4, 2 / 4, 11.68),
        ("GB200-NVL72", "1g.24gb", 1 / 8, 1 / 7, 20.00),
    ],
)
def test_a_slice_is_its_share_of_the_device(
    name: str, profile: str, memory_share: float, compute_share: float, reported_gib: float
) -> None:
    row = accelerator(name)
    part, whole = mig_slice(row, profile), device(row)
    bandwidth = part.memory_bandwidth_bytes_per_second / whole.memory_bandwidth_bytes_per_second
    assert bandwidth == pytest.approx(memory_share)
    assert part.peak_flops_per_second["bf16"] == pytest.approx(
        whole.peak_flops_per_second["bf16"] * compute_share
    )
    assert reported_gib * 0.8 < part.memory_bytes / GIB < reported_gib
    assert part.name == f"{name}-MIG-{profile}"


def test_a_slice_has_the_memory_that_its_label_says() -> None:
    row = accelerator("H100-SXM5-80GB")
    assert mig_slice(row, "1g.10gb", 9984 * 2**20).memory_bytes == 9984 * 2**20


@pytest.mark.parametrize(
    ("name", "profile", "sentence"),
    [
        ("L40S", "1g.6gb", "L40S: has no MIG"),
        ("H100-SXM5-80GB", "8g.80gb", "cannot be cut into '8g.80gb'"),
        ("H100-SXM5-80GB", "1g.200gb", "cannot be cut into '1g.200gb'"),
        ("H100-SXM5-80GB", "1c.3g.40gb", "not like '1g.10gb'"),
        ("H100-SXM5-80GB", "large", "not like '1g.10gb'"),
    ],
)
def test_an_impossible_slice_is_refused(name: str, profile: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        mig_slice(accelerator(name), profile)


def test_a_cpu_node_has_the_figures_of_its_cores() -> None:
    row = cpu("Xeon-8488C")
    socket, half = cpu_device(row, 48, 256e9), cpu_device(row, 24, 256e9)
    assert socket.is_cpu
    assert socket.family == "cpu"
    assert socket.memory_bandwidth_bytes_per_second == 307.2e9
    assert half.memory_bandwidth_bytes_per_second == pytest.approx(307.2e9 / 2)
    assert half.peak_flops_per_second["bf16"] == pytest.approx(118e12 / 2)
    assert half.memory_bytes == 256e9
