"""Predictions by constants that never saw the unit of the row, and the spreads they leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bench.fit.serving_constants import PHASE, fitted_rows, is_specified, not_fitted
from bench.fit.serving_samples import Sample, residuals, thinned
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
    return [*filter(is_specified, fixed), *fitted_rows(thinned(several), fixed)]


def calibration(known: Iterable[EfficiencyRow], tables: Tables) -> Calibration:
    """These constants with those of other phases."""
    return Calibration([*(row for row in tables.efficiencies if row.phase != PHASE), *known])


def scores(several: Sequence[Sample], known: Calibration) -> list[Scored]:
    """Every sample with its residual."""
    errors = residuals(several, known).tolist()
    return [Scored(each, error) for each, error in zip(several, errors, strict=True)]


def left_out(
    fitted: Sequence[Sample],
    scored: Sequence[Sample],
    unit: Callable[[Sample], object],
    units: Iterable[object],
    tables: Tables,
) -> list[Scored]:
    """Samples of each unit, predicted after a fit on the others."""
    found: list[Scored] = []
    for name in units:
        known = constants([each for each in fitted if unit(each) != name], tables)
        held = [each for each in scored if unit(each) == name]
        found += scores(held, calibration(known, tables))
    return found


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
    return EfficiencyRow(
        phase=PHASE,
        term=term,
        scope=scope,
        format=number_format,
        value=1.0,
        spread=float(np.quantile(wrong, 0.9)) / Z95,
        count=len(wrong),
        provenance="fitted",
        source=source,
    )
