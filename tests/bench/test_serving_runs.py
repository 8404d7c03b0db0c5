"""Measured serving rows as runs: names brought together, unusable rows left out."""

import pytest

from bench.serving_runs import (
    Run,
    first_token_seconds,
    generated_tokens_per_second,
    runs,
    token_seconds,
)
from bench.tables import Row
from poolwise import tables
from poolwise.model.efficiency import Calibration

TABLES = tables.load()
CALIBRATION = Calibration(TABLES.efficiencies)
COLUMNS = (
    *("engine", "model", "gpu", "n_gpus", "tp", "pp", "attn_dp", "moe_ep", "mode", "group"),
    *("weight_precision", "moe_precision", "kv_precision", "isl", "osl", "concurrency"),
    *("batch_per_dp", "tpot_ms_mean", "ttft_ms_mean", "out_tok_s_total"),
)


def row(**cells: str) -> Row:
    usual = {
        "engine": "vllm",
        "model": "Llama-3.1-8B",
        "gpu": "H100-SXM5-80GB",
        "n_gpus": "1",
        "tp": "1",
        "pp": "1",
        "mode": "online-agg",
        "isl": "1024",
        "osl": "512",
        "concurrency": "16",
        "tpot_ms_mean": "9",
    }
    return dict.fromkeys(COLUMNS, "") | usual | cells


def only(**cells: str) -> Run:
    (found,) = runs([row(**cells)], TABLES, ["online-agg"], "tpot_ms_mean")
    return found


def test_milliseconds_become_seconds() -> None:
    assert only().measured == pytest.approx(0.009)
    assert only().in_flight == 16.0


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"weight_precision": ""}, "bf16"),
        ({"weight_precision": "fp8_block"}, "fp8"),
        ({"weight_precision": "bf16", "moe_precision": "fp8_block"}, "fp8"),
        ({"weight_precision": "nvfp4", "model": "gpt-oss-120b"}, "mxfp4"),
        ({"weight_precision": "nvfp4"}, "nvfp4"),
        ({"weight_precision": "int4-g32-wo"}, "int4"),
    ],
    ids=["silent", "blocks", "experts count", "gpt-oss", "nvfp4", "weight-only"],
)
def test_formats(cells: dict[str, str], expected: str) -> None:
    assert only(**cells).layout.weight_format == expected


def test_tensorrt_llm_quantises_its_cache_with_the_weights() -> None:
    run = only(engine="trtllm", weight_precision="fp8")
    assert (run.work.engine, run.layout.kv_format) == ("triton", "fp8")
    assert only(engine="vllm", weight_precision="fp8").layout.kv_format == "bf16"
    assert only(engine="TensorRT-LLM", kv_precision="fp16").layout.kv_format == "fp16"


@pytest.mark.parametrize(
    "cells",
    [
        pytest.param({"attn_dp": "8"}, id="attention over data"),
        pytest.param({"tp": "64", "n_gpus": "64"}, id="beyond the node"),
        pytest.param({"tp": "4", "n_gpus": "8"}, id="sizes that do not multiply"),
        pytest.param({"model": "nobody-knows"}, id="unknown model"),
        pytest.param({"gpu": "nobody-knows"}, id="unknown device"),
        pytest.param({"model": "ResNet-50"}, id="no tokens"),
        pytest.param({"osl": ""}, id="no output length"),
        pytest.param({"tpot_ms_mean": ""}, id="not measured"),
        pytest.param({"mode": "online-disagg"}, id="another mode"),
    ],
)
def test_rows_that_are_left_out(cells: dict[str, str]) -> None:
    assert not list(runs([row(**cells)], TABLES, ["online-agg"], "tpot_ms_mean"))


def test_predictions_are_in_the_unit_of_what_was_measured() -> None:
    run = only()
    assert 0.003 < token_seconds(run, CALIBRATION) < 0.03
    assert 0.01 < first_token_seconds(run, CALIBRATION) < 1.0
    assert 500 < generated_tokens_per_second(run, CALIBRATION) < 50_000


def test_a_static_batch_is_read_and_generated_as_a_whole() -> None:
    cells = {"mode": "static-batch", "out_tok_s_total": "5000", "isl": "128", "osl": "128"}
    (run,) = runs([row(**cells)], TABLES, ["static-batch"], "out_tok_s_total")
    seconds = 16 * 128 / generated_tokens_per_second(run, CALIBRATION)
    assert seconds > 127 * token_seconds(run, CALIBRATION) * 0.8
