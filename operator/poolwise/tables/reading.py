"""Reading of the tables that ship inside the package: strict, so that a bad row never gets used.

A table is a CSV file beside this module and a row model; columns are the model's fields, each with
its unit in its name. An unknown or missing column, an unreadable or non-positive figure and a
name that two rows claim are a :class:`~poolwise.errors.TableError` that says where.
"""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import resources
from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from poolwise.errors import TableError


def _split(cell: object) -> object:
    return tuple(filter(None, map(str.strip, cell.split(";")))) if isinstance(cell, str) else cell


Figure = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""A physical quantity: positive and finite."""
Names = Annotated[tuple[str, ...], BeforeValidator(_split)]
"""Several names in one cell, ``;`` between them."""


class Row(BaseModel):
    """Base of every row: immutable, and without columns that nobody knows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    aliases: Names = ()


R = TypeVar("R", bound=Row)


class Table(Generic[R]):
    """Rows that are found by name or alias; see :func:`fold` for what counts as the same name."""

    def __init__(self, file: str, rows: Iterable[R]) -> None:
        self.rows = tuple(rows)
        self._by_name = unique_index(file, self.rows, lambda row: (row.name, *row.aliases))

    def __iter__(self) -> Iterator[R]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def find(self, name: str) -> R | None:
        """The row of that name or alias, or None."""
        return self._by_name.get(fold(name))


@functools.lru_cache(maxsize=4096)  # the same few labels on every node
def fold(name: str) -> str:
    """What two spellings of a name have in common: no case, one dash for any separators.

    >>> fold("NVIDIA GeForce RTX_4090")
    'nvidia-geforce-rtx-4090'
    """
    return re.sub(r"[^a-z0-9.+/*#]+", "-", name.lower()).strip("-")


def unique_index(file: str, rows: Iterable[R], names: Callable[[R], Iterable[str]]) -> dict[str, R]:
    """Rows by each of their folded names; a name of two rows is a TableError."""
    index: dict[str, R] = {}
    for row in rows:
        for name in names(row):
            if index.setdefault(fold(name), row) is not row:
                other = index[fold(name)].name
                raise TableError(f"{file}: {name!r} names both {other} and {row.name}")
    return index


def read_rows(file: str, model: type[R]) -> tuple[R, ...]:
    """All rows of a shipped CSV file."""
    return parse_rows(file, _text(file).splitlines(), model)


def parse_rows(file: str, lines: Iterable[str], model: type[R]) -> tuple[R, ...]:
    """Rows of CSV ``lines``; an empty cell is an absent figure, ``file`` is for messages."""
    reader = csv.DictReader(lines, strict=True)
    try:
        return tuple(_row(f"{file} line {reader.line_num}", cells, model) for cells in reader)
    except csv.Error as error:
        raise TableError(f"{file} line {reader.line_num}: {error}") from error


def _row(where: str, cells: Mapping[str | None, str | None], model: type[R]) -> R:
    if None in cells or None in cells.values():
        raise TableError(f"{where}: has more or fewer cells than the header")
    present = {column: cell.strip() for column, cell in cells.items() if cell and cell.strip()}
    try:
        return model.model_validate(present)
    except ValidationError as error:
        first = error.errors()[0]
        column = ".".join(map(str, first["loc"]))
        raise TableError(f"{where}, {column}: {first['msg']}") from error


def _text(file: str) -> str:
    return (resources.files("poolwise.tables") / file).read_text(encoding="utf-8")
