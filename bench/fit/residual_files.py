"""Residuals as files: kernels, the shipped sites, and the sites' weights without each fold."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import numpy as np

from bench.accuracy import FOLDS as COUNT
from bench.accuracy import Vector
from bench.fit.shipping import FOLDS, PACKAGE, rounded
from poolwise.model.residual import Residual, residual
from poolwise.model.site import Site
from poolwise.tables.residuals import FILE, ResidualRow, parse_kernels, sites_file

HEADER = """# Kernels of the residuals: what runs alike have in common (poolwise.model.residual).
# Written by `python -m bench.fit.residual_kernels --write`; spreads by `bench.fit.residuals`.
"""
DECIMALS = 3
"""Of a coordinate: a thousandth of a size, half a day of a year."""


def read_kernels() -> dict[str, ResidualRow]:
    """Shipped kernels by figure, without their sites."""
    path = PACKAGE / FILE
    rows = parse_kernels(path.read_text(encoding="utf-8")) if path.exists() else ()
    return {row.figure: row for row in rows}


def write_kernels(kernels: Mapping[str, ResidualRow]) -> None:
    """Replace the shipped kernels."""
    text = HEADER + "".join(_document(row) for row in kernels.values())
    (PACKAGE / FILE).write_text(text, encoding="utf-8")


def write_sites(row: ResidualRow, sites: Iterable[Site], weights: Iterable[float]) -> None:
    """Replace a figure's shipped sites."""
    with (PACKAGE / sites_file(row.figure)).open("w", encoding="utf-8", newline="") as lines:
        table = csv.writer(lines, lineterminator="\n")
        table.writerow([*row.labels, *row.lengths, *row.shares, "weight"])
        for site, weight in zip(sites, weights, strict=True):
            places = [round(each, DECIMALS) for each in (*site.coordinates, *site.shares)]
            table.writerow([*site.labels, *places, rounded(weight)])


def write_fold_sites(figure: str, kind: str, weights: Vector, shares: Vector) -> None:
    """One line a site in the shipped order: for each fold of a kind the weight, and the shares of
    the step as the constants without it have it."""
    with _fold_sites(figure, kind).open("w", encoding="utf-8", newline="") as lines:
        table = csv.writer(lines, lineterminator="\n")
        for of_folds in np.concatenate([weights[:, :, None], shares], axis=2).tolist():
            table.writerow(
                cell
                for weight, *several in of_folds
                for cell in (rounded(weight), *(round(each, DECIMALS) for each in several))
            )


@cache
def fold_sites(figure: str, kind: str) -> Vector:
    """Of each shipped site and each fold: the weight, and then the shares."""
    lines = np.loadtxt(_fold_sites(figure, kind), delimiter=",", ndmin=2)
    return lines.reshape(len(lines), COUNT, -1)


def residual_without(fold: int, row: ResidualRow, kind: str) -> Residual:
    """A shipped residual without the sites of a fold, with weights that it had no part in."""
    without = fold_sites(row.figure, kind)[:, fold]
    sites = (
        site.model_copy(update={"weight": weight, "shares": tuple(shares)})
        for site, (weight, *shares) in zip(row.sites, without.tolist(), strict=True)
        if weight
    )
    return residual(row.model_copy(update={"sites": tuple(sites)}))


def _fold_sites(figure: str, kind: str) -> Path:
    return FOLDS / f"residuals_{figure}{kind}.csv"


def _document(row: ResidualRow) -> str:
    lines = [
        "\n[[residual]]",
        f'figure = "{row.figure}"',
        f'source = "{row.source}"',
        f'date = "{row.date}"',
        f"count = {row.count}",
        f"noise = {row.noise}",
        f"labels = {_names(row.labels)}",
        f"levels = [{', '.join(map(_names, row.levels))}]",
        f"variance = {row.variance}",
        f"lengths = {_inline(row.lengths)}",
        f"shares = {_names(row.shares)}",
        f"share_length = {row.share_length}",
        f"spreads = [{_indented(_inline(each.model_dump()) for each in row.spreads)}]",
    ]
    return "\n".join(lines) + "\n"


def _inline(cells: Mapping[str, object]) -> str:
    return "{ " + ", ".join(f"{name} = {cell!r}" for name, cell in cells.items()) + " }"


def _names(several: Iterable[object]) -> str:
    return "[" + ", ".join(f'"{each}"' for each in several) + "]"


def _indented(items: Iterable[str]) -> str:
    return "".join(f"\n  {item}," for item in items) + "\n"
