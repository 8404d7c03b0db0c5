"""Fit the constants of the training step: ``python -m bench.fit.training --data DIR [--write]``.

Prints how well the fit meets the runs, in sample and out of fold, and with ``--write`` replaces
the shipped rows. What nobody measured (vision models, bandwidth of a copy) stays a specification.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from bench.accuracy import Vector, fold_of
from bench.fit.arguments import arguments
from bench.fit.kriging import Matrix
from bench.fit.open_rows import open_rows, some
from bench.fit.pooling import Pool
from bench.fit.shipping import ship, ship_folds
from bench.fit.training_constants import CONSTANTS, PHASE, specified
from bench.fit.training_spreads import SpreadOf, spread_by_others, spreads, widened
from bench.jobs import JOBS, job_folds
from bench.programs import ends_on_bad_input
from bench.tables import Row
from bench.training_runs import LaidRun, laid, runs
from poolwise.errors import InvalidInput
from poolwise.model.efficiency import Calibration
from poolwise.model.training.step import step_seconds
from poolwise.tables import Tables, load
from poolwise.tables.efficiencies import EfficiencyRow

HEADER = """Constants of the training step: shares of a reachable rate, seconds.
Written by `python -m bench.fit.training --write`."""
SOURCE = "train_measured, 11 sources (dgxc-benchmarking, Megatron-Bridge, llm-foundry, MLPerf, ...)"
TABLE = "train_measured"
OUT_OF_FOLD = 1.4
"""Scatter of rows out of fold over that in sample, where only the latter is at hand: medians of
6.1 and 4.3 % over 547 runs."""
MOST_ROWS = 8
"""Of one group in the fit: a group of near-identical rows is not so many witnesses."""


def laid_runs(folder: Path, tables: Tables) -> list[LaidRun]:
    """All runs that constants are fitted on."""
    return some(laid_rows(open_rows(folder, TABLE), tables), folder, TABLE)


def laid_rows(rows: Iterable[Row], tables: Tables) -> list[LaidRun]:
    """Sizes that a source left out are chosen with the shipped constants."""
    calibration = Calibration(tables.efficiencies)
    return [laid(run, calibration) for run in runs(rows, tables) if run.is_comparable]


def refit(rows: Sequence[Row], tables: Tables) -> list[EfficiencyRow]:
    """All constants of the phase, fitted on these rows alone; InvalidInput where none is a run."""
    several = laid_rows(rows, tables)
    if not several:
        raise InvalidInput(TABLE, "no row is a run")
    return _constants(several, not_fitted(tables))


def _constants(several: Sequence[LaidRun], fixed: Sequence[EfficiencyRow]) -> list[EfficiencyRow]:
    """Specified and fitted ones, with spreads as they are out of fold."""
    pool, parameters = fit(several, fixed)
    errors = OUT_OF_FOLD * residuals(several, pool.calibration(parameters, fixed))
    return _shipped(several, pool, parameters, fixed, spreads(several, errors))


def _shipped(
    several: Sequence[LaidRun],
    pool: Pool,
    parameters: Vector,
    fixed: Iterable[EfficiencyRow],
    spread: SpreadOf,
) -> list[EfficiencyRow]:
    formats = [each.run.work.precision for each in several]
    known, measured = _covariance(several, fixed, parameters), [each.run.row for each in several]
    rows = pool.rows(parameters, known, formats, measured, SOURCE)
    return [*(row for row in fixed if row.phase == PHASE), *widened(rows, spread)]


def residuals(several: Sequence[LaidRun], calibration: Calibration) -> Vector:
    """ln(predicted / measured) of the step times."""
    predicted = [
        step_seconds(each.run.work, each.layout, each.run.machine, calibration) for each in several
    ]
    errors: Vector = np.log(
        np.array(predicted) / np.array([each.run.step_seconds for each in several])
    )
    return errors


def not_fitted(tables: Tables) -> list[EfficiencyRow]:
    """Rows of other phases, and the specified ones of this."""
    others = [row for row in tables.efficiencies if row.phase != PHASE]
    return [*others, *specified(tables)]


def fit(several: Sequence[LaidRun], fixed: Iterable[EfficiencyRow]) -> tuple[Pool, Vector]:
    """Constants that meet these runs best; the pool is that of all runs, whose devices are those
    of the thinned ones."""
    chosen = _thinned(several)
    thinned = Pool(CONSTANTS, [each.run.machine.device for each in chosen])
    parameters = thinned.fit(lambda calibration: residuals(chosen, calibration), fixed)
    return Pool(CONSTANTS, [each.run.machine.device for each in several]), parameters


def _covariance(
    several: Sequence[LaidRun], fixed: Iterable[EfficiencyRow], parameters: Vector
) -> Matrix:
    """Of the parameters, by the runs that they were fitted on."""
    chosen = _thinned(several)
    thinned = Pool(CONSTANTS, [each.run.machine.device for each in chosen])
    groups = [each.run.group for each in chosen]
    return thinned.covariance(partial(residuals, chosen), fixed, parameters, groups)


def _thinned(several: Sequence[LaidRun]) -> list[LaidRun]:
    """At most :data:`MOST_ROWS` of each group, spread over its rows."""
    total = Counter(each.run.group for each in several)
    seen: Counter[str] = Counter()
    kept = []
    for each in several:
        group = each.run.group
        share = min(1.0, MOST_ROWS / total[group])
        if int((seen[group] + 1) * share) > int(seen[group] * share):
            kept.append(each)
        seen[group] += 1
    return kept


def fits_without(
    several: Sequence[LaidRun], fixed: Sequence[EfficiencyRow], folds: Mapping[str, int]
) -> dict[int, list[EfficiencyRow]]:
    """Constants without each fold of rows."""
    return {
        fold: _constants([each for each in several if folds[each.run.row["row_id"]] != fold], fixed)
        for fold in sorted(set(folds.values()))
    }


def out_of_fold(
    several: Sequence[LaidRun], without: Mapping[int, Iterable[EfficiencyRow]]
) -> Vector:
    """Residual of each run under constants that its group had no part in."""
    others = [row for row in load().efficiencies if row.phase != PHASE]
    calibrations = {fold: Calibration([*others, *rows]) for fold, rows in without.items()}
    found = [residuals([each], calibrations[fold_of(each.run.group)])[0] for each in several]
    return np.array(found)


def _summary(name: str, errors: Vector) -> str:
    wrong = 100 * np.abs(np.exp(-errors) - 1)
    return f"{name}: {len(errors)} runs, MdAPE {np.median(wrong):.1f} %, mean {wrong.mean():.1f} %"


@ends_on_bad_input
def main() -> None:
    """Fit, report, and write where asked."""
    asked = arguments(__doc__ or "")
    tables = load()
    several = laid_runs(asked.data, tables)
    fixed = not_fitted(tables)
    of_groups = {each.run.row["row_id"]: fold_of(each.run.group) for each in several}
    without = fits_without(several, fixed, of_groups)
    errors = out_of_fold(several, without)
    print(_summary("out of fold", errors))
    pool, parameters = fit(several, fixed)
    print(_summary("in sample", residuals(several, pool.calibration(parameters, fixed))))
    if asked.write:
        rows = _shipped(several, pool, parameters, fixed, spreads(several, errors))
        ship(PHASE, HEADER, rows)
        ship_folds(PHASE, spread_by_others(several, errors, without), of_groups)
        of_jobs = job_folds(each.run.row for each in several)
        ship_folds(PHASE + JOBS, fits_without(several, fixed, of_jobs), of_jobs)


if __name__ == "__main__":
    sys.exit(main())
