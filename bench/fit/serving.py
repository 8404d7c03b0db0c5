"""Fit the constants of serving: ``python -m bench.fit.serving --data DIR [--write]``.

With ``--write`` the shipped ``efficiencies_serving.toml`` is replaced: rows that are kept by hand
stay, fitted ones are new; so are the constants without each fold. Takes some minutes on one core.
Run it after ``bench.fit.collectives``, and ``bench.fit.requests`` after it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from bench.accuracy import FOLDS, fold_of
from bench.fit.arguments import arguments
from bench.fit.open_rows import open_rows, some
from bench.fit.serving_constants import HEADER, PHASE
from bench.fit.serving_folds import (
    LEAST_LEFT_OUT,
    Scored,
    constants,
    left_out,
    ratio_rows,
    without,
)
from bench.fit.serving_samples import FITTED, SCORED, TABLE, Sample, samples
from bench.fit.shipping import ship, ship_folds
from bench.jobs import JOBS, job_folds
from bench.programs import ends_on_bad_input
from bench.tables import Row
from poolwise.model.efficiency import EVERY
from poolwise.tables import EfficiencyRow, Tables, load


def refit(rows: Sequence[Row], tables: Tables) -> list[EfficiencyRow]:
    """All constants of the phase, fitted on these rows alone.

    Spreads are those that ship; of accelerators without a row here, the one of strangers.
    """
    several = samples(rows, tables, FITTED)
    seen = {*map(_accelerator, several), EVERY}
    kept = [row for row in tables.efficiencies if _is_spread(row) and row.scope in seen]
    return [*constants(several, tables), *kept]


@ends_on_bad_input
def main() -> None:
    """Fit, report on what was left out, and write where asked."""
    asked = arguments(__doc__ or "")
    tables = load()
    rows = open_rows(asked.data, TABLE)
    fitted = some(samples(rows, tables, FITTED), asked.data, TABLE)
    scored = samples(rows, tables, SCORED)
    often = _often(fitted)
    folds = dict(zip(range(FOLDS), without(fitted, _fold, range(FOLDS), tables), strict=True))
    known = left_out(scored, _fold, folds.items(), tables)
    _report("group", known)
    apart = zip(often, without(fitted, _accelerator, often, tables), strict=True)
    strangers = left_out(scored, _accelerator, apart, tables)
    _report("accelerator", strangers)
    if asked.write:
        spreads = ratio_rows(known, strangers)
        ship(PHASE, HEADER, [*constants(fitted, tables), *spreads])
        ship_folds(
            PHASE,
            {fold: [*found, *spreads] for fold, found in folds.items()},
            {each.run.row["row_id"]: _fold(each) for each in (*fitted, *scored)},
        )
        _ship_jobs((*fitted, *scored), fitted, spreads, tables)


def _ship_jobs(
    every: Iterable[Sample],
    fitted: Sequence[Sample],
    spreads: Sequence[EfficiencyRow],
    tables: Tables,
) -> None:
    """Constants without each fold of jobs."""
    folds = job_folds(each.run.row for each in every)
    numbers = range(FOLDS)
    found = without(fitted, lambda each: folds[each.run.row["row_id"]], numbers, tables)
    fits = {fold: [*rows, *spreads] for fold, rows in zip(numbers, found, strict=True)}
    ship_folds(PHASE + JOBS, fits, folds)


def _is_spread(row: EfficiencyRow) -> bool:
    return row.phase == PHASE and row.term.endswith("_ratio") and row.provenance == "fitted"


def _accelerator(each: Sample) -> str:
    return each.run.machine.device.name


def _fold(each: Sample) -> int:
    return fold_of(each.run.group)


def _often(several: Iterable[Sample]) -> list[str]:
    counts = Counter(map(_accelerator, several))
    return sorted(name for name, count in counts.items() if count >= LEAST_LEFT_OUT)


def _report(unit: str, scored: Sequence[Scored]) -> None:
    for name in dict.fromkeys(each.sample.target.name for each in scored):
        errors = [each.residual for each in scored if each.sample.target.name == name]
        wrong = 100 * np.abs(np.expm1(errors))
        print(
            f"{unit} left out, {name}: {len(wrong)} rows, MdAPE {np.median(wrong):.1f} %,"
            f" p90 {np.quantile(wrong, 0.9):.1f} %",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
