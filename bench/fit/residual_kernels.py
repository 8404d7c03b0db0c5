"""Choose residuals' kernels: ``python -m bench.fit.residual_kernels [--figure tpot] [--write]``.

Few figures are chosen, from few values: which sets of labels share a function, one variance for all
of them, one length for sizes, one for years, one for the shares of a step, and the noise. Forty
figures, searched freely, gave 6 % on the very runs that they were chosen on and 13 % on others, no
better than no residual. What is chosen has the least loss on runs left out: whole groups, and at
half the weight each whole accelerators and whole models, each estimated from all others
(:func:`bench.fit.kriging.left_out`). ``bench.fit.residuals`` then fits the weights. The report says
what is left of runs that had no part in the choice, by choosing on three quarters of the groups
four times.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from bench.accuracy import Vector, fold_of
from bench.dates import span
from bench.fit.arguments import arguments
from bench.fit.kriging import LeftOut, Matrix, covariances, left_out
from bench.fit.residual_data import FIGURES, Figure, Runs, shipped_runs
from bench.fit.residual_files import read_kernels, write_kernels
from bench.fit.shipping import rounded
from bench.programs import ends_on_bad_input
from poolwise.model.residual import BOUND, kernel
from poolwise.tables import load
from poolwise.tables.residuals import ResidualRow

OF_MODEL = (
    ("model",),
    ("model", "engine"),
    ("model", "accelerator"),
    ("model", "weight_format"),
    ("model", "engine", "accelerator"),
)
OF_ENGINE = (
    ("engine", "accelerator"),
    ("engine", "accelerator", "weight_format"),
)
ACROSS = (("model", "engine"), ("model", "weight_format"))
LEVELS = (
    OF_MODEL,
    (*OF_MODEL, *OF_ENGINE),
    ACROSS,
    (*ACROSS, ("model", "engine", "weight_format")),
    (*ACROSS, ("model", "engine", "family")),
)
TOTAL_VARIANCES = (0.05, 0.15)
"""Of a residual: deviations of 0.22 and 0.39, which is the bound."""
LENGTHS = (1.3, 2.1)
"""In standard deviations of the coordinate over the runs."""
YEAR_LENGTHS = (0.37, 1.3)
SHARE_LENGTHS = (0.3, 0.5, math.inf)
"""Of shares of a step; the last follows none."""
NOISES = (0.1, 0.15, 0.2)
LOSS_NOISE = 0.1
"""Scale of the loss ``ln(1 + (error / noise)^2)``: that of a good prediction."""
UNITS_WEIGHT = 0.5
"""Of accelerators and of models left out, beside groups."""
UNITS = ("group", "model", "accelerator")
PARTS = 4


def candidates(figure: Figure, runs: Runs) -> Iterator[ResidualRow]:
    """All kernels that are tried."""
    deviations = np.array([site.coordinates for site in runs.sites]).std(axis=0)
    options = product(LEVELS, TOTAL_VARIANCES, LENGTHS, YEAR_LENGTHS, SHARE_LENGTHS, NOISES)
    for levels, variance, length, years, share_length, noise in options:
        of_each = {
            name: rounded((years if name == "software_year" else length) * (deviation or 1.0))
            for name, deviation in zip(figure.coordinates, deviations.tolist(), strict=True)
        }
        yield ResidualRow(
            figure=figure.name,
            source=f"bench.fit.residual_kernels on {len(runs.sites)} open runs",
            date=span(runs.dates),
            count=len(runs.sites),
            noise=noise,
            labels=figure.labels,
            levels=levels,
            variance=rounded(variance / len(levels)),
            lengths=of_each,
            shares=figure.shares,
            share_length=share_length,
            spreads=(),
        )


def chosen(held: Sequence[Sequence[Vector]], inside: Vector) -> int:
    """Index of the kernel with the least loss on some runs."""
    losses = [
        _loss(groups[inside]) + UNITS_WEIGHT * (_loss(models[inside]) + _loss(accelerators[inside]))
        for groups, models, accelerators in held
    ]
    return int(np.argmin(losses))


def held_out(row: ResidualRow, runs: Runs, covariance: Matrix) -> list[LeftOut]:
    """Of groups, models and accelerators left out, with bounded estimates."""
    residuals = runs.out_of_fold
    labels = [runs.label(row.labels.index(unit)) for unit in UNITS[1:]]
    found = left_out(covariance, residuals, row.noise, [runs.groups, *labels])
    return [LeftOut(_bounded(residuals, each.errors), each.nearness) for each in found]


def _bounded(residuals: Vector, errors: Vector) -> Vector:
    """Errors of estimates cut to the bound."""
    bounded: Vector = residuals - np.clip(residuals - errors, -BOUND, BOUND)
    return bounded


@ends_on_bad_input
def main() -> None:
    """Choose, report, and write where asked."""
    asked = arguments(__doc__ or "", [figure.name for figure in FIGURES])
    kernels = read_kernels()
    every = shipped_runs(asked.data, load())
    for figure in FIGURES:
        if figure.name in every and figure.name in asked.figure:
            runs = every[figure.name].thinned()
            rows = list(candidates(figure, runs))
            held = [_errors(row, runs) for row in rows]
            everything = np.ones(len(runs.sites), dtype=bool)
            kernels[figure.name] = rows[chosen(held, everything)]
            _report(figure.name, runs, held)
    if asked.write:
        write_kernels(kernels)


def _errors(row: ResidualRow, runs: Runs) -> list[Vector]:
    covariance = covariances(kernel(row), runs.seen_by(runs.folds.tolist()))
    return [each.errors for each in held_out(row, runs, covariance)]


def _report(name: str, runs: Runs, held: Sequence[Sequence[Vector]]) -> None:
    """Errors of runs that had no part in the choice of the kernel."""
    part = np.array([fold_of(f"{group} part", PARTS) for group in runs.groups])
    others = [held[chosen(held, part != each)] for each in range(PARTS)]
    left = [
        median_percent(np.concatenate([others[each][unit][part == each] for each in range(PARTS)]))
        for unit in range(3)
    ]
    groups, models, accelerators = left
    print(
        f"{name}: {len(part)} runs, {median_percent(runs.out_of_fold)} % without; left out and"
        f" no part in the choice: groups {groups}, models {models}, accelerators {accelerators} %",
        flush=True,
    )


def _loss(errors: Vector) -> float:
    return float(np.mean(np.log1p((errors / LOSS_NOISE) ** 2)))


def median_percent(errors: Vector) -> str:
    """Of the size of errors in ln(measured / predicted)."""
    return f"{100 * float(np.median(np.abs(np.expm1(errors)))):.1f}"


if __name__ == "__main__":
    sys.exit(main())
