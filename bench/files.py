"""Files of rows as other hands write them: opened and split here, and nowhere else.

What can be told apart without a doubt is read: compression whatever the name says, a mark of the
encoding, commas, semicolons or tabs between cells, quotes, and any ends of lines.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

NOT_TEXT = "\ufffd"
"""Stands for bytes that are no UTF-8."""
GZIP = b"\x1f\x8b"
DELIMITERS = ",;\t"
_UNREADABLE = (OSError, EOFError, zlib.error, UnicodeError, csv.Error)
"""What reading a file that is torn, or something else, ends with."""


class BadInput(Exception):
    """What a program was given cannot be used; the sentence names it, and says why."""


def check_folder(path: Path) -> None:
    """Raises :class:`BadInput` for what is no folder."""
    if not path.is_dir():
        raise BadInput(f"{path}: is not a folder")


@contextmanager
def opened(path: Path) -> Iterator[IO[str]]:
    """As text; a byte that is none spoils its cell.

    Raises :class:`BadInput` where it cannot be read, also when that shows later on.
    """
    try:
        with path.open("rb") as file:
            is_packed = file.peek(len(GZIP))[: len(GZIP)] == GZIP
            plain: Any = gzip.GzipFile(fileobj=file) if is_packed else file
            yield io.TextIOWrapper(plain, newline="", encoding="utf-8-sig", errors="replace")
    except _UNREADABLE as error:
        raise BadInput(f"{path}: cannot be read: {_words(error)}") from error


def rows(file: IO[str]) -> Any:
    """Its lines as cells, the header first; ``line_num`` counts them."""
    lines, delimiter = _split(file)
    return csv.reader(lines, delimiter=delimiter)


def records(file: IO[str]) -> csv.DictReader[str]:
    """Its lines below the header by the names of their columns, which are in small letters; a short
    one ends in empty cells."""
    lines, delimiter = _split(file)
    found = csv.DictReader(lines, restval="", delimiter=delimiter)
    found.fieldnames = [name.strip().lower() for name in found.fieldnames or ()]
    return found


def _split(file: IO[str]) -> tuple[Iterator[str], str]:
    """By the delimiter of the first line; a header of one cell has none."""
    first = ""
    while not first.strip() and (line := file.readline()):
        first += line
    return _lines(first, file), max(DELIMITERS, key=first.count)


def _lines(first: str, file: IO[str]) -> Iterator[str]:
    yield from io.StringIO(first, newline="")
    yield from file


def _words(error: BaseException) -> str:
    """Without the path, which an error of the system repeats."""
    return getattr(error, "strerror", None) or str(error)
