from __future__ import annotations

import pytest

from poolwise import tables
from poolwise.tables.cpus import CpuRow

TABLE = tables.load().cpus


@pytest.mark.parametrize("row", TABLE.rows, ids=lambda row: row.name)
def test_the_weakest_is_weaker_than_every_other(row: CpuRow) -> None:
    weakest = TABLE.weakest(row.architecture)
    assert weakest is not None
    ours = row.bf16_flops_per_second / row.cores_per_socket
    assert weakest.bf16_flops_per_second / weakest.cores_per_socket <= ours


def test_an_unheard_of_architecture_has_no_weakest() -> None:
    assert TABLE.weakest("s390x") is None


@pytest.mark.parametrize(
    ("detected", "name"),
    [("Intel/6/143", "Xeon-8488C"), ("AMD/25/17", "EPYC-9R14"), ("AMD/23/49", None)],
)
def test_feature_discovery_names_cpus_by_family_and_model(detected: str, name: str | None) -> None:
    row = TABLE.detected(detected)
    assert (row and row.name) == name
