"""``train_dense``, ``train_moe``: tokens or samples per second per accelerator; ``peak_memory``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bench.fit import training as fit
from bench.fit.training_constants import PHASE
from bench.memory import least_memory
from bench.model.outcome import CalibrationOf, Outcome, Target
from bench.tables import Row, number, whole
from bench.training_runs import LaidRun, laid, problem, runs
from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import Interval
from poolwise.model.training.memory import peak_bytes
from poolwise.model.training.step import predict_training
from poolwise.tables import EfficiencyRow, Tables

GIB = 2**30
STATED = ("model", "gpu", "n_gpus", "global_batch", "precision")


def outcomes(
    rows: Iterable[Row], tables: Tables, calibration_of: CalibrationOf
) -> Iterator[Outcome]:
    """The rate and the peak of each row, where it states them."""
    for row in rows:
        rate, peak = _rate(row), number(row, "peak_mem_gib")
        if rate or peak:
            calibration = calibration_of(row)
            found = _laid(row, tables, calibration)
            if rate:
                yield _of_rate(row, rate, found, calibration)
            if peak:
                yield _of_peak(row, peak, found)


def _laid(row: Row, tables: Tables, calibration: Calibration) -> LaidRun | str:
    run = next(iter(runs([row], tables)), None)
    if run is None:
        return problem(row, tables) or "no rate is stated"
    return laid(run, calibration) or "no layout divides the run"


def _rate(row: Row) -> float | None:
    tokens, samples = number(row, "tokens_per_s_per_gpu"), number(row, "samples_per_s")
    if tokens:
        return tokens
    return samples / (whole(row, "n_gpus") or 1) if samples else None


def _of_rate(row: Row, rate: float, found: LaidRun | str, calibration: Calibration) -> Outcome:
    stated = all(row[column] for column in STATED)
    eligible = stated and bool(row["seq_len"] or row["samples_per_s"])
    if isinstance(found, str):
        return Outcome(_name(row), row, rate, eligible, None, found)
    run = found.run
    seconds = predict_training(run.work, found.layout, run.machine, calibration).step_seconds
    items = rate * run.step_seconds
    predicted = Interval(items / seconds.mid, items / seconds.high, items / seconds.low)
    name = "train_moe" if run.is_sparse else "train_dense"
    return Outcome(name, row, rate, eligible, predicted)


def _name(row: Row) -> str:
    """By the counts, where the shape is not known: some parameters rest, or none does."""
    total, active = number(row, "params_b"), number(row, "active_b")
    return "train_moe" if total and active and active < 0.9 * total else "train_dense"


def _of_peak(row: Row, peak: float, found: LaidRun | str) -> Outcome:
    """The layout decides the peak, so a row has to state it."""
    eligible = all(row[column] for column in (*STATED, "tp", "micro_batch"))
    if isinstance(found, str):
        return Outcome("peak_memory", row, peak, eligible, None, found)
    predicted = peak_bytes(least_memory(found)).scaled(1 / GIB)
    return Outcome("peak_memory", row, peak, eligible, predicted)


def refit(rows: Sequence[Row], tables: Tables) -> list[EfficiencyRow]:
    """Constants of the training step."""
    return fit.refit(rows, tables)


TARGET = Target("train_measured", (PHASE,), outcomes, refit)
