"""The constants that may score a measured row: none that the row had a part in.

A row of no fit is scored with the shipped constants; one that was part of a fit with the constants
that were fitted without its fold (``bench/folds``, written by ``bench/fit``). Its ``row_id`` tells
which; a row without one may have been part of any fit, so nothing may score it. Rows that are
compared with one another have folds of their own (:mod:`bench.jobs`).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bench.fit.residual_files import residual_without
from bench.fit.shipping import FOLDS
from bench.jobs import companions
from bench.tables import Row
from poolwise.errors import InvalidInput
from poolwise.model import calibration
from poolwise.model.efficiency import Calibration
from poolwise.tables import Tables
from poolwise.tables.efficiencies import parse

UNIDENTIFIED = "no row_id, so that it may have been part of the fit"


@dataclass(frozen=True, slots=True)
class Calibrations:
    """What ships, and what was fitted without each fold."""

    shipped: Calibration
    without: Mapping[int, Calibration]
    fold_of_row: Mapping[str, int]

    @staticmethod
    def load(phases: Sequence[str], tables: Tables, kind: str = "") -> Calibrations:
        """From the package and ``bench/folds``; ``phases`` are those that read the same table, and
        ``kind`` is of the folds: of groups, or :data:`bench.jobs.JOBS`."""
        fold_of_row = {
            row_id: fold for phase in phases for row_id, fold in _fold_of_row(phase + kind).items()
        }
        folds = sorted(set(fold_of_row.values()))
        without = {fold: _without(fold, phases, tables, kind) for fold in folds}
        return Calibrations(calibration.shipped(tables), without, fold_of_row)

    def with_companions(self, rows: Sequence[Row]) -> Calibrations:
        """Rows that no fit has seen are in the fold of those that they are compared with."""
        return replace(self, fold_of_row={**self.fold_of_row, **companions(rows, self.fold_of_row)})

    def of(self, row: Row) -> Calibration:
        """For one measured row; InvalidInput for one that cannot be told from those of a fit."""
        row_id = row.get("row_id", "")
        if not row_id:
            raise InvalidInput("", UNIDENTIFIED)
        fold = self.fold_of_row.get(row_id)
        return self.shipped if fold is None else self.without[fold]


def _without(fold: int, phases: Sequence[str], tables: Tables, kind: str) -> Calibration:
    rows = [row for row in tables.efficiencies if row.phase not in phases]
    for phase in phases:
        path = FOLDS / f"{phase}{kind}_{fold}.toml"
        rows += parse(path.name, path.read_text(encoding="utf-8"))
    residuals = {row.figure: residual_without(fold, row, kind) for row in tables.residuals}
    return Calibration(rows, residuals)


def _fold_of_row(phase: str) -> dict[str, int]:
    path = FOLDS / f"{phase}_rows.csv"
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as lines:
        return {row_id: int(fold) for row_id, fold in csv.reader(lines)}
