"""``train_dense``, ``train_moe``: tokens or samples per second per accelerator; ``peak_memory``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from bench.attempts import attempt
from bench.columns import GIB
from bench.fit import training as fit
from bench.fit.training_constants import PHASE
from bench.generic_models import model_of
from bench.memory import least_memory
from bench.model.outcome import CalibrationOf, Outcome, Target, attempted
from bench.tables import Row, figure, number, whole
from bench.training_runs import LaidRun, described, laid, problem, sequence_tokens
from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import Interval
from poolwise.model.shapes import Custom, Model, Transformer
from poolwise.model.training.memory import peak_bytes
from poolwise.model.training.step import predict_training
from poolwise.tables import EfficiencyRow, Tables

STATED = ("model", "gpu", "n_gpus", "global_batch", "precision")


def outcomes(
    rows: Iterable[Row], tables: Tables, calibration_of: CalibrationOf
) -> Iterator[Outcome]:
    """The rate and the peak of each row, where it states them."""
    for row in rows:
        if _rate(row):
            yield _of_rate(row, tables, calibration_of)
        if figure(row, "peak_mem_gib"):
            yield _of_peak(row, tables, calibration_of)


def _of_rate(row: Row, tables: Tables, calibration_of: CalibrationOf) -> Outcome:
    rate = _rate(row)

    def predict() -> Interval | str:
        calibration = calibration_of(row)
        found = _laid(row, tables, calibration)
        if isinstance(found, str):
            return found
        run = found.run
        if math.isnan(run.step_seconds):
            return "its rate tells no steps: of tokens, without a length in them"
        seconds = predict_training(run.work, found.layout, run.machine, calibration).step_seconds
        items = rate * run.step_seconds
        return Interval(items / seconds.mid, items / seconds.high, items / seconds.low)

    predicted, reason = attempted(predict)
    model = attempt(partial(model_of, row, tables))
    shape = model.shape if isinstance(model, Model) else None
    # A sample of a picture model is as long as its shape says.
    has_length = bool(sequence_tokens(row)) or isinstance(shape, Custom)
    eligible = all(row.get(column) for column in STATED) and has_length
    return Outcome(_name(row, shape), row, rate, eligible, predicted, reason)


def _of_peak(row: Row, tables: Tables, calibration_of: CalibrationOf) -> Outcome:
    """The layout decides the peak, so a row has to state it."""

    def predict() -> Interval | str:
        found = _laid(row, tables, calibration_of(row))
        if isinstance(found, str):
            return found
        return peak_bytes(least_memory(found)).scaled(1 / GIB)

    predicted, reason = attempted(predict)
    eligible = all(row.get(column) for column in (*STATED, "tp", "micro_batch"))
    peak = figure(row, "peak_mem_gib") or 0.0
    return Outcome("peak_memory", row, peak, eligible, predicted, reason)


def _laid(row: Row, tables: Tables, calibration: Calibration) -> LaidRun | str:
    run = described(row, tables)
    if run is None:
        return problem(row, tables) or "cannot be told"
    return laid(run, calibration)


def _rate(row: Row) -> float:
    """Tokens, else samples, per second and accelerator; 0 where neither is stated."""
    tokens, samples = figure(row, "tokens_per_s_per_gpu"), figure(row, "samples_per_s")
    return tokens or (samples or 0.0) / (whole(row, "n_gpus") or 1)


def _name(row: Row, shape: Transformer | Custom | None) -> str:
    """By the shape, else by the counts: some parameters rest, or none does."""
    if isinstance(shape, Transformer):
        return "train_moe" if shape.experts else "train_dense"
    total, active = number(row, "params_b"), number(row, "active_b")
    return "train_moe" if total and active and active < 0.9 * total else "train_dense"


def refit(rows: Sequence[Row], tables: Tables) -> list[EfficiencyRow]:
    """Constants of the training step."""
    return fit.refit(rows, tables)


TARGET = Target("train_measured", (PHASE,), outcomes, refit)
