"""Targets ``train_dense``, ``train_moe``, ``train_tuning``: tokens or samples per second."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from bench.accuracy import Accuracy, Vector, accuracy
from bench.fit.training import laid_runs, not_fitted, out_of_fold
from bench.model.results import OUT_OF_FOLD, SHIPPED, Request, Result, indices_by_split
from bench.training_runs import LaidRun
from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import Interval
from poolwise.model.training.step import predict_training

TARGETS: dict[str, Callable[[LaidRun], bool]] = {
    "train_dense": lambda each: each.run.is_pretraining and not each.run.is_sparse,
    "train_moe": lambda each: each.run.is_pretraining and each.run.is_sparse,
    "train_tuning": lambda each: not each.run.is_pretraining,
}


def results(request: Request) -> Iterator[Result]:
    """Each target on each split with the shipped constants; out of fold on the open rows."""
    several = laid_runs(request.folder, request.tables)
    calibration = Calibration(request.tables.efficiencies)
    for split, indices in indices_by_split([each.run.row for each in several]).items():
        yield from _shipped(split, [several[index] for index in indices], calibration)
        if split == "open" and request.refit:
            yield from _refitted([several[index] for index in indices], request)


def _shipped(split: str, several: Sequence[LaidRun], calibration: Calibration) -> Iterator[Result]:
    for target, belongs in TARGETS.items():
        chosen = [each for each in several if belongs(each)]
        if chosen:
            intervals = [_interval(each, calibration) for each in chosen]
            yield Result(target, split, SHIPPED, _accuracy(chosen, intervals))


def _refitted(several: Sequence[LaidRun], request: Request) -> Iterator[Result]:
    errors = out_of_fold(several, not_fitted(request.tables))
    for target, belongs in TARGETS.items():
        chosen = np.array([belongs(each) for each in several])
        if chosen.any():
            measured = _rates(np.array([each.run.step_seconds for each in several]))
            predicted = measured * np.exp(-errors)
            found = accuracy(predicted[chosen], measured[chosen])
            yield Result(target, "open", OUT_OF_FOLD, found)


def _interval(each: LaidRun, calibration: Calibration) -> Interval:
    run = each.run
    return predict_training(run.work, each.layout, run.machine, calibration).step_seconds


def _accuracy(several: Sequence[LaidRun], intervals: Sequence[Interval]) -> Accuracy:
    measured = np.array([each.run.step_seconds for each in several])
    predicted = np.array([interval.mid for interval in intervals])
    inside = [
        interval.low <= value <= interval.high
        for interval, value in zip(intervals, measured, strict=True)
    ]
    scale = np.array([_items_per_step(each) for each in several])
    return accuracy(scale * _rates(predicted), scale * _rates(measured), np.array(inside))


def _items_per_step(each: LaidRun) -> float:
    """Tokens (or samples) of one step, per accelerator."""
    work = each.run.work
    return work.global_batch_samples * (work.sequence_tokens or 1) / each.run.count


def _rates(seconds: Vector) -> Vector:
    return 1 / seconds
