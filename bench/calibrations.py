"""The constants that may score a measured row: none that the row had a part in.

A row of no fit is scored with the shipped constants; one that was part of a fit with the constants
that were fitted without its fold (``bench/folds``, written by ``bench/fit``).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.accuracy import Vector
from bench.fit.residual_files import FOLD_SETS, fold_weights, residual_without
from bench.fit.shipping import FOLDS
from bench.tables import Row
from poolwise.model import calibration
from poolwise.model.efficiency import Calibration
from poolwise.model.site import Site
from poolwise.tables import Tables
from poolwise.tables.efficiencies import parse


@dataclass(frozen=True, slots=True)
class Calibrations:
    """What ships, and what was fitted without each fold."""

    shipped: Calibration
    without: Mapping[int, Calibration]
    fold_of_row: Mapping[str, int]
    weights: Mapping[str, Vector]
    """Of the sites of each residual, by sets of folds that had no part in them."""

    @staticmethod
    def load(phases: Sequence[str], tables: Tables) -> Calibrations:
        """From the package and ``bench/folds``; ``phases`` are those that read the same table."""
        fold_of_row = {
            row_id: fold for phase in phases for row_id, fold in _fold_of_row(phase).items()
        }
        folds = sorted(set(fold_of_row.values()))
        without = {fold: _without(fold, phases, tables) for fold in folds}
        weights = {row.figure: fold_weights(row.figure) for row in tables.residuals}
        return Calibrations(calibration.shipped(tables), without, fold_of_row, weights)

    def of(self, row: Row) -> Calibration:
        """For one measured row."""
        fold = self.fold_of(row)
        return self.shipped if fold is None else self.without[fold]

    def fold_of(self, row: Row) -> int | None:
        """None for a row that no fit has seen."""
        return self.fold_of_row.get(row.get("row_id", ""))

    def log_factors_beside(
        self, row: Row, figure: str, site: Site | None
    ) -> dict[frozenset[int], float]:
        """On a predicted time: where runs of more folds than the row's own told nothing of it."""
        residual, fold = self.shipped.residual(figure), self.fold_of(row)
        if residual is None or site is None:
            return {}
        found = dict(zip(FOLD_SETS, residual.log_factors(site, self.weights[figure]), strict=True))
        own = residual.at(site).log_factor if fold is None else found[frozenset({fold})]
        return {
            folds: float(each) - own
            for folds, each in found.items()
            if fold is None or fold in folds
        }


def _without(fold: int, phases: Sequence[str], tables: Tables) -> Calibration:
    rows = [row for row in tables.efficiencies if row.phase not in phases]
    for phase in phases:
        path = FOLDS / f"{phase}_{fold}.toml"
        rows += parse(path.name, path.read_text(encoding="utf-8"))
    return Calibration(rows, {row.figure: residual_without(fold, row) for row in tables.residuals})


def _fold_of_row(phase: str) -> dict[str, int]:
    path = FOLDS / f"{phase}_rows.csv"
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as lines:
        return {row_id: int(fold) for row_id, fold in csv.reader(lines)}
