"""Targets ``serve_tpot``, ``serve_ttft``, ``serve_throughput`` and the smaller ones of serving."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from bench.accuracy import Accuracy, Vector, accuracy
from bench.fit.serving_constants import PHASE
from bench.fit.serving_folds import Scored, out_of_fold, scores
from bench.fit.serving_samples import measured
from bench.model.results import OUT_OF_FOLD, SHIPPED, Request, Result, split_of
from poolwise.model.efficiency import Calibration
from poolwise.model.serving.queueing import Z95

RATIOS = {"tpot": "itl_ratio", "ttft": "ttft_ratio"}


def results(request: Request) -> Iterator[Result]:
    """Each target on each split with the shipped constants; out of fold on the open rows."""
    every = measured(request.folder, request.tables)
    shipped = Calibration(request.tables.efficiencies)
    yield from _results(SHIPPED, scores(every, shipped), shipped)
    if request.refit:
        opened = [each for each in every if split_of(each.run.row) == "open"]
        yield from _results(OUT_OF_FOLD, out_of_fold(opened, request.tables), shipped)


def _results(protocol: str, scored: Iterable[Scored], calibration: Calibration) -> Iterator[Result]:
    found: dict[tuple[str, str], list[Scored]] = {}
    for each in scored:
        key = f"serve_{each.sample.target.name}", split_of(each.sample.run.row)
        found.setdefault(key, []).append(each)
    for (target, split), chosen in found.items():
        yield Result(target, split, protocol, _accuracy(chosen, calibration))


def _accuracy(scored: Sequence[Scored], calibration: Calibration) -> Accuracy:
    predicted = np.array([each.predicted for each in scored])
    measurements = np.array([each.sample.run.measured for each in scored])
    return accuracy(predicted, measurements, _covered(scored, calibration))


def _covered(scored: Sequence[Scored], calibration: Calibration) -> Vector | None:
    """Whether each row lies in the interval that ships; None where none does."""
    term = RATIOS.get(scored[0].sample.target.name)
    if term is None:
        return None
    return np.array([abs(each.residual) <= _half_width(each, term, calibration) for each in scored])


def _half_width(scored: Scored, term: str, calibration: Calibration) -> float:
    run = scored.sample.run
    ratio = calibration.efficiency(PHASE, term, run.machine.device, run.work.engine)
    return Z95 * ratio.spread
