"""``train_dense``, ``train_moe``: tokens or samples per second per accelerator; ``peak_memory``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bench.fit.training import PHASE, fit, not_fitted
from bench.memory import least_memory
from bench.model.outcome import CalibrationOf, Outcome, Target
from bench.tables import Row, number, whole
from bench.training_runs import LaidRun, laid, runs
from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import Interval
from poolwise.model.training.step import predict_training
from poolwise.tables import EfficiencyRow, Tables

GIB = 2**30
STATED = ("model", "gpu", "n_gpus", "global_batch", "precision")


def outcomes(
    rows: Iterable[Row], tables: Tables, calibration_of: CalibrationOf
) -> Iterator[Outcome]:
    """The rate and the peak of each row, where it states them."""
    for row in rows:
        if _rate(row) or number(row, "peak_mem_gib"):
            found = _laid(row, tables, calibration_of(row))
            yield from _rates(row, found, calibration_of(row))
            yield from _peaks(row, found)


def _laid(row: Row, tables: Tables, calibration: Calibration) -> LaidRun | str:
    run = next(iter(runs([row], tables)), None)
    if run is None:
        return "model, accelerator or batch is not known"
    return laid(run, calibration) or "no layout divides the run"


def _rates(row: Row, found: LaidRun | str, calibration: Calibration) -> Iterator[Outcome]:
    rate = _rate(row)
    if rate is None:
        return
    eligible = all(row[column] for column in STATED) and bool(
        row["seq_len"] or row["samples_per_s"]
    )
    if isinstance(found, str):
        yield Outcome(_name(row), row, rate, eligible, None, found)
        return
    run = found.run
    seconds = predict_training(run.work, found.layout, run.machine, calibration).step_seconds
    items = rate * run.step_seconds
    predicted = Interval(items / seconds.mid, items / seconds.high, items / seconds.low)
    yield Outcome("train_moe" if run.is_sparse else "train_dense", row, rate, eligible, predicted)


def _rate(row: Row) -> float | None:
    tokens, samples = number(row, "tokens_per_s_per_gpu"), number(row, "samples_per_s")
    if tokens:
        return tokens
    return samples / (whole(row, "n_gpus") or 1) if samples else None


def _name(row: Row) -> str:
    total, active = number(row, "params_b"), number(row, "active_b")
    return "train_moe" if total and active and active < 0.9 * total else "train_dense"


def _peaks(row: Row, found: LaidRun | str) -> Iterator[Outcome]:
    peak = number(row, "peak_mem_gib")
    if peak is None:
        return
    eligible = all(row[column] for column in STATED)
    if isinstance(found, str):
        yield Outcome("peak_memory", row, peak, eligible, None, found)
        return
    needed = least_memory(found).needed_bytes / GIB
    yield Outcome("peak_memory", row, peak, eligible, Interval(needed, needed, needed))


def refit(rows: Sequence[Row], tables: Tables) -> list[EfficiencyRow]:
    """Constants of the training step."""
    calibration = Calibration(tables.efficiencies)
    several = [each for run in runs(rows, tables) if (each := laid(run, calibration)) is not None]
    fixed = not_fitted(tables)
    pool, parameters = fit(several, fixed)
    formats = [each.run.work.precision for each in several]
    kept = [row for row in fixed if row.phase == PHASE]
    return [*kept, *pool.rows(parameters, formats, lambda _: 0.1, "refit")]


TARGET = Target("train_measured", (PHASE,), outcomes, refit)
