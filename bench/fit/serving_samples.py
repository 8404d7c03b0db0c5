"""Measured serving runs, each with the function that predicts what was measured of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench import tables as measured_tables
from bench.accuracy import Vector
from bench.serving_runs import (
    Run,
    first_token_seconds,
    generated_tokens_per_second,
    runs,
    token_seconds,
)
from poolwise.model.efficiency import Calibration
from poolwise.model.serving.costs import arithmetic
from poolwise.model.serving.memory import serving_memory
from poolwise.tables import Tables

Predictor = Callable[[Run, Calibration], float]


@dataclass(frozen=True, slots=True)
class Target:
    """Rows of one mode, by one column."""

    name: str
    mode: str
    column: str
    predict: Predictor


TOKEN = Target("tpot", "online-agg", "tpot_ms_mean", token_seconds)
FIRST_TOKEN = Target("ttft", "online-agg", "ttft_ms_mean", first_token_seconds)
THROUGHPUT = Target(
    "throughput", "offline-max-throughput", "out_tok_s_total", generated_tokens_per_second
)
STEP_TARGETS = (
    TOKEN,
    THROUGHPUT,
    Target("batch-1", "decode-bs1", "tpot_ms_mean", token_seconds),
    Target("static-batch", "static-batch", "out_tok_s_total", generated_tokens_per_second),
    Target("prefill", "prefill-latency", "ttft_ms_mean", first_token_seconds),
)
"""What the engine's step alone explains."""
REQUEST_TARGETS = (FIRST_TOKEN,)
"""What it takes beside the step."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured figure."""

    run: Run
    target: Target

    @property
    def explains_step(self) -> bool:
        """Whether the engine's step alone decides it."""
        return self.target in STEP_TARGETS

    @property
    def unit(self) -> str:
        """Arithmetic of its products."""
        return arithmetic(self.run.layout.weight_format, self.run.machine.device)

    def predicted(self, calibration: Calibration) -> float:
        """The figure by the model."""
        return self.target.predict(self.run, calibration)


def measured(folder: Path, tables: Tables) -> list[Sample]:
    """Usable rows of all targets, but for those that the model says do not fit the memory."""
    rows = measured_tables.read(folder, "serve_measured")
    calibration = Calibration(tables.efficiencies)
    found = [
        Sample(run, target)
        for target in (*STEP_TARGETS, *REQUEST_TARGETS)
        for run in runs(rows, tables, [target.mode], target.column)
    ]
    return [each for each in found if _fits(each.run, calibration)]


def residuals(chosen: Sequence[Sample], calibration: Calibration) -> Vector:
    """ln(predicted / measured)."""
    ratios = [each.predicted(calibration) / each.run.measured for each in chosen]
    return np.log(np.array(ratios, dtype=np.float64))


def _fits(run: Run, calibration: Calibration) -> bool:
    return serving_memory(run.work, run.layout, run.machine, calibration).fits
