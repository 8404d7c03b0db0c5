"""Measured tables as rows of text cells, and what is common to all of them."""

from __future__ import annotations

import csv
import gzip
import math
from pathlib import Path

Row = dict[str, str]
MOST = 10**9
"""Of anything that is counted: beyond it a cell is wrong."""

DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"


def read(folder: Path, table: str) -> list[Row]:
    """All rows of ``table``.csv.gz or ``table``.csv. Raises FileNotFoundError for neither."""
    packed = folder / f"{table}.csv.gz"
    if packed.exists():
        with gzip.open(packed, "rt", encoding="utf-8", newline="") as lines:
            return list(csv.DictReader(lines))
    with (folder / f"{table}.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def exists(folder: Path, table: str) -> bool:
    """Whether ``folder`` has that table."""
    return any((folder / f"{table}.csv{ending}").exists() for ending in (".gz", ""))


def number(row: Row, column: str) -> float | None:
    """The cell as a number; None where it is empty or no number (``n/a``, ``512 max``, ``nan``)."""
    try:
        value = float(row.get(column) or "")
    except ValueError:
        return None
    return None if math.isnan(value) else value


def whole(row: Row, column: str) -> int | None:
    """The cell as a whole number from 1 to :data:`MOST`, or None."""
    value = number(row, column)
    return int(value) if value is not None and 1 <= value <= MOST else None


def split_of(row: Row) -> str:
    """The split a row belongs to; only reserved rows name one, the others are ``open``."""
    return row.get("split") or "open"
