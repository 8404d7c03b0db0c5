from __future__ import annotations

import pytest

from poolwise import tables
from poolwise.errors import TableError
from poolwise.tables.machine_types import FILE, MachineTypeRow, MachineTypes
from poolwise.tables.reading import parse_rows

TABLES = tables.load()


def find(name: str) -> MachineTypeRow:
    row = TABLES.machine_type(name)
    assert row is not None, name
    return row


@pytest.mark.parametrize(
    ("machine", "accelerator", "count", "network_gigabits_per_second"),
    [
        ("p5.48xlarge", "H100-SXM5-80GB", 8, 3200),
        ("p4d.24xlarge", "A100-SXM4-40GB", 8, 400),
        ("g5.48xlarge", "A10G", 8, 100),
        ("a3-megagpu-8g", "H100-SXM5-80GB", 8, 1600),
        ("g2-standard-24", "L4", 2, 32),
        ("Standard_ND96isr_MI300X_v5", "MI300X", 8, 3200),
        ("standard_nc24ads_a100_v4", "A100-PCIE-80GB", 1, 20),
        ("BM.GPU.H200.8", "H200-SXM-141GB", 8, 3200),
    ],
)
def test_published_machines(
    machine: str, accelerator: str, count: int, network_gigabits_per_second: float
) -> None:
    row = find(machine)
    assert (row.accelerator, row.accelerators) == (accelerator, count)
    assert row.network_bytes_per_second == pytest.approx(network_gigabits_per_second * 1.25e8)


@pytest.mark.parametrize(
    ("machine", "cpu"),
    [
        ("m7i.4xlarge", "Xeon-8488C"),
        ("m7g.metal", "Graviton3"),
        ("c3-standard-44-lssd", "Xeon-8488C"),
        ("c3d-standard-30", "EPYC-9R14"),
        ("Standard_D8s_v5", "Xeon-8375C"),
        ("Standard_D8as_v5", "EPYC-7R13"),
        ("Standard_D8ps_v5", "Altra-Q80"),
    ],
)
def test_families_cover_their_members(machine: str, cpu: str) -> None:
    assert find(machine).cpu == cpu


@pytest.mark.parametrize("machine", ["Standard_D8pls_v5", "m7ix.large", "p5", "", "c3-"])
def test_families_cover_nothing_else(machine: str) -> None:
    assert TABLES.machine_type(machine) is None


@pytest.mark.parametrize(
    ("machine", "domain"), [("trn2.48xlarge", 16), ("trn2u.48xlarge", 64), ("gb200-4x", 72)]
)
def test_only_machines_of_a_larger_domain_share_one(machine: str, domain: int) -> None:
    """AWS joins trn2u instances to an UltraServer, and others by their network cards alone."""
    assert find(machine).domain_accelerators == domain


def test_family_prices_grow_with_the_machine() -> None:
    assert find("m7i.4xlarge").price_of(16) == pytest.approx(16 * 0.0504)
    assert find("p5.48xlarge").price_of(192) == 55.04
    assert find("p6-b300.48xlarge").price_of(192) is None


@pytest.mark.parametrize("row", TABLES.machine_types.rows, ids=lambda row: row.name)
def test_a_machine_agrees_with_its_accelerator(row: MachineTypeRow) -> None:
    known = TABLES.accelerator(row.accelerator) if row.accelerator else None
    if known is None:
        assert row.price_per_hour_usd is None
        return
    assert row.accelerators is not None
    assert row.accelerators <= max(known.accelerators_per_node, 16)
    assert (row.link_bytes_per_second or known.link_bytes_per_second) >= known.link_bytes_per_second
    if row.price_per_hour_usd and known.price_per_hour_usd:
        each = row.price_per_hour_usd / row.accelerators
        host = 0.05 * (row.vcpus or 0) / row.accelerators
        assert each > known.price_per_hour_usd / 5
        assert each - host < known.price_per_hour_usd * 5, "one chip spans 4.6x between sellers"


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        ("x1,aws,,2,1e9,,", "accelerator and accelerators go together"),
        ("x1,aws,T4,0,1e9,,", "accelerator and accelerators go together"),
        ("x1,aws,T4,,1e9,,", "accelerator and accelerators go together"),
        ("x1,aws,T4,1,1e9,2.5,", "a price needs a source"),
    ],
)
def test_a_malformed_row_is_refused(cells: str, sentence: str) -> None:
    header = "name,cloud,accelerator,accelerators,network_bytes_per_second,price_per_hour_usd"
    lines = [header + ",price_source,evidence,source", cells + ",recalled,a page"]
    with pytest.raises(TableError, match=sentence):
        MachineTypes(parse_rows(FILE, lines, MachineTypeRow))
