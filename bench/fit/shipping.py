"""Fitted rows as the TOML files that the package ships."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import poolwise.tables
from poolwise.tables.efficiencies import EfficiencyRow

FOLDER = Path(poolwise.tables.__file__).parent
DIGITS = 4
"""Significant ones: more would only tell two fits apart, not two machines."""


def ship(file: str, header: str, rows: Iterable[EfficiencyRow]) -> None:
    """Replace a shipped file by these rows, in order."""
    comment = "".join(f"# {line}\n" for line in header.splitlines())
    (FOLDER / file).write_text(comment + "".join(map(_table, rows)), encoding="utf-8")


def _table(row: EfficiencyRow) -> str:
    figures = {"value": _figure(row.value), "spread": _figure(row.spread), "count": str(row.count)}
    words = {
        name: f'"{getattr(row, name)}"'
        for name in ("term", "scope", "format", "provenance", "source")
    }
    kept = {name: word for name, word in words.items() if word != '"*"'}
    lines = [f"{name} = {value}\n" for name, value in (kept | figures).items()]
    return f"\n[[{row.phase}]]\n" + "".join(lines)


def _figure(value: float) -> str:
    return repr(float(f"{value:.{DIGITS}g}"))
