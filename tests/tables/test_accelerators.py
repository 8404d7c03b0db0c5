from __future__ import annotations

import pytest

from poolwise import tables
from poolwise.tables.accelerators import FORMATS, MIB, USABLE_FRACTION, AcceleratorRow

TABLE = tables.load().accelerators
ROWS = pytest.mark.parametrize("row", TABLE.rows, ids=lambda row: row.name)


def find(name: str) -> AcceleratorRow:
    row = TABLE.find(name)
    assert row is not None, name
    return row


@pytest.mark.parametrize(
    ("name", "gigabytes_per_second", "bf16_teraflops", "watts"),
    [
        ("A10", 600, 125, 150),
        ("A10G", 600, 70, 300),
        ("L4", 300, 121, 72),
        ("L40S", 864, 362.05, 350),
        ("A100-SXM4-80GB", 2039, 312, 400),
        ("H100-SXM5-80GB", 3350, 989, 700),
        ("H200-SXM-141GB", 4800, 989, 700),
        ("MI300X", 5300, 1307.4, 750),
        ("Gaudi3", 3700, 1677, 900),
        ("A2", 200, 18, 60),
        ("RTX-A4000", 448, 76.7, 140),
        ("RTX-A4500", 640, 94.6, 200),
        ("MI210", 1638, 181, 300),
        ("L40", 864, 181.05, 300),
        ("MI250", 3277, 362.1, 560),
        ("H20-141GB", 4800, 148, 500),
        ("GH200-141GB", 4900, 989, 900),
        ("RTX-PRO-6000-Blackwell-Server", 1597, 467.8, 600),
        ("RTX-PRO-6000-Blackwell-Workstation", 1792, 503.8, 600),
        ("GB10", 273, 125, 140),
    ],
)
def test_published_figures(
    name: str, gigabytes_per_second: float, bf16_teraflops: float, watts: float
) -> None:
    row = find(name)
    assert row.memory_bandwidth_bytes_per_second == gigabytes_per_second * 1e9
    assert row.peak_flops_per_second["bf16"] == bf16_teraflops * 1e12
    assert row.power_watts == watts


@pytest.mark.parametrize(
    ("name", "link", "peer"),
    [
        ("Gaudi2", 262.5, 37.5),
        ("Gaudi3", 525, 75),
        ("Trainium1", 192, None),
        ("Trainium2", 512, 128),
        ("TPU v6e", 400, 100),
        ("MI300X", 448, 64),
        ("H100-SXM5-80GB", 450, None),
    ],
)
def test_links_are_counted_one_way_and_inside_the_machine(
    name: str, link: float, peer: float | None
) -> None:
    row = find(name)
    assert row.link_bytes_per_second == link * 1e9
    assert row.peer_bytes_per_second == (peer and peer * 1e9)


@pytest.mark.parametrize(
    ("name", "gibibytes"),
    [("T4", 14.58), ("L40S", 44.40), ("A100-SXM4-80GB", 79.15), ("H100-SXM5-80GB", 79.11)],
)
def test_usable_memory_is_what_pytorch_reports_as_capacity(name: str, gibibytes: float) -> None:
    assert find(name).usable_memory_bytes / 2**30 == pytest.approx(gibibytes, abs=0.01)


def test_unreported_memory_is_taken_below_every_reported_one() -> None:
    known = [
        (row.usable_memory_bytes, row.driver_memory_mib * MIB, row.labelled_memory_bytes)
        for row in TABLE
        if row.usable_memory_mib is not None and row.driver_memory_mib is not None
    ]
    assert len(known) > 20
    of_total = min(usable / total for usable, total, _ in known)
    of_label = min(usable / label for usable, _, label in known)
    assert of_total - 0.01 < USABLE_FRACTION < of_total <= of_label


@pytest.mark.parametrize(
    ("unreported", "reported"),
    [("RTX-3090-Ti", "RTX-3090"), ("RTX-A5500", "RTX-A5000"), ("MI210", "MI250X-GCD")],
)
def test_unreported_memory_is_about_that_of_a_sister_of_the_same_size(
    unreported: str, reported: str
) -> None:
    one, other = find(unreported), find(reported)
    assert one.labelled_memory_bytes == other.labelled_memory_bytes
    assert one.usable_memory_mib is None
    assert 0.965 < one.usable_memory_bytes / other.usable_memory_bytes < 1.0


@ROWS
def test_a_row_is_plausible(row: AcceleratorRow) -> None:
    peaks = row.peak_flops_per_second
    assert row.usable_memory_mib is None or row.driver_memory_mib is not None
    assert (row.usable_memory_mib or 0) <= (row.driver_memory_mib or 0)
    assert all(ceiling < peaks[name] for name, ceiling in row.matmul_flops_per_second.items())
    assert all(peaks[name] > 1e12 for name in FORMATS if name in peaks)
    assert (row.peer_bytes_per_second or row.link_bytes_per_second) <= row.link_bytes_per_second
    assert row.link_is_switched is not row.link.startswith("PCIe") or "bridge" in row.link
    assert row.domain_accelerators is None or row.domain_accelerators > row.accelerators_per_node


@ROWS
def test_a_chip_in_a_torus_is_joined_beyond_its_host(row: AcceleratorRow) -> None:
    """Hosts of a slice talk over the torus, never over the hosts' network."""
    if row.link.startswith("ICI"):
        assert row.domain_accelerators is not None


@ROWS
def test_every_label_leads_to_its_row(row: AcceleratorRow) -> None:
    for label in (row.name, *row.aliases, *row.product_labels):
        assert TABLE.labelled(label) == (row,)


@ROWS
def test_every_short_name_leads_to_several_rows_with_this_among_them(row: AcceleratorRow) -> None:
    for name in row.short_names:
        assert row in TABLE.labelled(name)


@pytest.mark.parametrize(
    ("label", "names"),
    [
        ("NVIDIA-H100-80GB-HBM3", {"H100-SXM5-80GB"}),
        ("Tesla-T4", {"T4"}),
        ("t4", {"T4"}),
        ("AMD_Instinct_MI300X_OAM", {"MI300X"}),
        ("tpu-v5-lite-podslice", {"TPU v5e"}),
        ("V100-PCIE-16/32GB", {"V100-PCIE-16GB"}),
        ("NVIDIA-A100-PCIE-80GB", {"A100-PCIE-80GB"}),
        ("h100", {"H100-SXM5-80GB", "H100-PCIe-80GB", "H100-NVL-94GB"}),
        ("NVIDIA-H20", {"H20-96GB"}),
        ("NVIDIA-H20-3e", {"H20-141GB"}),
        ("NVIDIA-Z9000", set()),
    ],
)
def test_what_labels_mean(label: str, names: set[str]) -> None:
    assert {row.name for row in TABLE.labelled(label)} == names


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("NVIDIA H200-SXM5-141GB", "H200-SXM-141GB"),
        ("NVIDIA Blackwell GPU (B200-SXM-180GB)", "B200-SXM-180GB"),
        ("NVIDIA Blackwell Ultra GPU (B300-SXM-270GB)", "B300-SXM"),
        ("NVIDIA Blackwell Ultra GPU (GB300)", "GB300-NVL72"),
        ("NVIDIA GH200 Grace Hopper Superchip 144GB", "GH200-141GB"),
        ("AMD Instinct MI325X 256GB HBM3e", "MI325X"),
        ("NVIDIA L4-PCIe-24GB", "L4"),
        ("H100 SXM", "H100-SXM5-80GB"),
        ("B200", "B200-SXM-180GB"),
        ("DGX-GB200", "GB200-NVL72"),
        ("Intel Gaudi 2", "Gaudi2"),
        ("trn2", "Trainium2"),
        ("v5litepod", "TPU v5e"),
        ("Trillium", "TPU v6e"),
        ("Ironwood", "TPU v7x"),
    ],
)
def test_an_accelerator_is_known_as_benchmarks_write_it(written: str, name: str) -> None:
    """MLPerf's submissions, Megatron Bridge's, and the short names of clouds."""
    assert [row.name for row in TABLE.labelled(written)] == [name]
    assert [row.name for row in TABLE.meant(written)] == [name]
