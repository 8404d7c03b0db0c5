"""Rows whose cells are empty, wild or unknown are predicted, or not, for a reason."""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bench.columns import COLUMNS
from bench.generic_models import model_of
from bench.model import serving, training
from bench.model.outcome import Outcome, Target, attempted
from bench.model.regression import SAMPLE
from bench.model.targets import TARGETS
from bench.tables import Row, number, read
from poolwise.errors import InvalidInput
from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import Interval
from poolwise.tables import load

TABLES = load()
CALIBRATION = Calibration(TABLES.efficiencies)
WILD = ("", "n/a", "-1", "0", "1e99", "1e300", "nan", "inf", "x,y", "tp=abc", "a=b=c", "Mystery-7B")
KEPT = ("row_id", "source", "group")
by_table = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.table)


def outcomes(target: Target, rows: list[Row]) -> list[Outcome]:
    return list(target.outcomes(rows, TABLES, lambda _: CALIBRATION))


@by_table
def test_the_sample_is_predicted(target: Target) -> None:
    found = outcomes(target, read(SAMPLE, target.table))
    assert found
    assert all(each.predicted for each in found if each.is_eligible)


@pytest.mark.parametrize("seed", range(5, 9))
@by_table
def test_wild_cells_are_told_and_stop_nothing(target: Target, seed: int) -> None:
    chosen = random.Random(seed)
    rows = read(SAMPLE, target.table)
    for row in rows:
        column = chosen.choice([each for each in row if each not in KEPT])
        row[column] = chosen.choice(WILD)
    for each in outcomes(target, rows):
        assert (each.predicted is None) is bool(each.reason), each.row["row_id"]
        assert math.isfinite(each.measured)


@pytest.mark.parametrize("cell", ["inf", "tp=abc", "a=b=c", "1e300"])
@by_table
def test_no_cell_stops_the_others(target: Target, cell: str) -> None:
    rows = read(SAMPLE, target.table)
    of_kinds = {(row.get("mode"), row.get("op"), row.get("task")): row for row in rows}
    for row in of_kinds.values():
        for column in row:
            for each in outcomes(target, [row | {column: cell}]):
                assert (each.predicted is None) is bool(each.reason), column


@pytest.mark.parametrize(
    ("target", "cells"),
    [
        (serving.TARGET, {"mode": "online-agg", "isl": "1e308", "osl": "1e308"}),
        (serving.TARGET, {"mode": "online-disagg", "prefill_cfg": "tp=4,dp=0"}),
        (training.TARGET, {"model": "Mystery-X", "params_b": "1e300"}),
    ],
)
def test_what_no_run_can_be_built_of_is_told(target: Target, cells: Row) -> None:
    rows = [row | cells for row in read(SAMPLE, target.table) if _is_of(row, cells)]
    found = outcomes(target, rows)
    assert found
    assert any(each.reason.startswith("a cell cannot be used") for each in found)


def _is_of(row: Row, cells: Row) -> bool:
    return "mode" not in cells or row["mode"] == cells["mode"]


@pytest.mark.parametrize("spell", [str.upper, str.lower, str.title])
@by_table
def test_names_and_words_in_any_case_are_predicted_alike(
    target: Target, spell: Callable[[str], str], tmp_path: Path
) -> None:
    rows = read(SAMPLE, target.table)
    as_written = {"row_id"} if target is not training.TARGET else {"row_id", "interconnect"}
    spelt = [
        {name: cell if name in as_written else spell(cell) for name, cell in row.items()}
        for row in rows
    ]
    with (tmp_path / f"{target.table}.csv").open("w", encoding="utf-8", newline="") as lines:
        into = csv.DictWriter(lines, list(spelt[0]))
        into.writeheader()
        into.writerows(spelt)
    found = outcomes(target, read(tmp_path, target.table))
    expected = outcomes(target, rows)
    assert [each.predicted for each in found] == [each.predicted for each in expected]
    assert [each.row["gpu"] for each in found] == [each.row["gpu"] for each in expected]


@pytest.mark.parametrize("name", ["STABLE-DIFFUSION-V2", "stable_diffusion v2"])
def test_benchmarks_of_pictures_are_found_in_any_spelling(name: str) -> None:
    cells = dict.fromkeys(COLUMNS["train_measured"], "") | {"params_b": "0.86"}
    counted = model_of(cells | {"model": "stable-diffusion-v2"}, TABLES)
    assert counted is not None
    assert model_of(cells | {"model": name}, TABLES) == replace(counted, name=name)


@pytest.mark.parametrize(
    ("mode", "reason"), [("", "mode is not stated"), ("bulk", "mode is not known: bulk")]
)
def test_rows_of_no_known_mode_are_counted(mode: str, reason: str) -> None:
    rows = [row | {"mode": mode} for row in read(SAMPLE, serving.TARGET.table)]
    found = [each for each in outcomes(serving.TARGET, rows) if "p99" not in each.score]
    timed = [row for row in rows if number(row, "tpot_ms_mean") or number(row, "ttft_ms_mean")]
    assert {each.reason for each in found} == {reason}
    assert {each.row["row_id"] for each in found if each.score != serving.OFFLINE} == {
        row["row_id"] for row in timed
    }
    assert {each.row["row_id"] for each in found} == {row["row_id"] for row in rows}


@by_table
def test_an_accelerator_that_no_table_knows_has_a_reason(target: Target) -> None:
    rows = [{**row, "gpu": "FutureChip"} for row in read(SAMPLE, target.table)[:3]]
    for each in outcomes(target, rows):
        assert each.reason


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (Interval(2.0, 1.0, 3.0), ""),
        (Interval(float("inf"), 1.0, float("inf")), "no finite prediction"),
        (Interval(1e300, 1e299, 1e301), "no finite prediction"),
        (Interval(1e-310, 1e-311, 1e-309), "no finite prediction"),
        ("no lengths", "no lengths"),
        (InvalidInput("H100", "cannot multiply x"), "H100: cannot multiply x"),
        (ZeroDivisionError("division by zero"), "a cell cannot be used"),
    ],
)
def test_an_attempt_ends_in_a_prediction_or_a_reason(found: object, reason: str) -> None:
    def predict() -> Interval | str:
        if isinstance(found, Exception):
            raise found
        assert isinstance(found, Interval | str)
        return found

    predicted, told = attempted(predict)
    assert told.startswith(reason)
    assert (predicted is None) is bool(told)


def test_a_peak_is_predicted_without_a_rate() -> None:
    cells = next(each for each in read(SAMPLE, "train_measured") if each["tokens_per_s_per_gpu"])
    cells |= {"tokens_per_s_per_gpu": "", "samples_per_s": "", "peak_mem_gib": "60"}
    (found,) = outcomes(training.TARGET, [cells])
    assert (found.score, bool(found.predicted)) == ("peak_memory", True)


def test_a_text_model_without_a_length_does_not_count() -> None:
    cells = dict.fromkeys(COLUMNS["train_measured"], "") | {
        "gpu": "H100-SXM5-80GB", "n_gpus": "8", "global_batch": "64", "precision": "bf16",
        "samples_per_s": "12", "params_b": "8",
    }  # fmt: skip
    text, unknown, pictures = outcomes(
        training.TARGET,
        [cells | {"model": name} for name in ("llama-3.1-8b", "Mystery-X", "resnet-50")],
    )
    assert not text.is_eligible
    assert not unknown.is_eligible
    assert pictures.is_eligible
    assert pictures.predicted


def test_a_model_trained_in_int8_is_predicted() -> None:
    cells = dict.fromkeys(COLUMNS["train_measured"], "") | {
        "gpu": "TPU v5e", "n_gpus": "256", "global_batch": "512", "precision": "int8",
        "seq_len": "2048", "tokens_per_s_per_gpu": "5000", "model": "gpt-16b", "row_id": "T1",
    }  # fmt: skip
    in_8_bits, in_16 = outcomes(training.TARGET, [cells, cells | {"precision": "bf16"}])
    assert in_8_bits.predicted
    assert in_16.predicted
    assert 1.0 < in_8_bits.predicted.mid / in_16.predicted.mid < 2.0


@pytest.mark.parametrize("word", ["n/a", "NA", "-", "nan"])
def test_a_format_that_is_not_stated_in_words_is_not_stated(tmp_path: Path, word: str) -> None:
    rows = read(SAMPLE, "serve_measured")
    with (tmp_path / "serve_measured.csv").open("w", encoding="utf-8", newline="") as file:
        into = csv.DictWriter(file, list(rows[0]))
        into.writeheader()
        formats = ("moe_precision", "kv_precision", "weight_precision")
        into.writerows(row | {name: row[name] or word for name in formats} for row in rows)
    assert read(tmp_path, "serve_measured") == rows


def test_a_rate_that_tells_no_steps_is_told() -> None:
    cells = next(each for each in read(SAMPLE, "train_measured") if each["tokens_per_s_per_gpu"])
    for changes in ({"seq_len": "", "samples_per_s": ""}, {"model": "resnet-50"}):
        found, *_ = outcomes(training.TARGET, [cells | {"samples_per_s": ""} | changes])
        assert found.predicted is None
        assert "tells no steps" in found.reason
