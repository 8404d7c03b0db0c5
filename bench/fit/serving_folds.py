"""Predictions by constants that never saw the unit of the row, and the spreads they leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from bench.fit.rows import Behind, constant_row
from bench.fit.serving_constants import PHASE, fitted_rows, is_specified, not_fitted
from bench.fit.serving_samples import Sample, residuals, thinned
from bench.fit.serving_unlabelled import is_labelled, unlabelled_rows
from bench.serving_runs import ENGINES
from poolwise.model.efficiency import EVERY, Calibration
from poolwise.model.serving.queueing import Z95
from poolwise.tables import EfficiencyRow, Tables

KNOWN = "bench.fit.serving: nine in ten of the residuals of groups that were left out"
STRANGERS = "bench.fit.serving: nine in ten of the residuals of accelerators that were left out"
RATIOS = {
    "tpot": ("itl_ratio", "e2e_ratio"),
    "offline_throughput": ("throughput_ratio",),
    "tpot_disagg": ("itl_disagg_ratio",),
}
"""Figure, and the terms whose spread it makes: how wide a prediction's interval must be."""
LEAST_ROWS = 30
"""For a spread of its own."""
LEAST_LEFT_OUT = 60
"""Rows of an accelerator for it to be left out: every one costs a fit."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One sample with its residual."""

    sample: Sample
    residual: float
    """ln(predicted / measured)."""

    @property
    def accelerator(self) -> str:
        """Its name."""
        return self.sample.run.machine.device.name


def constants(several: Sequence[Sample], tables: Tables) -> list[EfficiencyRow]:
    """All constants of the phase, but for the spreads, fitted on these samples."""
    fixed = not_fitted(tables)
    step = fitted_rows(thinned(filter(is_labelled, several)), fixed)
    others = unlabelled_rows(several, [*fixed, *step])
    return [*filter(is_specified, fixed), *step, *others]


def calibration(known: Iterable[EfficiencyRow], tables: Tables) -> Calibration:
    """These constants with those of other phases."""
    return Calibration([*(row for row in tables.efficiencies if row.phase != PHASE), *known])


def scores(several: Sequence[Sample], known: Calibration) -> list[Scored]:
    """Every sample with its residual."""
    errors = residuals(several, known).tolist()
    return [Scored(each, error) for each, error in zip(several, errors, strict=True)]


def without(
    several: Sequence[Sample],
    unit: Callable[[Sample], object],
    units: Sequence[object],
    tables: Tables,
) -> list[list[EfficiencyRow]]:
    """For each unit the constants that all others give; one process each core."""
    others = [[each for each in several if unit(each) != name] for name in units]
    with ProcessPoolExecutor() as pool:
        return list(pool.map(constants, others, repeat(tables)))


def left_out(
    scored: Sequence[Sample],
    unit: Callable[[Sample], object],
    known: Iterable[tuple[object, Sequence[EfficiencyRow]]],
    tables: Tables,
) -> list[Scored]:
    """Samples of each unit, predicted by the constants that never saw it."""
    return [
        found
        for name, rows in known
        for found in scores(
            [each for each in scored if unit(each) == name], calibration(rows, tables)
        )
    ]


def ratio_rows(known: Sequence[Scored], strangers: Sequence[Scored]) -> list[EfficiencyRow]:
    """Spreads by engine: narrow on accelerators that the fit has seen, wide on others."""
    rows: list[EfficiencyRow] = []
    for figure, terms in RATIOS.items():
        own = [each for each in known if each.sample.target.name == figure]
        others = [each for each in strangers if each.sample.target.name == figure]
        for term in terms if own else ():
            rows += _wide(term, others or own)
            rows += _narrow(term, own)
    return rows


def _wide(term: str, strangers: Sequence[Scored]) -> list[EfficiencyRow]:
    rows = [_row(term, EVERY, EVERY, strangers, STRANGERS)]
    for engine, inside in _by_engine(strangers):
        rows.append(_row(term, EVERY, engine, inside, STRANGERS))
    return rows


def _narrow(term: str, known: Sequence[Scored]) -> list[EfficiencyRow]:
    rows = [
        _row(term, name, EVERY, known, KNOWN)
        for name in sorted({each.accelerator for each in known})
    ]
    for engine, inside in _by_engine(known):
        names = sorted({each.accelerator for each in inside})
        rows += [_row(term, name, engine, inside, KNOWN) for name in names]
    return rows


def _by_engine(scored: Sequence[Scored]) -> list[tuple[str, list[Scored]]]:
    found = [
        (engine, [each for each in scored if each.sample.run.work.engine == engine])
        for engine in ENGINES
    ]
    return [(engine, inside) for engine, inside in found if len(inside) >= LEAST_ROWS]


def _row(
    term: str, scope: str, number_format: str, scored: Sequence[Scored], source: str
) -> EfficiencyRow:
    wrong = [abs(each.residual) for each in scored]
    behind = Behind.of(each.sample.run.row for each in scored)
    spread = float(np.quantile(wrong, 0.9)) / Z95
    return constant_row((PHASE, term, scope, number_format), 1.0, behind, spread, source)
