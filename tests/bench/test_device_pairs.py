"""Workloads that were measured fused and not, and the constants that they give."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.device.pairs import Pair, error, fitted, main, pairs
from bench.tables import OWN_FOLDER, Row, read
from poolwise.model.calibration import shipped
from poolwise.model.training import eager
from poolwise.model.training.eager import Traffic
from poolwise.tables import load

TABLES = load()


def own() -> list[Row]:
    return read(OWN_FOLDER, "train_measured")


def found(rows: list[Row]) -> list[Pair]:
    return list(pairs(rows, TABLES, shipped(TABLES)))


def test_shipped_constants_are_those_of_the_pairs() -> None:
    several = found(own())
    assert len(several) == 18
    assert fitted(several) == pytest.approx(list(eager.TRAFFIC_BYTES), abs=0.6)


def test_a_model_that_is_left_out_is_met() -> None:
    several = found(own())
    errors = [
        abs(error(pair, fitted([each for each in several if each.model != pair.model])))
        for pair in several
    ]
    assert np.median(errors) < 0.05
    assert max(errors) < 0.25


def test_known_traffic_is_found_again() -> None:
    truth = np.array([10.0, 20.0, 30.0, 40.0])
    several = [replace(pair, more_bytes=float(np.dot(pair.counts, truth))) for pair in found(own())]
    assert fitted(several) == pytest.approx(truth)


def test_a_run_alone_is_no_pair() -> None:
    fused = [row for row in own() if row["framework"].endswith("compiled")]
    assert not found(fused)
    other = [{**row, "framework": "pytorch, eager", "micro_batch": "1"} for row in fused]
    assert len(found(fused + other)) < len(fused)


def test_the_program_prints_constants_and_errors(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["pairs"])
    assert main() == 0
    printed = capsys.readouterr().out
    assert "18 pairs" in printed
    assert "model left out: median 2.7 %" in printed
    monkeypatch.setattr(sys, "argv", ["pairs", "--data", str(tmp_path)])
    assert main() == 2
    assert "has no train_measured" in capsys.readouterr().err
    assert Traffic._fields == ("hidden", "adapter", "weight", "logit")
