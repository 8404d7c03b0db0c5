from __future__ import annotations

import pytest

from bench.collective_runs import Collective, collective, predicted
from bench.tables import Row
from poolwise.model.collectives import Group, Implementation, Operation, fabric
from poolwise.model.efficiency import Calibration
from poolwise.model.links import Fabric
from poolwise.tables import load

TABLES = load()
CELLS: Row = {
    "gpu": "H100-SXM5-80GB",
    "n_gpus": "8",
    "n_nodes": "1",
    "gpus_per_node": "8",
    "interconnect": "NVLink4+NVSwitch3",
    "collective": "all_reduce",
    "mode": "nccl",
    "size_bytes": "1048576",
    "time_us": "25.4",
    "group": "a sweep",
}


def found(cells: Row) -> Collective:
    each = collective(CELLS | cells, TABLES)
    assert isinstance(each, Collective), each
    return each


def test_a_row_is_a_collective_with_a_range() -> None:
    each = found({})
    assert (each.operation, each.members) == (Operation.ALL_REDUCE, Group(8, 8))
    interval = predicted(each, Calibration(TABLES.efficiencies))
    assert interval.low < 25.4e-6 < interval.high


@pytest.mark.parametrize(
    ("mode", "implementation"),
    [
        pytest.param("vLLM_custom_graph", Implementation.GRAPH, id="graph"),
        pytest.param("vLLM_custom_eager", Implementation.EAGER, id="eager"),
        pytest.param("trtllm", Implementation.TRTLLM, id="trtllm"),
        pytest.param("torch", Implementation.TORCH, id="torch"),
        pytest.param("out-of-place", Implementation.NCCL, id="library"),
    ],
)
def test_the_mode_tells_who_moves_the_bytes(mode: str, implementation: Implementation) -> None:
    assert found({"mode": mode}).implementation is implementation


def test_bridged_cards_are_no_plain_bus() -> None:
    cells = {"gpu": "H100-PCIe-80GB", "interconnect": "NVLink4 pairs + PCIe", "mode": "torch"}
    pair, four = (found(cells | {"n_gpus": ranks}).machine.interconnect for ranks in ("2", "4"))
    assert fabric(pair) is Fabric.MESH
    assert pair.intra_node_bytes_per_second == 300e9
    assert four.intra_node_bytes_per_second == 64e9


def test_idle_devices_leave_their_share_of_the_network() -> None:
    links = found({"n_gpus": "4", "n_nodes": "2"}).machine.interconnect
    assert links.accelerators_per_node == 2


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        pytest.param({"gpu": "Voodoo 2"}, "accelerator", id="accelerator"),
        pytest.param({"collective": "gossip"}, "operation", id="operation"),
        pytest.param({"size_bytes": ""}, "size", id="size"),
    ],
)
def test_what_cannot_be_predicted_says_why(cells: Row, reason: str) -> None:
    assert reason in str(collective(CELLS | cells, TABLES))


@pytest.mark.parametrize("name", ["all_reduce", "AllReduce", "all-reduce", "All Reduce"])
def test_an_operation_is_known_by_its_spellings(name: str) -> None:
    assert found({"collective": name}).operation is Operation.ALL_REDUCE


@pytest.mark.parametrize(
    ("words", "bytes_per_second"),
    [
        ("nvlink4+nvswitch3 | 8x connectx-7 ib", 400e9),
        ("4x connectx-7 roce per node", 200e9),
        ("nvlink + ib hdr", 8 * 25e9),
        ("2 x mellanox connectx-6", 50e9),
        ("nvlink5 intra + ib/roce inter", 400e9),
        ("efa", 400e9),
        ("roce 4 nics, 1 gpu per node used", 50e9),
        ("nvlink4 18x50 gb/s", 12.5e9),
        ("", 12.5e9),
    ],
)
def test_a_network_is_read_from_its_words(words: str, bytes_per_second: float) -> None:
    links = found({"n_nodes": "2", "n_gpus": "16", "interconnect": words}).machine.interconnect
    assert links.inter_node_bytes_per_second == bytes_per_second
