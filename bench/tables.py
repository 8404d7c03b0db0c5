"""Measured tables as rows of text cells, and what is common to all of them.

Files come from many hands, so reading forgives what one cell or column can be: every row has every
column of its table, names are as the shipped tables spell them, and cells hold no blanks around.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from bench.columns import CASELESS, COLUMNS, FIGURES
from bench.files import NOT_TEXT, BadInput, check_folder, opened, records
from bench.names import with_known_names

Row = dict[str, str]
MOST = 10**9
"""Of anything that is counted: beyond it a cell is wrong."""
LARGEST = 1e12
"""Of anything that is measured, in its unit; one over it is the smallest."""

NOTHING = frozenset({"n/a", "na", "nan", "null", "-", "--", "?"})
"""Words of a cell that states nothing, in small letters."""

DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
OWN_FOLDER = Path(__file__).resolve().parent / "own"
"""Rows that this project measured, in no fit."""
TELLING = frozenset({"row_id", *FIGURES})
"""Columns that make a file a table of measurements: others, such as a source, lists of accelerators
have as well."""
ENDINGS = (".csv.gz", ".csv")
"""The first that is there is read."""


def read(folder: Path, table: str) -> list[Row]:
    """All rows of ``table``.csv.gz or ``table``.csv.

    Raises :class:`BadInput` for neither, and for a file that is no such table.
    """
    check_folder(folder)
    path = _path(folder, table)
    if path is None:
        raise BadInput(f"{folder}: has no {table}.csv.gz or {table}.csv")
    with opened(path) as lines:
        return list(with_known_names(_rows(path, records(lines), table)))


def write(folder: Path, table: str, rows: Iterable[Mapping[str, object]]) -> None:
    """As ``table``.csv with all its columns; those that a row lacks are empty."""
    with (folder / f"{table}.csv").open("w", encoding="utf-8", newline="") as lines:
        into = csv.DictWriter(lines, COLUMNS[table], restval="", lineterminator="\n")
        into.writeheader()
        into.writerows(rows)


def exists(folder: Path, table: str) -> bool:
    """Whether ``folder`` has that table."""
    return _path(folder, table) is not None


def number(row: Row, column: str) -> float | None:
    """The cell as a number; None where it is empty or none (``n/a``, ``512 max``, ``inf``)."""
    value = _value(row, column)
    return value if math.isfinite(value) else None


def figure(row: Row, column: str) -> float | None:
    """The cell as what was measured: a number above 0 and within reason, or None."""
    value = number(row, column)
    return value if value is not None and 1.0 / LARGEST < value < LARGEST else None


def rate(row: Row, column: str) -> float | None:
    """The cell as a number per second, where ``inf`` is all at once; None where it is neither."""
    value = _value(row, column)
    return value if value > 0.0 else None


def whole(row: Row, column: str) -> int | None:
    """The cell as a whole number from 1 to :data:`MOST`, or None."""
    value = number(row, column)
    return int(value) if value is not None and 1 <= value <= MOST else None


def split_of(row: Row) -> str:
    """The split a row belongs to; only reserved rows name one, the others are ``open``."""
    return row.get("split") or "open"


def _value(row: Row, column: str) -> float:
    try:
        return float(row.get(column) or "nan")
    except ValueError:
        return math.nan


def _path(folder: Path, table: str) -> Path | None:
    paths = (folder / f"{table}{ending}" for ending in ENDINGS)
    return next((path for path in paths if path.exists()), None)


def _rows(path: Path, reader: csv.DictReader[str], table: str) -> Iterator[Row]:
    columns = COLUMNS.get(table, ())
    if columns and not set(columns) & TELLING & set(reader.fieldnames or ()):
        raise BadInput(f"{path}: has no row_id and no figure of {table}: is it another file?")
    empty = dict.fromkeys(columns, "")
    for cells in reader:
        yield empty | _cleaned(cells, table)


def _stated(column: str, cell: str) -> str:
    """Figures keep their words, so that those which cannot be read are counted."""
    return "" if cell.lower() in NOTHING and column not in FIGURES else cell


def _cleaned(cells: Row, table: str) -> Row:
    """Without cells beyond the header; an identity that cannot be read is none."""
    inside = ((column, cell.strip()) for column, cell in cells.items() if column is not None)
    row = {column: _stated(column, cell) for column, cell in inside}
    if NOT_TEXT in row.get("row_id", ""):
        row["row_id"] = ""
    return row | {name: row[name].lower() for name in CASELESS.get(table, ()) if name in row}
