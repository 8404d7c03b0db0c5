"""Constants of what sources leave out, fitted on the step as it ships.

``python -m bench.fit.serving_unlabelled --data DIR [--write]``: how often a guessed token is right,
and the share of all clients that one decoding worker has where workers are not counted. Both are
one figure each, so they are searched, fold by fold, without a fit of the whole step (which does the
same at its end).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.accuracy import FOLDS, Vector, fold_of
from bench.calibrations import Calibrations
from bench.fit.arguments import arguments
from bench.fit.open_rows import open_rows, some
from bench.fit.rows import Behind, constant_row
from bench.fit.serving_constants import HEADER, PHASE, SOURCE
from bench.fit.serving_samples import FITTED, TABLE, Sample, residuals, samples, thinned
from bench.fit.shipping import FOLDS as FOLDER
from bench.fit.shipping import PACKAGE, ship, ship_folds
from bench.programs import ends_on_bad_input
from bench.serving_layouts import SHARE_OF_ONE_WORKER
from bench.tables import Row
from poolwise.model.efficiency import EVERY, Calibration
from poolwise.tables import EfficiencyRow, load
from poolwise.tables.efficiencies import file_of, parse

ACCEPTANCE, SHARE = "draft_acceptance", "worker_share"
PRIORS = {ACCEPTANCE: 0.7, SHARE: SHARE_OF_ONE_WORKER}
TRIED = {ACCEPTANCE: np.linspace(0.3, 0.95, 14), SHARE: np.geomspace(1 / 64, 1.0, 25)}
WIDE = 1.0
"""Spread of what nobody measured."""
TRIAL = Behind(1, "")
"""What stands behind a value that is tried."""


def unlabelled_rows(
    several: Sequence[Sample], known: Sequence[EfficiencyRow]
) -> list[EfficiencyRow]:
    """Both constants; ``known`` are all others."""
    drafted = thinned(each for each in several if each.run.drafts)
    shared = thinned(each for each in several if each.run.shares)
    every = [each.run.row for each in several]
    return [_fitted(ACCEPTANCE, drafted, known, every), _fitted(SHARE, shared, known, every)]


def is_labelled(each: Sample) -> bool:
    """Whether the step alone explains the sample."""
    return not each.run.drafts and not each.run.shares


def is_unlabelled(row: EfficiencyRow) -> bool:
    """Whether this program writes the row."""
    return row.phase == PHASE and row.term in PRIORS


def _fitted(
    term: str, chosen: Sequence[Sample], known: Sequence[EfficiencyRow], every: Sequence[Row]
) -> EfficiencyRow:
    """The value with the least median error; its spread is that of the mean of the groups' best
    ones, and what the steps between tried values leave open."""
    behind = Behind.of((each.run.row for each in chosen), every)
    if not chosen:
        return _row(term, PRIORS[term], WIDE, behind)
    wrong = np.array([_wrong(chosen, known, term, float(value)) for value in TRIED[term]])
    best = TRIED[term][np.argmin(np.median(wrong, axis=1))]
    tried = np.log(TRIED[term])
    scatter = _scatter_of_mean(tried[np.argmin(wrong, axis=0)], [each.run.group for each in chosen])
    step = float(np.mean(np.diff(tried)))
    return _row(term, float(best), math.hypot(scatter, step / math.sqrt(12.0)), behind)


def _scatter_of_mean(values: Vector, groups: Sequence[str]) -> float:
    """Deviation of the mean over groups; of one group it is that of single rows."""
    labels = np.array(groups)
    means = [float(values[labels == group].mean()) for group in dict.fromkeys(groups)]
    if len(means) < 2:
        return float(np.std(values))
    return float(np.std(means, ddof=1)) / math.sqrt(len(means))


def _wrong(
    chosen: Sequence[Sample], known: Sequence[EfficiencyRow], term: str, value: float
) -> Vector:
    return np.abs(residuals(chosen, Calibration([*known, _row(term, value, WIDE, TRIAL)])))


def _row(term: str, value: float, spread: float, behind: Behind) -> EfficiencyRow:
    return constant_row((PHASE, term, EVERY, EVERY), value, behind, spread, SOURCE)


def _shipped(
    path: Path, others: Sequence[EfficiencyRow], several: Sequence[Sample]
) -> list[EfficiencyRow]:
    rows = parse(path.name, path.read_text(encoding="utf-8"))
    step = [row for row in rows if not is_unlabelled(row)]
    return [*step, *unlabelled_rows(several, [*others, *step])]


@ends_on_bad_input
def main() -> None:
    """Fit, report, and write where asked."""
    asked = arguments(__doc__ or "")
    tables = load()
    several = some(samples(open_rows(asked.data, TABLE), tables, FITTED), asked.data, TABLE)
    others = [row for row in tables.efficiencies if row.phase != PHASE]
    whole = _shipped(PACKAGE / file_of(PHASE), others, several)
    folds = {
        fold: _shipped(
            FOLDER / f"{PHASE}_{fold}.toml",
            others,
            [each for each in several if fold_of(each.run.group) != fold],
        )
        for fold in range(FOLDS)
    }
    for rows in (whole, *folds.values()):
        print(*(f"{row.term} {row.value:.3f} ({row.count})" for row in filter(is_unlabelled, rows)))
    if asked.write:
        ship(PHASE, HEADER, whole)
        ship_folds(PHASE, folds, dict(Calibrations.load([PHASE], tables).fold_of_row))


if __name__ == "__main__":
    sys.exit(main())
