"""The constants that may score a measured row: none that the row had a part in.

A row of no fit is scored with the shipped constants; one that was part of a fit with the constants
that were fitted without its fold (``bench/folds``, written by ``bench/fit``).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass

from bench.fit.shipping import FOLDS
from bench.tables import Row
from poolwise.model.efficiency import Calibration
from poolwise.tables import Tables
from poolwise.tables.efficiencies import parse


@dataclass(frozen=True, slots=True)
class Calibrations:
    """Of one phase: what ships, and what was fitted without each fold."""

    shipped: Calibration
    without: Mapping[int, Calibration]
    fold_of_row: Mapping[str, int]

    @staticmethod
    def load(phase: str, tables: Tables) -> Calibrations:
        """From the package and ``bench/folds``; a phase without folds has only what ships."""
        others = [row for row in tables.efficiencies if row.phase != phase]
        without = {}
        for path in sorted(FOLDS.glob(f"{phase}_?.toml")):
            rows = parse(path.name, path.read_text(encoding="utf-8"))
            without[int(path.stem.rpartition("_")[2])] = Calibration([*others, *rows])
        return Calibrations(Calibration(tables.efficiencies), without, _fold_of_row(phase))

    def of(self, row: Row) -> Calibration:
        """For one measured row."""
        fold = self.fold_of_row.get(row.get("row_id", ""))
        return self.shipped if fold is None else self.without[fold]


def _fold_of_row(phase: str) -> dict[str, int]:
    path = FOLDS / f"{phase}_rows.csv"
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as lines:
        return {row_id: int(fold) for row_id, fold in csv.reader(lines)}
