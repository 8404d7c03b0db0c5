"""Fit the residuals: ``python -m bench.fit.residuals --data DIR [--write]``.

Last of the fits, since a residual is what all constants leave. The kernels are those that ship
(:mod:`bench.fit.residual_kernels` chooses them). Prints what is left of runs left out, and with
``--write`` replaces the shipped sites with their weights, the weights without each fold, and the
spreads by nearness.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.accuracy import FOLDS, Vector
from bench.dates import span
from bench.fit.arguments import arguments
from bench.fit.kriging import LeftOut, Matrix, covariances, weights
from bench.fit.residual_data import ALL, FIGURES, KINDS, Runs, runs, shipped_runs
from bench.fit.residual_files import (
    DECIMALS,
    read_kernels,
    write_fold_sites,
    write_kernels,
    write_sites,
)
from bench.fit.residual_kernels import UNITS, held_out, median_percent
from bench.fit.shipping import rounded
from bench.model.outcome import Target
from bench.programs import ends_on_bad_input
from bench.tables import Row
from poolwise.model.efficiency import Calibration
from poolwise.model.prediction import NINE_IN_TEN
from poolwise.model.residual import Nearness, Residual, kernel
from poolwise.tables import Tables, load
from poolwise.tables.residuals import NearnessRow, ResidualRow

SOURCE = "bench.fit.residuals on the open rows"
STEPS = 6
"""Of nearness, with as many held-out runs each."""


def refit(
    target: Target, rows: Sequence[Row], tables: Tables, constants: Calibration
) -> dict[str, Residual]:
    """Residuals of a table's figures on these rows alone, beside constants fitted on them too."""
    kernels, found = read_kernels(), {}
    for name, seen in runs(target, rows, tables, [constants.formulas]).items():
        if name in kernels:
            row, thin = kernels[name], seen.thinned()
            covariance = covariances(kernel(row), thin.sites)
            weighed = weights(covariance, thin.slowness[:, -1], row.noise)
            spreads = [Nearness(each.least, each.spread) for each in row.spreads]
            found[name] = Residual(kernel(row), thin.sites, weighed.tolist(), spreads)
    return found


@dataclass(frozen=True, slots=True)
class Fitted:
    """One figure's residual."""

    row: ResidualRow
    runs: Runs
    weights: Mapping[str, Matrix]
    """By kind of folds: a row per run, a column for each fold that had no part in it."""
    shipped: Vector
    """Of all runs."""
    held: Mapping[str, LeftOut]
    """By what was left out with a run."""


def fitted(row: ResidualRow, several: Runs) -> Fitted:
    """With every run but those of groups with very many."""
    thin = several.thinned()
    folds = dict(zip(KINDS, (thin.folds, np.array(thin.job_folds)), strict=True))
    columns = np.arange(ALL).reshape(len(KINDS), FOLDS).tolist()
    unseen = covariances(kernel(row), thin.seen_by(thin.folds.tolist()))
    return Fitted(
        row,
        thin,
        {
            kind: _weights_without(folds[kind], several, row, thin)
            for kind, several in zip(KINDS, columns, strict=True)
        },
        weights(covariances(kernel(row), thin.sites), thin.slowness[:, ALL], row.noise),
        dict(zip(UNITS, held_out(row, thin, unseen), strict=True)),
    )


def _weights_without(
    folds: Vector, columns: Sequence[int], row: ResidualRow, several: Runs
) -> Matrix:
    """For each fold, beside constants without it; 0 for its own runs, which may be all."""
    found = np.zeros((len(several.sites), FOLDS))
    for fold, column in enumerate(columns):
        others = np.flatnonzero(folds != fold)
        if not others.size:
            continue
        sites = several.seen_by([column] * len(several.sites))
        known = covariances(kernel(row), [sites[index] for index in others])
        found[others, fold] = weights(known, several.slowness[others, column], row.noise)
    return found


def spreads(held: Mapping[str, LeftOut]) -> tuple[NearnessRow, ...]:
    """Such that nine in ten lie inside, by falling nearness; never narrower farther away."""
    nearness = np.concatenate([each.nearness for each in held.values()])
    errors = np.abs(np.concatenate([each.errors for each in held.values()]))
    steps = np.unique(np.quantile(nearness, np.arange(STEPS) / STEPS).round(DECIMALS))
    found: list[NearnessRow] = []
    for least, beyond in zip([0.0, *steps[1:]], [*steps[1:], np.inf], strict=True):
        inside = errors[(nearness >= least) & (nearness < beyond)]
        if not inside.size:  # few runs, whose steps are rounded away from them
            continue
        spread = rounded(float(np.quantile(inside, 0.9)) / NINE_IN_TEN)
        narrower = min([spread, *(each.spread for each in found)])
        found.append(NearnessRow(least=least, spread=narrower, count=len(inside)))
    return tuple(reversed(found))


@ends_on_bad_input
def main() -> None:
    """Fit, report on what was left out, and write where asked."""
    asked, kernels = arguments(__doc__ or ""), read_kernels()
    every = shipped_runs(asked.data, load())
    for figure in FIGURES:
        if figure.name in every and figure.name in kernels:
            found = fitted(kernels[figure.name], every[figure.name])
            _report(figure.name, found)
            kernels[figure.name] = _described(found)
            if asked.write:
                _ship(found)
    if asked.write:
        write_kernels(kernels)


def _described(found: Fitted) -> ResidualRow:
    count = len(found.runs.sites)
    told = {
        "spreads": spreads(found.held),
        "count": count,
        "source": SOURCE,
        "date": span(found.runs.dates),
    }
    return found.row.model_copy(update=told)


def _ship(found: Fitted) -> None:
    write_sites(found.row, found.runs.sites, found.shipped.tolist())
    shares = np.split(found.runs.shares[:, :ALL], len(KINDS), axis=1)
    for (kind, several), of_kind in zip(found.weights.items(), shares, strict=True):
        write_fold_sites(found.row.figure, kind, several, of_kind)


def _report(name: str, found: Fitted) -> None:
    before = median_percent(found.runs.out_of_fold)
    after = ", ".join(f"{unit} {median_percent(each.errors)}" for unit, each in found.held.items())
    print(f"{name}: {len(found.runs.sites)} runs, {before} %; left out: {after} %", flush=True)


if __name__ == "__main__":
    sys.exit(main())
