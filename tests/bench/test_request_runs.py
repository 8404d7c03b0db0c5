"""Times to the first token in closed loops: what clients, scripts and worker halves add."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from bench.disaggregated_runs import Disaggregated, disaggregated
from bench.fit.engine_pool import Constant, Rows, constant_rows, fit, left_out
from bench.request_figures import RequestFigure, figures
from bench.request_runs import (
    TERMS,
    first_token,
    first_token_seconds,
    open_loop_first_token_seconds,
)
from bench.request_settings import BALANCE_STEPS, poll_steps
from bench.serving_runs import ENGINES, Run, runs
from bench.tables import Row
from poolwise import tables
from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import Interval
from poolwise.model.residual import Kernel, Nearness, Residual

TABLES = tables.load()
CALIBRATION = Calibration(TABLES.efficiencies)
NEAR = Nearness(0.0, 0.05)
USUAL = {
    "row_id": "x",
    "engine": "vllm",
    "model": "Llama-3.1-8B",
    "gpu": "H100-SXM5-80GB",
    "n_gpus": "1",
    "tp": "1",
    "pp": "1",
    "mode": "online-agg",
    "weight_precision": "bf16",
    "isl": "1024",
    "osl": "1024",
    "concurrency": "16",
    "ttft_ms_mean": "100",
}
OTHER = (
    *("attn_dp", "moe_tp", "moe_ep", "moe_precision", "kv_precision", "batch_per_dp", "group"),
    *("qps_offered", "prefill_cfg", "decode_cfg", "source_date", "engine_version"),
    *("ttft_ms_p99", "tpot_ms_p99", "tpot_ms_mean"),
    *("params_b", "active_b", "notes", "source", "source_ref"),
)


def row(**cells: str) -> Row:
    return dict.fromkeys(OTHER, "") | USUAL | cells


def only(**cells: str) -> Run:
    made = row(**cells)
    (found,) = runs([made], TABLES, [made["mode"]], "ttft_ms_mean")
    return found


def seconds(**cells: str) -> float:
    return first_token_seconds(only(**cells), CALIBRATION)


def test_a_client_alone_waits_for_no_slot() -> None:
    """Of several clients one may be without; a turn of all is up to ten times a prompt."""
    own = {"engine": "trtllm", "isl": "1000"}
    alone, both = (first_token(only(**own, concurrency=each), CALIBRATION) for each in "12")
    assert alone.turn_seconds == 0.0
    assert both.turn_seconds > 0.0


def test_more_clients_wait_for_more_prompts_of_the_first_wave() -> None:
    few, many = (first_token(only(concurrency=each), CALIBRATION) for each in ("2", "201"))
    added = many.prompt_seconds - few.prompt_seconds
    alone = first_token(only(concurrency="1"), CALIBRATION).prompt_seconds
    # Half of 200 prompts for one request in ten; a prompt beside sequences costs a little less.
    assert added == pytest.approx(0.05 * 199 * alone, rel=0.35)
    assert seconds(concurrency="200") > seconds(concurrency="20") > seconds(concurrency="2")


def test_longer_prompts_take_longer() -> None:
    assert seconds(isl="8192") > 3 * seconds(isl="1024")


@pytest.mark.parametrize(
    ("cells", "polls"),
    [
        ({"concurrency": "8"}, 10.0),
        ({"concurrency": "64"}, 30.0),
        ({"gpu": "H200-SXM-141GB"}, 0.0),
        ({"osl": "500"}, 0.0),
        ({"engine": "vllm"}, 0.0),
    ],
)
def test_polls_of_the_published_scripts(cells: Mapping[str, str], polls: float) -> None:
    parts = first_token(only(**{"engine": "sglang", "gpu": "B200-SXM-180GB", **cells}), CALIBRATION)
    assert parts.polled_seconds == pytest.approx(polls * parts.step_seconds)


@pytest.mark.parametrize(
    ("cells", "polls"),
    [
        ({"model": "DeepSeek-R1", "tp": "4", "n_gpus": "4"}, 10.0),
        ({"model": "DeepSeek-R1", "tp": "8", "n_gpus": "8"}, 30.0),
        ({"model": "GLM-5", "tp": "8", "n_gpus": "8"}, 0.0),
        ({"model": "GLM-5", "tp": "8", "n_gpus": "8", "weight_precision": "nvfp4"}, 10.0),
        ({"model": "Qwen3.5-397B-A17B", "tp": "4", "n_gpus": "4"}, 30.0),
        ({"model": "Qwen3.5-397B-A17B", "tp": "4", "n_gpus": "4", "gpu": "B300-SXM"}, 10.0),
    ],
)
def test_scripts_of_one_model_poll_in_their_own_way(cells: Mapping[str, str], polls: float) -> None:
    usual = {"engine": "sglang", "gpu": "B200-SXM-180GB", "weight_precision": "fp8"}
    assert poll_steps(only(**{**usual, "isl": "8192", "concurrency": "64", **cells})) == polls


def test_equal_lengths_keep_clients_in_step_where_prompts_go_first() -> None:
    drawn = first_token(only(engine="sglang"), CALIBRATION)
    equal = first_token(only(engine="sglang", osl="1000"), CALIBRATION)
    dated = first_token(only(engine="sglang", osl="1000", source_date="2026-01-05"), CALIBRATION)
    assert equal.in_step_seconds > 5 * drawn.prompt_seconds
    assert drawn.in_step_seconds == dated.in_step_seconds == 0.0
    assert first_token(only(engine="trtllm", osl="1000"), CALIBRATION).turn_seconds > 0.0
    assert first_token(only(engine="trtllm"), CALIBRATION).turn_seconds == 0.0


def test_ranks_with_attention_of_their_own_wait_for_each_other() -> None:
    cells = {"model": "DeepSeek-R1", "tp": "1", "n_gpus": "8", "attn_dp": "8", "moe_ep": "8"}
    apart = only(engine="trtllm", weight_precision="fp8", gpu="B200-SXM-180GB", **cells)
    parts = first_token(apart, CALIBRATION)
    assert parts.balance_seconds == pytest.approx(BALANCE_STEPS * parts.step_seconds)
    assert first_token(only(engine="trtllm"), CALIBRATION).balance_seconds == 0.0


def test_sparse_layers_start_slowly_without_captured_steps() -> None:
    run = only(engine="trtllm", model="Qwen3-30B-A3B", source_date="2026-06-01")
    parts = first_token(run, CALIBRATION)
    late, early = (TERMS.index(each + "prompt_layer_seconds") for each in ("", "early_"))
    assert parts.features[late] == parts.layer_starts > 0.0
    older = replace(parts, early_share=1.0).features
    assert (older[late], older[early]) == (0.0, parts.layer_starts)


def test_newer_engines_share_less_of_the_early_cost() -> None:
    dates = ("2025-06-01", "2026-01-15", "2026-06-01", "")
    shares = [first_token(only(source_date=each), CALIBRATION).early_share for each in dates]
    assert shares == [1.0, pytest.approx(0.47, abs=0.02), 0.0, 0.5]


def test_an_offered_rate_beyond_the_prompts_piles_them_up() -> None:
    slow, fast, at_once = (
        open_loop_first_token_seconds(only(mode="online", qps_offered=each), CALIBRATION)
        for each in ("2", "16", "inf")
    )
    assert slow < fast < at_once
    assert at_once > 1.0


HALVES = {
    "mode": "online-disagg",
    "tp": "",
    "n_gpus": "4",
    "prefill_cfg": "workers=,bs=,tp=1,pp=1,dp=1,moe_tp=1,moe_ep=1",
    "decode_cfg": "workers=,bs=,tp=2,pp=1,dp=1,moe_tp=1,moe_ep=1",
}


def halves(**cells: str) -> Disaggregated:
    found = disaggregated(row(**{**HALVES, **cells}), TABLES)
    assert isinstance(found, Disaggregated)
    return found


def test_what_one_decode_worker_leaves_is_prefill_workers() -> None:
    found = halves()
    assert found.prefill_workers == 2.0
    assert (found.prefill.layout.count, found.decode.layout.count) == (1, 2)


def test_the_wait_for_prefill_workers_is_bounded_by_what_tokens_leave() -> None:
    _, prompt, wait = halves(concurrency="64").features(CALIBRATION)
    _, _, crowd = halves(concurrency="6400").features(CALIBRATION)
    assert 0.0 < wait < 64 * prompt / 2
    assert crowd / 6400 < wait / 64


def figure(score: str, **cells: str) -> RequestFigure:
    (found,) = (each for each in figures(row(**cells), TABLES) if each.score == score)
    return found


def predicted(score: str, **cells: str) -> Interval:
    found = figure(score, **cells).predicted(CALIBRATION)
    assert isinstance(found, Interval)
    return found


def test_figures_come_with_a_range_or_a_reason() -> None:
    found = predicted("ttft")
    assert found.low < found.mid < found.high
    assert found.mid == pytest.approx(seconds())
    assert predicted("ttft_disagg", engine="sglang", **HALVES).mid > 0.0
    for cells, score in (
        ({**HALVES, "prefill_cfg": ""}, "ttft_disagg"),
        ({"gpu": "Nobody-9000"}, "ttft"),
        ({"mode": "mlperf-server", "isl": "", "ttft_ms_p99": "450"}, "ttft_p99"),
    ):
        assert isinstance(figure(score, **cells).predicted(CALIBRATION), str)


def test_runs_alike_move_a_mean_and_narrow_its_range() -> None:
    plain = figure("ttft")
    where = plain.site(CALIBRATION)
    assert where is not None
    slower = Residual(Kernel(((0,),), 1.0, (1.0,) * 11), [where], [0.2], [NEAR])
    found = plain.predicted(CALIBRATION.with_residuals({"ttft": slower}))
    assert isinstance(found, Interval)
    assert found.mid == pytest.approx(seconds() * math.exp(0.2))
    assert found.spread == pytest.approx(NEAR.spread)


def test_a_row_has_the_figures_of_its_mode_and_columns() -> None:
    def scores(**cells: str) -> list[str]:
        return [each.score for each in figures(row(**cells), TABLES)]

    assert scores() == ["ttft"]
    assert scores(**HALVES) == ["ttft_disagg"]
    assert scores(mode="mlperf-server", ttft_ms_p99="450") == ["ttft_p99"]


def test_tails_are_above_means() -> None:
    open_loop = {"mode": "online", "qps_offered": "5"}
    cells = {**open_loop, "ttft_ms_p99": "300", "tpot_ms_p99": "20"}
    assert predicted("ttft_p99", **cells).mid > 1.3 * predicted("ttft", **cells).mid
    assert 0.003 < predicted("tpot_p99", **cells).mid < 0.04


def test_the_fit_finds_the_constants_of_each_engine() -> None:
    random = np.random.default_rng(0)
    features = random.uniform(0.5, 2.0, (60, 2))
    engines = ("vllm", "sglang") * 30
    true = np.array([[2.0, 0.5] if each == "vllm" else [1.0, 1.5] for each in engines])
    rows = Rows(
        features,
        np.zeros(60),
        (true * features).sum(axis=1),
        engines,
        tuple(map(str, range(60))),
        ("2025-11",) * 60,
    )
    constants = (Constant("a", 1.0, 1.0, 1.0), Constant("b", 1.0, 1.0, 1.0))
    values = fit(constants, rows, 0.1)
    assert np.abs(rows.residuals(values)).max() < 0.02
    units = ["even" if index % 4 < 2 else "odd" for index in range(60)]
    assert np.abs(left_out(constants, rows, units, 0.1)).max() < 0.03


@pytest.mark.parametrize(("kind_width", "least", "most"), [(0.0, 1.1, 1.6), (1.0, 2.2, 3.0)])
def test_an_engine_that_nothing_tells_of_takes_after_its_kind(
    kind_width: float, least: float, most: float
) -> None:
    """SGLang's rows tell of 3, vLLM's of 1, and TensorRT-LLM's of another constant alone."""
    engines = ("sglang", "vllm", "triton") * 20
    features = np.array([(0.0, 1.0) if each == "triton" else (1.0, 0.0) for each in engines])
    seconds = np.array([3.0 if each == "sglang" else 1.0 for each in engines])
    groups, dates = tuple(map(str, range(60))), ("2025-11",) * 60
    rows = Rows(features, np.zeros(60), seconds, engines, groups, dates)
    constants = (Constant("a", 1.0, 0.5, 0.3, kind_width), Constant("b", 1.0, 0.5, 0.3))
    untold = fit(constants, rows, 0.1)[ENGINES.index("triton"), 0]
    assert least < untold < most
    shipped = constant_rows(constants, rows, 0.1)
    of_engine = {each.format: each for each in shipped if each.term == "a"}
    assert of_engine["triton"].value == pytest.approx(untold)
    assert of_engine["triton"].spread > 2 * of_engine["sglang"].spread


def test_workers_and_their_batches_count_the_clients() -> None:
    cells = {
        "mode": "online-disagg", "n_gpus": "16", "tp": "", "prefill_cfg": "workers=8,bs=1,tp=1",
        "decode_cfg": "workers=2,bs=64,tp=1,dp=4",
    }  # fmt: skip
    told = disaggregated(row(**cells, concurrency=""), TABLES)
    stated = disaggregated(row(**cells, concurrency="512"), TABLES)
    assert isinstance(told, Disaggregated)
    assert isinstance(stated, Disaggregated)
    assert told.features(CALIBRATION) == stated.features(CALIBRATION)
