"""Public traces and measured rates, found by the beginning of their names."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable
from pathlib import Path

Row = dict[str, str]


class Missing(Exception):
    """No file of a table lies in the folder."""


def read(folder: Path, prefix: str) -> list[Row]:
    """Rows of all files ``prefix*.csv.gz`` anywhere below a folder, in the order of their names."""
    paths = sorted(folder.rglob(f"{prefix}*.csv.gz"))
    if not paths:
        raise Missing(f"no {prefix}*.csv.gz below {folder}")
    return [row for path in paths for row in _rows(path)]


def _rows(path: Path) -> Iterable[Row]:
    with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)
