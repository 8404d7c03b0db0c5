"""Measured tables as rows of text cells, and what is common to all of them."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

Row = dict[str, str]

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
    """The cell as a number; None where it is empty or no number (``n/a``, ``512 max``)."""
    try:
        return float(row.get(column, ""))
    except ValueError:
        return None


def whole(row: Row, column: str) -> int | None:
    """The cell as a whole number of at least 1, or None."""
    value = number(row, column)
    return int(value) if value is not None and value >= 1 else None


def split_of(row: Row) -> str:
    """The split a row belongs to; only reserved rows name one, the others are ``open``."""
    return row.get("split") or "open"
