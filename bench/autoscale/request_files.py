"""Files of requests as numbers: compressed or not, by commas, semicolons or tabs.

Files come from many hands, so what can be told apart without a doubt is read: the columns in any
order and case, with others beside them; a mark of the encoding; compression whatever the name says.
A row that is no request is left out and named. Units are not guessed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.files import NOT_TEXT, BadInput, opened, rows

COLUMNS = ("arrival_s", "input_tokens", "output_tokens")
CACHED = ("cached_tokens", "prefix_reuse_tokens_infinite_cache")
"""Names of the optional column of prompt tokens found in a prefix cache."""
MOST_TOKENS = 10_000_000
MOST_SECONDS = 1e12
"""Of an arrival, before or after 0: clocks that count seconds since 1970 are far below."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of arrival, prompt, answer and cached tokens, in the order of the file."""

    numbers: NDArray[np.float64]
    complaint: str
    """Of rows that were left out; empty when all were good."""


def read(path: Path, with_prefixes: bool = False) -> Table:
    """All good rows.

    Raises :class:`BadInput` for one that cannot be read, or without the columns or any good row.
    """
    with opened(path) as file:
        lines = rows(file)
        return _table(path, lines, _places(path, _header(lines), with_prefixes))


def has_columns(path: Path) -> bool:
    """Whether its header has the columns."""
    try:
        with opened(path) as file:
            header = _header(rows(file))
    except BadInput:
        return False
    return all(name in header for name in COLUMNS)


def _header(lines: Iterator[list[str]]) -> list[str]:
    cells = next((row for row in lines if row), [])
    return [name.strip().casefold() for name in cells]


def _places(path: Path, header: Sequence[str], with_prefixes: bool) -> list[int]:
    if any(NOT_TEXT in name for name in header):
        raise BadInput(f"{path}: cannot be read: its header is no text in UTF-8")
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise BadInput(f"{path}: the header has no column {' and no '.join(missing)}")
    found = [name for name in CACHED if name in header][:1] if with_prefixes else []
    return [header.index(name) for name in (*COLUMNS, *found)]


def _table(path: Path, lines: Any, places: Sequence[int]) -> Table:
    good, bad, first = array("d"), 0, ""
    for row in lines:
        if not any(row):
            continue
        try:
            good.extend(_values([_cell(row, place) for place in places]))
        except ValueError as error:
            bad, first = bad + 1, first or f"line {lines.line_num}: {error}"
    if not good:
        raise BadInput(f"{path}: no row is a request{f' ({first})' if first else ''}")
    numbers = np.frombuffer(good, np.float64).reshape(-1, 4)
    in_all = len(numbers) + bad
    complaint = f"{path}: {bad} of {in_all} rows left out, first {first}" if bad else ""
    return Table(numbers, complaint)


def _cell(row: Sequence[str], place: int) -> str:
    if place >= len(row):
        raise ValueError(f"has {len(row)} cells, must have {place + 1} at least")
    return row[place]


def _values(cells: Sequence[str]) -> tuple[float, float, float, float]:
    """Arrival, prompt, answer and cached tokens; raises ValueError."""
    arrival, prompt, answer = map(_number, cells[:3])
    cached = _number(cells[3] or "0") if len(cells) > 3 else 0.0
    if not -MOST_SECONDS < arrival < MOST_SECONDS:
        raise ValueError(
            f"arrival_s is {_told(cells[0])}, must be a number of seconds, {MOST_SECONDS:g} at most"
        )
    for name, tokens, cell in zip(COLUMNS[1:], (prompt, answer), cells[1:], strict=False):
        if not 1.0 <= tokens <= MOST_TOKENS:
            raise ValueError(f"{name} is {_told(cell)}, must be from 1 to {MOST_TOKENS}")
    if not 0.0 <= cached <= prompt:
        raise ValueError(f"cached tokens are {_told(cells[3])}, must be from 0 to input_tokens")
    return arrival, prompt, answer, cached


def _told(cell: str) -> str:
    return cell if cell and cell.isprintable() else repr(cell)


def _number(cell: str) -> float:
    """NaN, which no bound lets pass, where it is none."""
    try:
        return float(cell)
    except ValueError:
        return float("nan")
