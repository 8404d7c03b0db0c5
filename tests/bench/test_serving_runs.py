"""Measured serving rows as runs: names brought together, unusable rows left out."""

from dataclasses import replace

import pytest

from bench.serving_figures import figures
from bench.serving_offline import requests_of, requests_per_second
from bench.serving_runs import (
    Run,
    generated_tokens_per_second,
    runs,
    token_seconds,
)
from bench.tables import Row
from poolwise import tables
from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import Interval

TABLES = tables.load()
CALIBRATION = Calibration(TABLES.efficiencies)
COLUMNS = (
    *("engine", "model", "gpu", "n_gpus", "tp", "pp", "attn_dp", "moe_ep", "mode", "group"),
    *("weight_precision", "moe_precision", "kv_precision", "isl", "osl", "concurrency"),
    *("batch_per_dp", "tpot_ms_mean", "ttft_ms_mean", "out_tok_s_total", "moe_tp", "qps_offered"),
    *("prefill_cfg", "decode_cfg", "params_b", "active_b", "engine_version", "source_date"),
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
    modes = ["online-agg", "online-disagg"]
    (found,) = runs([row(**cells)], TABLES, modes, "tpot_ms_mean")
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
    assert only(engine="tensorrt-llm", kv_precision="fp16").layout.kv_format == "fp16"


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"tp": "8", "attn_dp": "1", "moe_tp": "8", "moe_ep": "1"}, (8, 1, 1)),
        ({"tp": "64", "attn_dp": "1", "moe_tp": "8", "moe_ep": "8"}, (8, 1, 8)),
        ({"tp": "1", "attn_dp": "64", "moe_tp": "8", "moe_ep": "8"}, (1, 8, 8)),
        ({"tp": "1", "attn_dp": "8", "moe_tp": "1", "moe_ep": "8"}, (1, 8, 8)),
        ({"tp": "4", "attn_dp": "4", "moe_tp": "1", "moe_ep": "16"}, (4, 1, 4)),
        ({"tp": "36", "attn_dp": "1", "moe_tp": "36", "moe_ep": "1"}, (1, 36, 36)),
        ({"tp": "2", "attn_dp": "0", "moe_tp": "0", "moe_ep": "0"}, (2, 1, 1)),
        ({"tp": "8", "notes": "MoE rows use attention DP and an unstated EP"}, (1, 8, 8)),
        ({"tp": "8", "attn_dp": "1", "notes": "MoE rows use attention DP"}, (8, 1, 1)),
    ],
    ids=[
        *("tensor", "square", "square of data", "data", "both named", "deployment", "zeros"),
        *("a note", "a cell beside a note"),
    ],
)
def test_sizes_that_name_the_same_devices_twice(
    cells: dict[str, str], expected: tuple[int, int, int]
) -> None:
    layout = only(**cells).layout
    assert (layout.tensor, layout.data, layout.expert) == expected


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"gpu": "nobody-knows"}, "accelerator is not known"),
        ({"model": "nobody-knows"}, "model is neither known nor counted"),
        ({"model": "ResNet-50"}, "model is neither known nor counted"),
        ({"osl": ""}, "no lengths"),
        ({"tpot_ms_mean": ""}, "no tpot_ms_mean"),
        ({"tp": ""}, "no tensor-parallel size"),
        ({"mode": "online-disagg"}, "no sizes of the decoding part"),
        ({"weight_precision": "int3"}, "format is not known"),
    ],
)
def test_what_is_not_predicted_has_a_reason(cells: dict[str, str], reason: str) -> None:
    figures_of_row = list(figures(row(**cells), TABLES))
    if cells.get("tpot_ms_mean") == "":
        assert not figures_of_row
        return
    (figure,) = figures_of_row
    said = figure.predicted(CALIBRATION)
    assert isinstance(said, str)
    assert said.startswith(reason)


def test_another_mode_is_left_out() -> None:
    assert not list(runs([row(mode="online")], TABLES, ["online-agg"], "tpot_ms_mean"))


def test_a_model_known_by_its_counts_has_a_usual_shape() -> None:
    dense = only(model="nobody-knows", params_b="8", active_b="8")
    known = only()
    ratio = token_seconds(dense, CALIBRATION) / token_seconds(known, CALIBRATION)
    assert 0.8 < ratio < 1.25


@pytest.mark.parametrize("counts", [("-8", "-8"), ("8", "-1"), ("-8", "1")], ids=str)
def test_counts_below_0_are_no_model(counts: tuple[str, str]) -> None:
    cells = row(model="nobody-knows", params_b=counts[0], active_b=counts[1])
    (figure,) = figures(cells, TABLES)
    said = figure.predicted(CALIBRATION)
    assert isinstance(said, str)
    assert "active parameters are no count" in said


def test_decoding_apart_has_no_prompts_between() -> None:
    apart = row(
        mode="online-disagg",
        prefill_cfg="workers=1,bs=1,tp=1,pp=1,dp=1,moe_tp=1,moe_ep=1",
        decode_cfg="workers=2,bs=8,tp=1,pp=1,dp=1,moe_tp=1,moe_ep=1",
        isl="8192",
        concurrency="32",
        weight_precision="bf16",
    )
    (figure,) = figures(apart, TABLES)
    assert figure.score == "tpot_disagg"
    assert isinstance(figure.run, Run)
    assert figure.run.in_flight == 16.0
    together = only(isl="8192", concurrency="16")
    assert token_seconds(figure.run, CALIBRATION) < token_seconds(together, CALIBRATION)


def test_requests_at_a_rate() -> None:
    cells = {"mode": "online", "qps_offered": "4", "weight_precision": "bf16"}
    slow, fast = (
        next(figures(row(**cells | {"qps_offered": rate}), TABLES)) for rate in ("1", "8")
    )
    low, high = slow.predicted(CALIBRATION), fast.predicted(CALIBRATION)
    assert isinstance(low, Interval)
    assert isinstance(high, Interval)
    assert low.low < low.mid < high.mid < high.high
    assert slow.is_eligible


def test_releases_that_predict_several_tokens() -> None:
    cells = {"model": "DeepSeek-V3", "engine": "trtllm", "tp": "8", "n_gpus": "8"}
    plain = only(**cells, engine_version="1.2.0rc6.post2", source_date="2026-02-03")
    ahead = only(**cells, engine_version="1.2.0rc6.post3", source_date="2026-02-06")
    assert (plain.drafts, ahead.drafts) == (0, 3)
    assert 1.0 < ahead.tokens_per_step(CALIBRATION) < 4.0
    assert token_seconds(ahead, CALIBRATION) < token_seconds(plain, CALIBRATION)


def test_guesses_are_verified_by_the_step() -> None:
    """Of a dense model: with experts, guesses of a few requests touch more of them."""
    cells = {"model": "Llama-3.1-70B", "engine": "trtllm", "tp": "8", "n_gpus": "8"}
    gains = []
    for clients in ("4", "256"):
        alone = only(**cells, concurrency=clients)
        run = replace(alone, drafts=3)
        gains.append(token_seconds(alone, CALIBRATION) / token_seconds(run, CALIBRATION))
    assert gains[0] > gains[1], "a full batch has less compute to spare for guesses"


def test_a_worker_of_an_unknown_number_has_a_share_of_the_clients() -> None:
    cells = {"mode": "online-disagg", "concurrency": "256"}
    counted = only(**cells, decode_cfg="workers=4,tp=8")
    guessed = only(**cells, decode_cfg="workers=,tp=8")
    assert counted.sequences(CALIBRATION) == 64.0
    share = CALIBRATION.value("serving", "worker_share", guessed.machine.device)
    assert guessed.sequences(CALIBRATION) == pytest.approx(256.0 * share)


def test_predictions_are_in_the_unit_of_what_was_measured() -> None:
    run = only()
    assert 0.003 < token_seconds(run, CALIBRATION) < 0.03
    assert 500 < generated_tokens_per_second(run, CALIBRATION) < 50_000


def test_the_last_wave_of_a_finite_run_fills_fewer_slots() -> None:
    served = only(isl="1000", osl="1000", n_gpus="1").replica(CALIBRATION)
    endless = requests_per_second(served, None)
    assert requests_per_second(served, 10 * served.slots) == pytest.approx(endless)
    assert requests_per_second(served, 1.1 * served.slots) < 0.95 * endless
    assert requests_of(row(isl="1000", osl="1000")) == 3000
    assert requests_of(row(isl="999", osl="1000")) is None


def test_a_rack_labelled_as_one_replica_reads_prompts_apart() -> None:
    cells = {"model": "DeepSeek-V3", "engine": "trtllm", "gpu": "GB200-NVL72"}
    rack = only(**cells, tp="36", n_gpus="36", moe_tp="36")
    assert (rack.layout.data, rack.apart) == (36, True)
    together = replace(rack, apart=False)
    assert token_seconds(rack, CALIBRATION) < token_seconds(together, CALIBRATION)
    assert not only(**cells, tp="64", n_gpus="64", moe_tp="8", moe_ep="8").apart


def test_a_static_batch_is_read_and_generated_as_a_whole() -> None:
    cells = {"mode": "static-batch", "out_tok_s_total": "5000", "isl": "128", "osl": "128"}
    (run,) = runs([row(**cells)], TABLES, ["static-batch"], "out_tok_s_total")
    seconds = 16 * 128 / generated_tokens_per_second(run, CALIBRATION)
    assert seconds > 127 * token_seconds(run, CALIBRATION) * 0.8


def test_formats_left_as_published_are_the_models_own() -> None:
    left = only(weight_precision="bf16", moe_precision="none", kv_precision="default")
    assert left.layout == only(weight_precision="bf16").layout


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [("Mystery-235B-A22B-Instruct", 235e9, 22e9), ("Mystery2.5-7B", 7e9, 7e9)],
)
def test_a_strangers_name_tells_its_counts(name: str, total: float, active: float) -> None:
    told, counted = (
        only(model=name),
        only(model=name, params_b=f"{total / 1e9}", active_b=f"{active / 1e9}"),
    )
    assert told.work.model == counted.work.model


@pytest.mark.parametrize("name", ["Mystery-8x7B", "Mystery-7Billion", "Mystery"])
def test_a_name_that_tells_no_count_is_not_guessed_at(name: str) -> None:
    assert not list(runs([row(model=name)], TABLES, ["online-agg"], "tpot_ms_mean"))
