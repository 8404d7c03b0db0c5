"""Fit the constants of serving: ``python -m bench.fit.serving --data DIR [--write]``.

With ``--write`` the shipped ``efficiencies_serving.toml`` is replaced: rows that are kept by hand
stay, fitted ones are new; so are the constants without each fold. Takes some minutes on one core.
Run it after ``bench.fit.collectives``, and ``bench.fit.requests`` after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from bench import tables as measured_tables
from bench.accuracy import FOLDS, fold_of
from bench.fit.arguments import arguments
from bench.fit.serving_constants import PHASE
from bench.fit.serving_folds import (
    LEAST_LEFT_OUT,
    Scored,
    calibration,
    constants,
    left_out,
    ratio_rows,
    scores,
)
from bench.fit.serving_samples import FITTED, SCORED, Sample, samples
from bench.fit.shipping import ship, ship_folds
from bench.tables import Row, split_of
from poolwise.model.efficiency import EVERY
from poolwise.tables import EfficiencyRow, Tables, load

HEADER = """Constants of serving: fractions of what a device reaches, times in seconds, bytes.
Rows with provenance "fitted" are written by `python -m bench.fit.serving --write`;
rows with provenance "specification" are kept by hand and stay."""


def refit(rows: Sequence[Row], tables: Tables) -> list[EfficiencyRow]:
    """All constants of the phase, fitted on these rows alone.

    Spreads are those that ship; of accelerators without a row here, the one of strangers.
    """
    several = samples(rows, tables, FITTED)
    seen = {*map(_accelerator, several), EVERY}
    kept = [row for row in tables.efficiencies if _is_spread(row) and row.scope in seen]
    return [*constants(several, tables), *kept]


def main() -> None:
    """Fit, report on what was left out, and write where asked."""
    asked = arguments(__doc__ or "")
    tables = load()
    rows = opened(asked.data)
    fitted, scored = samples(rows, tables, FITTED), samples(rows, tables, SCORED)
    without = {
        fold: constants([each for each in fitted if fold_of(each.run.group) != fold], tables)
        for fold in range(FOLDS)
    }
    known = [
        each
        for fold, found in without.items()
        for each in scores(
            [one for one in scored if fold_of(one.run.group) == fold], calibration(found, tables)
        )
    ]
    _report("group", known)
    strangers = left_out(fitted, scored, _accelerator, _often(fitted), tables)
    _report("accelerator", strangers)
    if asked.write:
        spreads = ratio_rows(known, strangers)
        ship(PHASE, HEADER, [*constants(fitted, tables), *spreads])
        ship_folds(
            PHASE,
            {fold: [*found, *spreads] for fold, found in without.items()},
            {each.run.row["row_id"]: fold_of(each.run.group) for each in (*fitted, *scored)},
        )


def opened(folder: Path) -> list[Row]:
    """Measured rows that are not reserved."""
    rows = measured_tables.read(folder, "serve_measured")
    return [row for row in rows if split_of(row) == "open"]


def _is_spread(row: EfficiencyRow) -> bool:
    return row.phase == PHASE and row.term.endswith("_ratio") and row.provenance == "fitted"


def _accelerator(each: Sample) -> str:
    return each.run.machine.device.name


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
    main()
