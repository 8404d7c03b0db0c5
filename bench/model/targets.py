"""All that is scored: each measured table with its figures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench import tables as measured
from bench.calibrations import Calibrations
from bench.model import kernels, links, serving, training
from bench.model.outcome import RATES, Outcome
from poolwise.tables import Tables

TARGETS = (training.TARGET, serving.TARGET, links.TARGET, kernels.TARGET)


def outcomes(folder: Path, tables: Tables) -> Iterator[Outcome]:
    """Every figure of the tables that are in ``folder``, no row by constants it had a part in."""
    for target in TARGETS:
        if measured.exists(folder, target.table):
            constants = Calibrations.load(target.phases, tables)
            rows = measured.read(folder, target.table)
            for each in target.outcomes(rows, tables, constants.of):
                if each.measured > 0.0:
                    fold = constants.fold_of(each.row)
                    yield replace(each, fold=fold, beside=_beside(each, constants))


def _beside(each: Outcome, constants: Calibrations) -> dict[frozenset[int], float]:
    sign = -1.0 if each.score in RATES else 1.0
    logs = constants.log_factors_beside(each.row, each.score, each.site)
    return {folds: math.exp(sign * log) for folds, log in logs.items()}
