"""Public traces and measured rates, found by the beginning of their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.files import BadInput, check_folder, opened, records

Row = dict[str, str]
MOST = 1e12
"""Of any number in a table: beyond it a cell is wrong."""
LONGEST_SECONDS = 1e7


class Missing(BadInput):
    """No file of a table lies in the folder."""


def text(cell: str) -> str:
    """What a cell must be; empty where it is that. Any will do."""
    del cell
    return ""


def number(cell: str) -> str:
    """The same: 0 or more."""
    try:
        value = float(cell)
    except ValueError:
        value = -1.0
    return "" if 0.0 <= value <= MOST else f"a number from 0 to {MOST:g}"


def seconds(cell: str) -> str:
    """The same, of a run: what is longer is in milliseconds, and rivals act each minute of it."""
    is_short = not number(cell) and float(cell) <= LONGEST_SECONDS
    return "" if is_short else f"a number of seconds from 0 to {LONGEST_SECONDS:g}"


def positive(cell: str) -> str:
    """The same: more than 0."""
    wrong = number(cell)
    return wrong or ("" if float(cell) > 0.0 else f"a number above 0, {MOST:g} at most")


def whole(cell: str) -> str:
    """The same: a whole number, 0 or more."""
    is_whole = cell.strip().isdecimal() and not number(cell)
    return "" if is_whole else f"a whole number from 0 to {MOST:g}"


def count(cell: str) -> str:
    """The same: a whole number, 1 or more."""
    is_count = not whole(cell) and int(cell) > 0
    return "" if is_count else f"a whole number from 1 to {MOST:g}"


Columns = Mapping[str, Callable[[str], str]]
"""By name, what the cells must be."""


def read(
    folder: Path,
    prefix: str,
    columns: Columns | None = None,
    where: Callable[[Row], object] = lambda _: True,
) -> list[Row]:
    """Rows of all files ``prefix*.csv[.gz]`` anywhere below a folder, in the order of their names;
    one that is there twice is read once.

    :param columns: what is read from them, and is checked.
    :param where: rows that are taken.

    Raises :class:`Missing` for no such file, and :class:`BadInput` for one that is torn, lacks a
    column or holds anything else in one, and where there is no row.
    """
    check_folder(folder)
    paths = _paths(folder, prefix)
    if not paths:
        raise Missing(f"no {prefix}*.csv[.gz] below {folder}")
    rows = [row for path in paths for row in _rows(path, columns or {}, where)]
    if not rows:
        raise BadInput(f"{paths[-1]}: has no row that can be used")
    return rows


def _paths(folder: Path, prefix: str) -> list[Path]:
    found = {path.with_suffix(""): path for path in folder.rglob(f"{prefix}*.csv.gz")}
    plain = {path: path for path in folder.rglob(f"{prefix}*.csv")}
    return [path for _, path in sorted((plain | found).items())]


def _rows(path: Path, columns: Columns, where: Callable[[Row], object]) -> Iterator[Row]:
    with opened(path) as file:
        found = records(file)
        missing = [name for name in columns if name not in (found.fieldnames or ())]
        if missing:
            raise BadInput(f"{path}: the header has no column {' and no '.join(missing)}")
        for row in found:
            if where(row):
                _check(f"{path}: line {found.line_num}", row, columns)
                yield row


def _check(place: str, row: Row, columns: Columns) -> None:
    for name, wrong in columns.items():
        wanted = wrong(row[name])
        if wanted:
            raise BadInput(f"{place}: {name} is {row[name]!r}, must be {wanted}")
