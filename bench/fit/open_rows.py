"""The rows that constants are fitted on: of a measured table, those that are not reserved."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from bench.files import BadInput
from bench.tables import Row, read, split_of

Found = TypeVar("Found")


def open_rows(folder: Path, table: str) -> list[Row]:
    """All of one table; raises :class:`BadInput` where there is none."""
    return some((row for row in read(folder, table) if split_of(row) == "open"), folder, table)


def some(found: Iterable[Found], folder: Path, table: str) -> list[Found]:
    """All of what was found in a table; raises :class:`BadInput` where that is nothing."""
    several = list(found)
    if not several:
        raise BadInput(f"{folder}: has no row of {table} that constants can be fitted on")
    return several
