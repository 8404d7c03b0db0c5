"""Fitted rows as files: those that the package ships, and those that score the open data.

A row that took part in a fit says nothing about that fit's accuracy. So each fit also writes its
constants without each fold (``bench/folds/PHASE_FOLD.toml``) and which measured row is in which
fold (``bench/folds/PHASE_rows.csv``); :mod:`bench.calibrations` reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import poolwise.tables
from poolwise.tables.efficiencies import EfficiencyRow, file_of

PACKAGE = Path(poolwise.tables.__file__).parent
FOLDS = Path(__file__).resolve().parents[1] / "folds"
DIGITS = 4
"""Significant ones: more would only tell two fits apart, not two machines."""


def ship(phase: str, header: str, rows: Iterable[EfficiencyRow]) -> None:
    """Replace the shipped file of a phase by these rows, in order."""
    (PACKAGE / file_of(phase)).write_text(_document(header, rows), encoding="utf-8")


def ship_folds(
    phase: str, fits: Mapping[int, Iterable[EfficiencyRow]], fold_of_row: Mapping[str, int]
) -> None:
    """Replace a phase's constants without each fold, and the fold of each measured row."""
    FOLDS.mkdir(exist_ok=True)
    for fold, rows in fits.items():
        header = f"Constants of {phase} fitted without fold {fold}."
        (FOLDS / f"{phase}_{fold}.toml").write_text(_document(header, rows), encoding="utf-8")
    lines = [f"{row_id},{fold}\n" for row_id, fold in sorted(fold_of_row.items())]
    (FOLDS / f"{phase}_rows.csv").write_text("".join(lines), encoding="utf-8")


def _document(header: str, rows: Iterable[EfficiencyRow]) -> str:
    comment = "".join(f"# {line}\n" for line in header.splitlines())
    return comment + "".join(map(_table, rows))


def _table(row: EfficiencyRow) -> str:
    figures = {"value": _figure(row.value), "spread": _figure(row.spread), "count": str(row.count)}
    words = {
        name: f'"{getattr(row, name)}"'
        for name in ("term", "scope", "format", "provenance", "source", "date")
    }
    kept = {name: word for name, word in words.items() if word != '"*"'}
    lines = [f"{name} = {value}\n" for name, value in (kept | figures).items()]
    return f"\n[[{row.phase}]]\n" + "".join(lines)


def _figure(value: float) -> str:
    return repr(rounded(value))


def rounded(value: float) -> float:
    """To the digits that files have."""
    return float(f"{value:.{DIGITS}g}")
