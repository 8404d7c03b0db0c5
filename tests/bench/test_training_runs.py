from __future__ import annotations

import pytest

from bench.tables import Row
from bench.training_runs import Run, laid, runs
from poolwise.model.efficiency import Calibration
from poolwise.model.work import Method, Recompute, Transformer
from poolwise.tables import load

TABLES = load()
CELLS: Row = {
    "source": "a table",
    "framework": "NeMo",
    "task": "pretrain",
    "model": "llama-3.1-70b",
    "gpu": "H100-SXM5-80GB",
    "n_gpus": "64",
    "interconnect": "",
    "seq_len": "8192",
    "global_batch": "128",
    "micro_batch": "1",
    "precision": "fp8-cs",
    "tp": "4",
    "pp": "4",
    "vp": "5",
    "cp": "2",
    "ep": "NA",
    "sharding": "DistOpt(ZeRO-1)",
    "act_ckpt": "",
    "layers_used": "",
    "samples_per_s": "",
    "tokens_per_s_per_gpu": "1024",
    "group": "a family",
    "notes": "",
}


def run(**changes: str) -> Run:
    (found,) = runs([CELLS | changes], TABLES)
    return found


def test_a_row_is_work_on_a_machine() -> None:
    found = run()
    assert found.work.precision == "fp8"
    assert found.step_seconds == pytest.approx(128 * 8192 / (64 * 1024))
    layout = laid(found, Calibration(TABLES.efficiencies))
    assert layout is not None
    sizes = layout.layout
    assert (sizes.data, sizes.tensor, sizes.pipeline, sizes.context) == (2, 4, 4, 2)
    assert (sizes.interleave, sizes.zero_stage, sizes.recompute) == (5, 1, Recompute.NONE)


def test_a_proxy_has_fewer_layers() -> None:
    shape = run(layers_used="8").work.model.shape
    assert isinstance(shape, Transformer)
    assert shape.layers == 8


def test_what_a_source_leaves_out_is_searched() -> None:
    found = run(tp="", pp="", cp="", micro_batch="", sharding="", task="lora")
    assert found.work.method is Method.LORA
    layout = laid(found, Calibration(TABLES.efficiencies))
    assert layout is not None
    assert layout.layout.count == 64


@pytest.mark.parametrize(
    ("words", "bytes_per_second"),
    [
        ("DGX H100 + NDR IB 400 Gb/s/GPU", 400e9),
        ("1600 Gb/s RoCE per node", 200e9),
        ("IB/RoCE 3200 Gb/s node (not stated)", 400e9),
        ("NVLINK Gen5 1800 GB/s + NVSWITCH Gen5 | 4x ConnectX-7 IB NDR 400 Gb/s", 200e9),
        ("NVLINK Gen4 900 GB/s + NVSWITCH Gen3", 400e9),
    ],
)
def test_networks_are_read_from_words(words: str, bytes_per_second: float) -> None:
    link = run(interconnect=words).machine.interconnect
    assert link.inter_node_bytes_per_second == bytes_per_second


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "nobody knows"},
        {"gpu": "abacus"},
        {"tokens_per_s_per_gpu": ""},
        {"notes": "variable-length sequences"},
    ],
    ids=str,
)
def test_rows_that_cannot_be_compared_are_left_out(changes: Row) -> None:
    assert list(runs([CELLS | changes], TABLES)) == []
